//! Writes the current settings as spec keys and units.

use super::places::{self, Default};
use super::{Subject, exchange_named, retries, yaml};
use crate::model::known_arguments::KnownArgument;
use crate::model::names::LONGEST_NAME;
use crate::model::{Arguments, Exchange, ExchangeName, Object, ObjectId, Queue};
use crate::plan::document::FieldVerdict;
use crate::plan::resolution::{Applicability, FieldAdvice, Resolution, ResolutionKind};
use crate::rabbitmq::routing::DeadLettering;
use crate::rabbitmq::{Governed, Policies, dead_lettering, own_wiring};
use yaml::Fragment;

/// The key of a queue that says both of its dead-letter arguments.
pub(super) const DEAD_LETTER: &str = "deadLetter";

/// What an object's entry in the spec has to say.
#[derive(Default)]
pub(super) struct Said {
    /// Keys, and their values as YAML.
    pub(super) keys: Vec<(String, String)>,
    /// Keys that must not be there.
    pub(super) remove_keys: Vec<String>,
    /// Defaults of the document that must not be there.
    pub(super) defaults: Vec<Default>,
    /// Exchanges that the values name.
    pub(super) exchanges: Vec<ExchangeName>,
    /// Fields for whose live value a spec has no words.
    pub(super) unsayable: Vec<String>,
}

impl Said {
    /// Whether more is to be written than can be listed.
    pub(super) fn is_laborious(&self) -> bool {
        self.defaults.iter().any(|default| default.others.is_none())
    }

    /// All that must not be there, as paths of keys: of the object, or of the document.
    pub(super) fn all_to_take_out(&self) -> Vec<String> {
        self.remove_keys.iter().cloned().chain(self.defaults.iter().map(|default| default.path.clone())).collect()
    }

    fn key(&mut self, key: &str, yaml: Option<String>, field: &str) {
        match yaml {
            Some(yaml) => self.keys.push((key.to_owned(), yaml)),
            None => self.unsayable.push(field.to_owned()),
        }
    }
}

/// Keeping all that is live.
pub(super) fn way(subject: &Subject<'_>) -> Resolution {
    if let Some(queue) = retries::needed_by(subject) {
        let text = format!(
            "the current settings cannot be kept: the retries of queue {queue} need an exchange of \
                            that name"
        );
        return Resolution::new(ResolutionKind::Keep, Applicability::No, text);
    }
    let said = live(subject, &subject.hard);
    let mut fragment = Fragment::default();
    subject.write(&mut fragment, &said);
    let mut parts: Vec<String> = said.keys.iter().map(|(key, yaml)| format!("{key}: {yaml}")).collect();
    if !said.remove_keys.is_empty() {
        parts.push(format!("remove {}", said.remove_keys.join(", ")));
    }
    parts.extend(said.defaults.iter().map(Default::sentence));
    let unsayable = format!("a spec cannot represent the current {}", said.unsayable.join(", "));
    let (applicability, text) = match (parts.is_empty(), said.unsayable.is_empty()) {
        (_, true) if said.is_laborious() => {
            (Applicability::Partly, format!("keep the current settings: {}", parts.join(", ")))
        }
        (_, true) => (Applicability::Yes, format!("keep the current settings: {}", parts.join(", "))),
        (false, false) => {
            (Applicability::Partly, format!("keep the current settings: {}; {unsayable}", parts.join(", ")))
        }
        (true, false) => (Applicability::No, format!("the current settings cannot be kept: {unsayable}")),
    };
    let fields = said.unsayable.iter().map(|field| FieldAdvice {
        field: field.clone(),
        applicability: false,
        why: "a spec cannot represent its current value".to_owned(),
    });
    Resolution {
        fields: fields.collect(),
        yaml: fragment.text(),
        remove_keys: said.all_to_take_out(),
        ..Resolution::new(ResolutionKind::Keep, applicability, text)
    }
}

