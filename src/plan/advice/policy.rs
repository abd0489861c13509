//! Builds the resolution that changes the effective settings of an object with a policy. Determines the fields that a
//! policy can set, and builds one policy that sets all of them. The policy has a higher priority than the policy that
//! governs the object now, and includes the settings of that policy, because RabbitMQ does not merge policies.

use super::current_keys::{DEAD_LETTER, belongs_to_retries, destination_keys};
use super::origins::{self, Edits};
use super::recreate::Fragment;
use super::{Subject, exchange_named, keep, takeover};
use crate::model::count::count;
use crate::model::known_arguments::KnownArgument;
use crate::model::units::with_unit;
use crate::model::yaml::value::{self, is_representable};
use crate::model::yaml::{Tree, entry};
use crate::model::{ApplyTo, ArgumentValue, Arguments, Object, Policy, PolicyName, Priority, QueueType};
use crate::plan::document::FieldVerdict;
use crate::plan::resolution::{Applicability, FieldAdvice, Resolution, ResolutionKind};
use crate::rabbitmq::WIRING_KEYS;
use crate::rabbitmq::effective::default_delivery_limit;
use crate::rabbitmq::policy_keys::{PolicyKey, policy_wins};
use crate::rabbitmq::{
    BrokerProfile, EffectiveSettings, Governed, Named, Policies, Precedence, dead_lettering, precedence, refusals,
};
use std::collections::BTreeMap;
use takeover::Takeover;

/// The decision on whether a policy can set a field.
struct Decision<'a> {
    field: &'a FieldVerdict,
    /// The policy key and its value, if a policy can set the field.
    setting: Option<(&'static str, ArgumentValue)>,
    /// The reason for the decision.
    why: String,
}

/// Returns the resolution that sets all fields that a policy can set.
pub(super) fn resolution(subject: &Subject<'_>) -> Resolution {
    let decisions: Vec<Decision<'_>> = subject.immutable.iter().map(|field| decide(subject, field)).collect();
    let (settable, unsettable): (Vec<_>, Vec<_>) = decisions.iter().partition(|decision| decision.setting.is_some());
    let fields = decisions.iter().map(|decision| FieldAdvice {
        field: decision.field.field.clone(),
        applies: decision.setting.is_some(),
        why: decision.why.clone(),
    });
    let fields: Vec<FieldAdvice> = fields.collect();
    if settable.is_empty() {
        let groups = group_by_reason(&unsettable).into_iter();
        let reasons: Vec<String> = groups.map(|(why, names)| format!("{why} ({names})")).collect();
        let text = format!("a policy would not help: {}", reasons.join("; "));
        return Resolution { fields, ..Resolution::new(ResolutionKind::Policy, Applicability::No, text) };
    }
    let takeover = Takeover::of(subject, sets_dead_letter_exchange(&settable));
    if let Some((policy, key)) = takeover.unrepresentable_key() {
        let text = format!("a policy would not help: policy {policy} sets {key}, which a spec cannot represent");
        return Resolution { fields, ..Resolution::new(ResolutionKind::Policy, Applicability::No, text) };
    }
    let settings: Vec<String> =
        settable.iter().filter_map(|decision| decision.setting.as_ref()).map(setting_text).collect();
    let mut text = format!("with a policy, in place: {}", settings.join(", "));
    if !unsettable.is_empty() {
        let names: Vec<&str> = unsettable.iter().map(|decision| decision.field.field.as_str()).collect();
        text.push_str(&format!("; not {}", names.join(", ")));
    }
    let edits = edits(subject, &settable);
    let mut fragment = Fragment::default();
    subject.write(&mut fragment, &edits);
    write_policy(subject, &mut fragment, &takeover, &settable);
    let applicability =
        if unsettable.is_empty() && !edits.is_costly() { Applicability::Yes } else { Applicability::Partly };
    let mut warnings = takeover.warnings();
    warnings
        .extend(settable.iter().filter_map(|decision| decision.setting.as_ref()).filter_map(|it| risk(subject, it)));
    Resolution {
        fields,
        yaml: fragment.text(),
        remove_keys: edits.all_keys_to_remove(),
        warnings,
        applications: Some("applications with the current settings continue to work".to_owned()),
        ..Resolution::new(ResolutionKind::Policy, applicability, text)
    }
}

