//! Predicts the error message with which a broker refuses a declare.

use super::erlang::printed;
use super::exchange::atom;
use super::queue::as_compared;
use crate::diff::{Field, FieldChange};
use crate::model::{ArgumentValue, Object, VhostName};
use crate::rabbitmq::BrokerProfile;

/// Returns the error message for an application that declares `object`, in the broker's own words.
pub fn broker_error(vhost: &VhostName, object: &Object, change: &FieldChange, profile: &BrokerProfile) -> String {
    let (kind, name) = match object {
        Object::Queue(name, _) => ("queue", name.as_str()),
        Object::Exchange(name, _) => ("exchange", name.as_str()),
        Object::Policy(name, _) => ("policy", name.as_str()),
        Object::Vhost(_) | Object::Binding(_) | Object::Record(_) => ("vhost", vhost.as_str()),
    };
    let compared = |value: &Option<ArgumentValue>| {
        value.as_ref().map(|value| match change.field.argument() {
            Some(name) => as_compared(name, value, profile).into_owned(),
            None => value.clone(),
        })
    };
    let typed = |value: &ArgumentValue| format!("the value '{}' of type '{}'", printed(value), value.amqp_type());
    let tail = match (compared(&change.after), compared(&change.before)) {
        (Some(received), Some(current)) if change.field == Field::Type => {
            format!("received '{}' but current is '{}'", atom(&received), atom(&current))
        }
        (Some(received), Some(current)) => {
            format!("received '{}' but current is '{}'", printed(&received), printed(&current))
        }
        // An exchange that was imported without `auto_delete`.
        (Some(received), None) if change.field.argument().is_none() => {
            format!("received '{}' but current is none", printed(&received))
        }
        (Some(received), None) => format!("received {} but current is none", typed(&received)),
        (None, Some(current)) => format!("received none but current is {}", typed(&current)),
        (None, None) => "received none but current is none".to_owned(),
    };
    format!("PRECONDITION_FAILED - inequivalent arg '{}' for {kind} '{name}' in vhost '{vhost}': {tail}", change.field)
}

/// Returns the error message for an exchange type that the broker does not know. The broker checks nothing else then.
pub fn unknown_type(kind: &ArgumentValue) -> String {
    format!("PRECONDITION_FAILED - unknown exchange type '{kind}'")
}