/// What the spec has to say so that these fields are as they are live.
pub(super) fn live(subject: &Subject<'_>, fields: &[&FieldVerdict]) -> Said {
    match subject.before {
        Object::Queue(name, queue) => {
            let (own, rest): (Vec<_>, Vec<_>) =
                fields.iter().copied().partition(|field| retries::owns(subject, &field.field));
            let mut said = live_queue(subject, queue, &rest);
            if !own.is_empty() {
                retries::live(subject, &mut said, name, queue, &own);
            }
            said
        }
        Object::Exchange(_, exchange) if subject.dead_letter_queue().is_some() => generated_exchange(exchange, fields),
        Object::Exchange(_, exchange) => {
            let desired = match &subject.planned.after {
                Some(Object::Exchange(_, desired)) => &desired.arguments,
                Some(
                    Object::Vhost(_) | Object::Policy(..) | Object::Queue(..) | Object::Binding(_) | Object::Record(_),
                )
                | None => &exchange.arguments,
            };
            live_exchange(subject, exchange, desired, fields)
        }
        Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => Said::default(),
    }
}

fn live_queue(subject: &Subject<'_>, queue: &Queue, fields: &[&FieldVerdict]) -> Said {
    let mut said = Said::default();
    let takes =
        |known: &KnownArgument| queue.queue_type().is_none_or(|queue_type| known.support_for(queue_type).is_some());
    for field in fields {
        let name = field.field.as_str();
        match (name, KnownArgument::named(name)) {
            ("durable", _) => said.key("durable", Some(queue.durable.to_string()), name),
            ("auto_delete", _) => said.key("autoDelete", Some(queue.auto_delete.to_string()), name),
            ("x-dead-letter-exchange" | "x-dead-letter-routing-key", Some(known)) => {
                let is_said = said.keys.iter().any(|(key, _)| key == DEAD_LETTER)
                    || said.remove_keys.contains(&DEAD_LETTER.to_owned());
                if !is_said {
                    dead_letter(subject, &mut said, queue, takes(known), name);
                }
            }
            (_, Some(known)) => match &field.before {
                None => places::remove_keys(subject, &mut said, known, takes(known)),
                Some(value) => {
                    let yaml = yaml::known(known, value).filter(|_| takes(known));
                    if yaml.is_some() {
                        places::move_out_of_arguments(subject, &mut said, name);
                    }
                    said.key(known.key, yaml, name);
                }
            },
            (_, None) => said.unsayable.push(name.to_owned()),
        }
    }
    said
}

/// Both arguments in the spec's one key.
fn dead_letter(subject: &Subject<'_>, said: &mut Said, queue: &Queue, is_taken: bool, field: &str) {
    let exchange = queue.arguments.get("x-dead-letter-exchange");
    let key = queue.arguments.get("x-dead-letter-routing-key");
    match (exchange, key, by_policy(subject, queue)) {
        (None, None, Some(by_policy)) if is_taken => {
            let is_moved = places::move_dead_letter(subject, said);
            if by_policy.is_own {
                said.keys.push((DEAD_LETTER.to_owned(), by_policy.yaml()));
                said.exchanges.push(by_policy.to.exchange);
            } else if places::has_default(subject, "x-dead-letter-exchange") {
                // The policy of others stays in force; the default would apply without a key.
                said.keys.push((DEAD_LETTER.to_owned(), "none".to_owned()));
            } else if !is_moved {
                // The policy says it already, as it does in an export.
                said.remove_keys.push(DEAD_LETTER.to_owned());
            }
            return;
        }
        (_, _, _) => {}
    }
    match (exchange, key) {
        // Said on purpose: it holds against `defaults.deadLetter`, too.
        (None, None) if is_taken => {
            places::move_dead_letter(subject, said);
            said.key(DEAD_LETTER, Some("none".to_owned()), field);
        }
        // A default that the live type does not take goes with the desired type.
        (None, None) if places::is_default(subject, "x-dead-letter-exchange") => {}
        (None, None) if places::move_dead_letter(subject, said) => {}
        (None, None) => said.remove_keys.push(DEAD_LETTER.to_owned()),
        (Some(_), _) if !is_taken => said.unsayable.push(field.to_owned()),
        (exchange, key) => {
            let named = exchange_named(exchange);
            let routing_key = key.map(|key| key.as_text().filter(|key| is_routing_key(key)));
            let yaml = match (&named, routing_key) {
                (Some(exchange), None) => Some(dead_letter_yaml(exchange, None, false)),
                (Some(exchange), Some(Some(key))) => Some(dead_letter_yaml(exchange, Some(key), false)),
                (Some(_), Some(None)) | (None, _) => None,
            };
            if yaml.is_some() {
                places::move_dead_letter(subject, said);
                said.exchanges.extend(named);
            }
            said.key(DEAD_LETTER, yaml, field);
        }
    }
}