fn setting_text((key, value): &(&'static str, ArgumentValue)) -> String {
    format!("{key} {}", with_unit(key, value))
}

/// Groups the fields by the reason for the decision. Returns each reason with the list of its fields, in the order of
/// the fields.
fn group_by_reason(decisions: &[&Decision<'_>]) -> Vec<(String, String)> {
    let mut groups: Vec<(String, String)> = Vec::new();
    for decision in decisions {
        match groups.iter_mut().find(|(why, _)| *why == decision.why) {
            Some((_, names)) => {
                names.push_str(", ");
                names.push_str(&decision.field.field);
            }
            None => groups.push((decision.why.clone(), decision.field.field.clone())),
        }
    }
    groups
}

/// Decides whether a policy can set a field.
fn decide<'a>(subject: &Subject<'_>, field: &'a FieldVerdict) -> Decision<'a> {
    let profile = subject.context.profile;
    let no = |why: &str| Decision { field, setting: None, why: why.to_owned() };
    if belongs_to_retries(subject, &field.field) {
        return no("part of the retries, which `retry` and `maxRetries` define");
    }
    let (key, rule) = match subject.before {
        Object::Queue(_, queue) => {
            let Some(key) = KnownArgument::named(&field.field).and_then(|known| known.policy_key) else {
                return no("not supported by policies");
            };
            let Some(queue_type) = queue.queue_type() else {
                return no("the effect of a policy on such a queue is unknown");
            };
            if PolicyKey::named(key).is_some_and(PolicyKey::applies_only_on_declare) {
                return no("effective only when a queue is declared");
            }
            match precedence(key, queue_type, profile) {
                Some(rule) => (key, rule),
                None => return no(&format!("not supported by policies on an existing {queue_type} queue")),
            }
        }
        // `rabbit_policy:get_arg`: the argument has precedence.
        Object::Exchange(..) if field.field == "alternate-exchange" && subject.dead_letter_queue().is_none() => {
            ("alternate-exchange", Precedence::Argument)
        }
        Object::Exchange(..) | Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => {
            return no("not supported by policies");
        }
    };
    let value = match field.after.clone() {
        Some(value) => value,
        None => match value_equivalent_to_unset(key, profile) {
            Some(value) if field.before.as_ref() == Some(&value) => {
                return no("the current value is the default");
            }
            Some(value) if rule != Precedence::Argument => value,
            Some(_) | None => return no("a policy cannot remove an existing argument"),
        },
    };
    if field.before.as_ref().is_some_and(|argument| *argument != value && !policy_wins(rule, &value, argument)) {
        return no(match rule {
            Precedence::Argument => "the existing argument overrides a policy",
            Precedence::Smallest | Precedence::SmallestNonNegative => {
                "a policy can only lower the value of the existing argument"
            }
            Precedence::Policy => "not supported by policies",
        });
    }
    if let Some(why) = refusal_reason(key, &value, profile) {
        return no(&why);
    }
    if let Some(why) = override_reason(subject, key, &value) {
        return no(&why);
    }
    let why = match (&field.before, rule) {
        (None, _) => "no argument exists, so the policy applies",
        (Some(_), Precedence::Policy) => "the policy overrides the argument, which remains unchanged",
        (Some(_), Precedence::Smallest | Precedence::SmallestNonNegative | Precedence::Argument) => {
            "the smaller of argument and policy applies"
        }
    };
    Decision { field, setting: Some((key, value)), why: why.to_owned() }
}

/// Returns the reason why the value of a policy would not be effective; `None` if the value would be effective. For
/// example, an operator policy can override the value.
fn override_reason(subject: &Subject<'_>, key: &str, value: &ArgumentValue) -> Option<String> {
    let settings = settings_with_policy(subject, key, value)?;
    let effective = settings.get(key).filter(|it| it.value != *value)?;
    Some(format!("{} keeps {key} at {}", effective.source, with_unit(key, &effective.value)))
}

/// Returns the existing queue's effective settings under its operator policy and a policy that sets only this key;
/// `None` for an exchange.
fn settings_with_policy(subject: &Subject<'_>, key: &str, value: &ArgumentValue) -> Option<EffectiveSettings> {
    let Object::Queue(name, queue) = subject.before else { return None };
    let profile = subject.context.profile;
    let operator_policies = subject.context.operator_policies_before_deletions();
    let operators = Policies::new(&operator_policies, profile.version);
    let operator = operators.governing(name.as_str(), Governed::from(queue)).likely();
    let (advice, policy) = (PolicyName::from("advice"), single_key_policy(key, value));
    Some(EffectiveSettings::of(queue, Some(Named { name: &advice, policy: &policy }), operator, profile))
}

/// Returns a policy with one key.
fn single_key_policy(key: &str, value: &ArgumentValue) -> Policy {
    Policy {
        pattern: "^$".to_owned(),
        apply_to: ApplyTo::All,
        priority: Priority(1.0),
        definition: Arguments::from([(key.to_owned(), value.clone())]),
    }
}

/// Returns the value that gives a policy key the same effect as a missing key, if there is such a value.
fn value_equivalent_to_unset(key: &str, profile: &BrokerProfile) -> Option<ArgumentValue> {
    match key {
        "overflow" => Some("drop-head".into()),
        "delayed-retry-type" => Some("disabled".into()),
        "delivery-limit" => default_delivery_limit(profile.version).map(ArgumentValue::from),
        _ => None,
    }
}

/// Returns the reason why the spec or the broker would refuse the policy; `None` if both would accept the policy.
fn refusal_reason(key: &str, value: &ArgumentValue, profile: &BrokerProfile) -> Option<String> {
    let can_represent = match KnownArgument::of_policy_key(key) {
        Some(known) => is_representable(known, value),
        None => value.as_text().is_some(),
    };
    if !can_represent {
        return Some("a spec cannot represent this value in a policy".to_owned());
    }
    // The broker does not validate this value in an argument. In a policy, RabbitMQ 4.0 and later accept negative
    // values.
    if key == "delivery-limit"
        && value.as_integer().is_some_and(|limit| limit < 0)
        && !profile.version.is_at_least(4, 0)
    {
        return Some("before RabbitMQ 4.0, a policy cannot set a negative limit".to_owned());
    }
    let policy = Object::Policy(PolicyName::from("advice"), single_key_policy(key, value));
    let refusals = refusals(&policy, profile);
    refusals.into_iter().next().map(|refusal| refusal.text)
}

/// Returns true if the policy sets the dead-letter exchange, for which the spec uses `wiring: policy`.
fn sets_dead_letter_exchange(settable: &[&Decision<'_>]) -> bool {
    settable.iter().any(|decision| decision.field.field == "x-dead-letter-exchange")
}

/// Returns the edits to the object's own entry in the spec.
fn edits(subject: &Subject<'_>, settable: &[&Decision<'_>]) -> Edits {
    let is_wired = sets_dead_letter_exchange(settable);
    let of_dead_letters =
        |field: &&FieldVerdict| field.field.starts_with("x-dead-letter-") && field.field != "x-dead-letter-strategy";
    let fields: Vec<&FieldVerdict> =
        settable.iter().map(|decision| decision.field).filter(|field| !(is_wired && of_dead_letters(field))).collect();
    let mut edits = keep::edits_for(subject, &fields);
    let Some(Object::Queue(_, desired)) = &subject.planned.after else { return edits };
    if let (true, Some(to)) = (is_wired, dead_lettering(&desired.arguments, "x-")) {
        origins::move_dead_letter(subject, &mut edits);
        edits.set(DEAD_LETTER, destination_keys(subject, &to, true));
    }
    edits
}

/// Writes the policy: the settings of the displaced policy, and the values that resolve the conflict.
fn write_policy(subject: &Subject<'_>, fragment: &mut Fragment, takeover: &Takeover, settable: &[&Decision<'_>]) {
    let is_wired = sets_dead_letter_exchange(settable);
    let mut definition: BTreeMap<&str, &ArgumentValue> =
        takeover.definition.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let mut is_needed = takeover.is_unmanaged;
    for (key, value) in settable.iter().filter_map(|decision| decision.setting.as_ref()) {
        if is_wired && WIRING_KEYS.contains(key) {
            continue;
        }
        definition.insert(key, value);
        is_needed = true;
    }
    if !is_needed || definition.is_empty() {
        return;
    }
    let policy = takeover.name.as_str();
    fragment.set(&["policies", policy, "pattern"], Tree::text(&takeover.pattern));
    fragment.set(&["policies", policy, "applyTo"], Tree::plain(takeover.apply_to.as_str()));
    fragment.set(&["policies", policy, "priority"], Tree::plain(takeover.priority));
    let entries = definition.iter().map(|(key, value)| entry(takeover::spec_key(key), value::with_unit(key, value)));
    fragment.set(&["policies", policy, "definition"], Tree::table(entries));
    for key in ["dead-letter-exchange", "alternate-exchange"] {
        if let Some(exchange) = exchange_named(definition.get(key).copied()) {
            subject.declare_external(fragment, &exchange, &format!("the messages that policy `{policy}` sends there"));
        }
    }
}

/// Returns a warning about the effect of a setting on the queue's current messages. Returns `None` if the setting is
/// not a risk. A plan with the policy reports the effect as a hazard.
fn risk(subject: &Subject<'_>, (key, value): &(&'static str, ArgumentValue)) -> Option<String> {
    let Object::Queue(_, queue) = subject.before else { return None };
    let messages = subject.planned.live.as_ref().and_then(|live| live.messages);
    let is_stream = queue.queue_type() == Some(QueueType::Stream);
    let limit = value.as_integer().and_then(|limit| u64::try_from(limit).ok());
    let held = match messages {
        Some(0) if !is_stream && *key != "expires" && *key != "overflow" => return None,
        Some(messages) => format!("the queue holds {}", count(messages, "message")),
        None => "the number of messages in the queue is unknown".to_owned(),
    };
    let setting = setting_text(&(key, value.clone()));
    match *key {
        "max-length" if messages.zip(limit).is_none_or(|(messages, limit)| messages > limit) => {
            Some(format!("{setting}: {held}, and messages over the limit are removed immediately"))
        }
        "max-age" | "max-length-bytes" if is_stream => {
            Some(format!("{setting}: the oldest messages beyond this limit are deleted"))
        }
        "max-length-bytes" | "message-ttl" => Some(format!("{setting}: {held}, and some can be removed")),
        "expires" => Some(format!("{setting}: the queue itself is deleted after it has been unused for that long")),
        "dead-letter-strategy" => {
            Some(format!("{setting}: messages that are waiting to be dead-lettered can be dropped"))
        }
        "overflow" if settings_with_policy(subject, key, value).is_some_and(|it| it.overflow_behavior().rejects()) => {
            Some(format!("{setting}: publishes are rejected when the queue is full"))
        }
        _ => None,
    }
}
