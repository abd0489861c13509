//! Finds the position of an object's setting in a spec: the position of the setting's key if the key exists, otherwise
//! the position of the declaration that causes the setting.

use crate::expand::{CreatedFor, Expansion};
use crate::model::{ExchangeName, ObjectId, PolicyName, QueueName, RecordId};
use crate::spec::{
    BindingSpec, DeadLetterQueueSpec, ExchangeSpec, Location, PolicySpec, QueueSpec, RetrySpec, SetBy, Setting, Spec,
};

/// A position, with related positions.
pub(super) struct Position {
    pub(super) at: Location,
    pub(super) also: Vec<(Location, String)>,
}

impl From<Location> for Position {
    fn from(at: Location) -> Self {
        Self { at, also: Vec::new() }
    }
}

/// Returns the position of a setting of an object. The setting is an argument, a property or a policy key, in
/// RabbitMQ's spelling.
pub(super) fn position(spec: &Spec, expansion: &Expansion, object: &ObjectId, setting: &str) -> Position {
    let because = expansion.origins.get(object).map(|origin| &origin.because);
    if let Some(CreatedFor::Retry(queue)) = because {
        let retry = spec.queues.get(queue).and_then(|queue| queue.retry.as_ref());
        return retry.map_or(spec.vhost.at, RetrySpec::at).into();
    }
    let found = match object {
        ObjectId::Vhost => match (setting, &spec.default_queue_type) {
            ("default_queue_type", Some(setting)) => Some(setting.at.into()),
            _ => None,
        },
        ObjectId::Queue(name) => queue(spec, name).map(|queue| queue_position(queue, setting)),
        ObjectId::Exchange(name) => exchange(spec, name, because, setting),
        ObjectId::Policy(name) => policy(spec, name, because, setting),
        ObjectId::Binding(binding) => match (spec.bindings.get(binding), because) {
            (Some(declaration), _) => Some(binding_position(declaration, setting).into()),
            (None, Some(CreatedFor::DeadLetterBinding(queue))) => {
                dead_letter_queue(spec, queue).map(|it| it.queue.at.into())
            }
            (None, _) => None,
        },
        ObjectId::Record(id) => record(spec, id, setting),
    };
    found.unwrap_or_else(|| spec.vhost.at.into())
}

fn queue<'a>(spec: &'a Spec, name: &QueueName) -> Option<&'a QueueSpec> {
    spec.queues.get(name).or_else(|| dead_letter_queue(spec, name).map(|it| &it.queue))
}

fn dead_letter_queue<'a>(spec: &'a Spec, name: &QueueName) -> Option<&'a DeadLetterQueueSpec> {
    spec.dead_letter_queues.get(name)
}

fn queue_position(queue: &QueueSpec, setting: &str) -> Position {
    fn source_of<T>(setting: Option<&Setting<T>>) -> Option<(Location, SetBy)> {
        setting.map(|it| (it.at, it.set_by))
    }
    let found = match setting {
        "durable" => source_of(queue.durable.as_ref()),
        "auto_delete" => source_of(queue.auto_delete.as_ref()),
        "x-queue-type" | "type" => source_of(queue.queue_type.as_ref()),
        "x-dead-letter-exchange" | "x-dead-letter-routing-key" => source_of(queue.dead_letter.as_ref()),
        // If the spec does not set the delivery limit explicitly, the retries set it.
        "x-delivery-limit" if !queue.arguments.contains_key(setting) => {
            source_of(queue.retry.as_ref().map(|it| &it.max_retries))
        }
        argument => source_of(queue.arguments.get(argument)),
    };
    match found {
        None => queue.at.into(),
        Some((at, SetBy::Itself)) => at.into(),
        Some((at, SetBy::RetryPolicy | SetBy::Defaults | SetBy::Vhost)) => {
            Position { at, also: vec![(queue.at, "applies to this queue".to_owned())] }
        }
    }
}

fn binding_position(binding: &BindingSpec, setting: &str) -> Location {
    match setting {
        "routing_key" => binding.key_at,
        argument => binding.arguments.get(argument).copied().unwrap_or(binding.at),
    }
}

fn exchange(spec: &Spec, name: &ExchangeName, because: Option<&CreatedFor>, setting: &str) -> Option<Position> {
    let of_declared = |exchange: &ExchangeSpec| match setting {
        "type" => exchange.kind.at,
        "alternate-exchange" => exchange.alternate_exchange.as_ref().map_or(exchange.at, |it| it.at),
        argument => exchange.arguments.get(argument).map_or(exchange.at, |it| it.key_at),
    };
    let of_dead_letters = |queue: &DeadLetterQueueSpec| match setting {
        "type" => queue.exchange_type.at,
        _ => queue.exchange_name.as_ref().map_or(queue.queue.at, |it| it.at),
    };
    let declared = spec.exchanges.get(name).map(of_declared);
    let generated = || match because {
        Some(CreatedFor::DeadLetterExchange(queue)) => dead_letter_queue(spec, queue).map(of_dead_letters),
        Some(
            CreatedFor::Declared
            | CreatedFor::DeadLetterBinding(_)
            | CreatedFor::DeadLetterPolicy(_)
            | CreatedFor::Retry(_),
        )
        | None => None,
    };
    declared.or_else(generated).map(Position::from)
}

fn record(spec: &Spec, id: &RecordId, setting: &str) -> Option<Position> {
    let record = spec.records.get(id)?;
    Some(record.places.get(setting).copied().unwrap_or(record.at).into())
}

fn policy(spec: &Spec, name: &PolicyName, because: Option<&CreatedFor>, setting: &str) -> Option<Position> {
    let key = |policy: &PolicySpec| policy.definition.get(setting).map(|it| it.key_at);
    if let Some(policy) = spec.policies.get(name) {
        let at = match setting {
            "pattern" => policy.pattern.at,
            "apply-to" => policy.apply_to.at,
            _ => key(policy).unwrap_or(policy.at),
        };
        return Some(at.into());
    }
    let Some(CreatedFor::DeadLetterPolicy(of)) = because else { return None };
    let wiring = queue(spec, of)?.dead_letter.as_ref()?.at;
    // A generated dead-letter policy copies the keys of the policy that it overrides.
    let copied = || spec.policies.values().find_map(key);
    match setting {
        "dead-letter-exchange" | "dead-letter-routing-key" => Some(wiring.into()),
        _ => Some(copied().unwrap_or(wiring).into()),
    }
}
