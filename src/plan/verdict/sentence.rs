//! The sentence in which a broker refuses.

use super::erlang::printed;
use crate::diff::FieldChange;
use crate::model::{ArgumentValue, Object, VhostName};

/// The sentence that an application gets which declares the object as `after` says: the broker's own, word for word.
pub fn sentence(vhost: &VhostName, object: &Object, change: &FieldChange) -> String {
    let (kind, name) = match object {
        Object::Queue(name, _) => ("queue", name.as_str()),
        Object::Exchange(name, _) => ("exchange", name.as_str()),
        Object::Policy(name, _) => ("policy", name.as_str()),
        Object::Vhost(_) | Object::Binding(_) => ("vhost", vhost.as_str()),
    };
    let typed = |value: &ArgumentValue| format!("the value '{}' of type '{}'", printed(value), value.amqp_type());
    let tail = match (&change.after, &change.before) {
        (Some(received), Some(current)) => {
            format!("received '{}' but current is '{}'", printed(received), printed(current))
        }
        (Some(received), None) => format!("received {} but current is none", typed(received)),
        (None, Some(current)) => format!("received none but current is {}", typed(current)),
        (None, None) => "received none but current is none".to_owned(),
    };
    format!("PRECONDITION_FAILED - inequivalent arg '{}' for {kind} '{name}' in vhost '{vhost}': {tail}", change.field)
}