/// A policy that says where the dead letters of a queue go.
pub(super) struct ByPolicy {
    pub(super) to: DeadLettering,
    /// Whether it is the policy that `wiring: policy` stands for.
    is_own: bool,
}

impl ByPolicy {
    pub(super) fn yaml(&self) -> String {
        dead_letter_yaml(&self.to.exchange, self.to.routing_key.as_deref(), true)
    }
}

/// The live policy that wires a queue without dead-letter arguments.
pub(super) fn by_policy(subject: &Subject<'_>, queue: &Queue) -> Option<ByPolicy> {
    let context = subject.context;
    let ObjectId::Queue(name) = subject.before.id() else { return None };
    match own_wiring(context.current, &name) {
        Some((_, None)) => None,
        Some((to, Some(_))) => Some(ByPolicy { to, is_own: true }),
        None => {
            let governed = Governed::from(queue);
            let operator_policies = context.operator_policies();
            let to = [&context.current.policies, &operator_policies].into_iter().find_map(|policies| {
                let policies = Policies::new(policies, context.profile.version);
                dead_lettering(&policies.governing(name.as_str(), governed).likely()?.policy.definition, "")
            })?;
            Some(ByPolicy { to, is_own: false })
        }
    }
}

/// `{exchange: …, routingKey: …, wiring: policy}`.
pub(super) fn dead_letter_yaml(exchange: &ExchangeName, routing_key: Option<&str>, by_policy: bool) -> String {
    let mut entries = vec![("exchange", yaml::scalar(exchange.as_str()))];
    entries.extend(routing_key.map(|key| ("routingKey", yaml::scalar(key))));
    entries.extend(by_policy.then(|| ("wiring", "policy".to_owned())));
    yaml::flow(entries.into_iter())
}

/// Whether a spec takes it: `null` and `undefined` are words that the management API cannot delete a binding by.
fn is_routing_key(key: &str) -> bool {
    key.len() <= LONGEST_NAME && !["null", "undefined"].contains(&key)
}

fn live_exchange(subject: &Subject<'_>, exchange: &Exchange, desired: &Arguments, fields: &[&FieldVerdict]) -> Said {
    let mut said = Said::default();
    let mut arguments = desired.clone();
    arguments.remove("alternate-exchange");
    let mut is_argument_changed = false;
    for field in fields {
        let name = field.field.as_str();
        match name {
            "type" => said.key("type", Some(yaml::scalar(&exchange.kind)), name),
            "durable" => said.key("durable", Some(exchange.durable.to_string()), name),
            "auto_delete" => said.key("autoDelete", Some(exchange.auto_delete.to_string()), name),
            "internal" => said.key("internal", Some(exchange.internal.to_string()), name),
            "alternate-exchange" => match &field.before {
                None if places::move_out_of_arguments(subject, &mut said, name) => {}
                None => said.remove_keys.push("alternateExchange".to_owned()),
                value => {
                    let named =
                        exchange_named(value.as_ref()).filter(|name| (1..=LONGEST_NAME).contains(&name.as_str().len()));
                    let yaml = named.as_ref().map(|name| yaml::scalar(name.as_str()));
                    said.exchanges.extend(named);
                    if yaml.is_some() {
                        places::move_out_of_arguments(subject, &mut said, name);
                    }
                    said.key("alternateExchange", yaml, name);
                }
            },
            argument => {
                is_argument_changed = true;
                match &field.before {
                    Some(value) => arguments.insert(argument.to_owned(), value.clone()),
                    None => arguments.remove(argument),
                };
            }
        }
    }
    // All of them, because they stand in one table.
    if is_argument_changed {
        said.remove_keys.retain(|key| !key.starts_with("arguments."));
    }
    if is_argument_changed && arguments.is_empty() {
        said.remove_keys.push("arguments".to_owned());
    } else if is_argument_changed {
        let table = arguments.iter().map(|(name, value)| (name.as_str(), yaml::value(value)));
        said.keys.push(("arguments".to_owned(), yaml::flow(table)));
    }
    said
}

/// The exchange of a dead-letter queue has few keys.
fn generated_exchange(exchange: &Exchange, fields: &[&FieldVerdict]) -> Said {
    let mut said = Said::default();
    for field in fields {
        match field.field.as_str() {
            "type" => said.key("type", Some(yaml::scalar(&exchange.kind)), "type"),
            "internal" => said.key("internal", Some(exchange.internal.to_string()), "internal"),
            other => said.unsayable.push(other.to_owned()),
        }
    }
    said
}
