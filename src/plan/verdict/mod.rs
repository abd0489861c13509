//! Predicts the broker's response to a field that differs, including the error message.
//!
//! Sources: `rabbit_amqqueue:assert_equivalent` (queues: durable, auto_delete, then arguments),
//! `rabbit_exchange:assert_equivalence` (exchanges: type, durable, auto_delete, internal, then `alternate-exchange` as
//! the only argument), `rabbit_misc:assert_args_equivalence` (values), and tests against real brokers.
//!
//! topo cannot read one broker setting, because the management API does not report it:
//! `quorum_queue.property_equivalence.relaxed_checks_on_redeclaration` (RabbitMQ 3.11.16 and later, off by default). If
//! it is on, and a client declares an existing quorum queue as a classic queue, the broker compares only a few
//! arguments (`rabbit_amqqueue:assert_equivalent`). The verdicts assume that the setting is off. topo always sets the
//! queue type, so the setting affects topo's own declarations only if the queue types differ. In that case, the broker
//! would accept the declaration and change nothing.

mod erlang;
mod fields;

pub use erlang::{broker_error, unknown_type};
pub use fields::Verdict;

use crate::diff::{Field, FieldChange};
use crate::model::Object;
use crate::rabbitmq::BrokerProfile;

/// Returns the verdict on one field that differs between a current and a desired object.
pub fn verdict(change: &FieldChange, before: &Object, after: &Object, profile: &BrokerProfile) -> Verdict {
    match (before, after) {
        (Object::Queue(_, live), Object::Queue(_, desired)) => {
            fields::queue_verdict(change, live, (desired, after), profile)
        }
        (Object::Exchange(_, live), Object::Exchange(_, desired)) => {
            fields::exchange_verdict(change, live, (desired, after), profile)
        }
        (
            Object::Vhost(_)
            | Object::Exchange(..)
            | Object::Policy(..)
            | Object::Queue(..)
            | Object::Binding(_)
            | Object::Record(_),
            _,
        ) => Verdict::InPlace,
    }
}

/// Returns true if the broker would reject a declaration of the existing object because of this field. Returns true for
/// every conflict, and for an invalid field that the broker compares before it validates the field.
pub fn is_refused_again(change: &FieldChange, before: &Object, after: &Object, profile: &BrokerProfile) -> bool {
    match (before, after) {
        (Object::Queue(_, live), Object::Queue(_, desired)) => {
            fields::is_queue_refused_again(change, live, desired, profile)
        }
        (Object::Exchange(_, live), Object::Exchange(..)) => fields::is_exchange_refused_again(change, live),
        (
            Object::Vhost(_)
            | Object::Exchange(..)
            | Object::Policy(..)
            | Object::Queue(..)
            | Object::Binding(_)
            | Object::Record(_),
            _,
        ) => verdict(change, before, after, profile) == Verdict::Conflict,
    }
}

/// Returns the position of a field in the order in which the broker compares the fields of a current object. The broker
/// reports only the first mismatch.
pub fn rank(field: &Field, before: &Object, profile: &BrokerProfile) -> (usize, usize) {
    match field {
        Field::Type => (0, 0),
        Field::Durable => (1, 0),
        Field::AutoDelete => (2, 0),
        Field::Internal => (3, 0),
        Field::Argument(name) => match before {
            Object::Queue(_, live) => (4, fields::position(name, live, profile)),
            Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Binding(_) | Object::Record(_) => {
                (4, 0)
            }
        },
        Field::Pattern => (5, 0),
        Field::ApplyTo => (6, 0),
        Field::Priority => (7, 0),
        Field::Definition(_) => (8, 0),
        Field::Description => (9, 0),
        Field::Tags => (9, 1),
        Field::DefaultQueueType => (10, 0),
        Field::Record(_) => (7, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::fields;
    use crate::model::{ArgumentValue, Queue, QueueName, VhostName};
    use std::collections::BTreeMap;

    fn queue(arguments: &[(&str, ArgumentValue)]) -> Object {
        let arguments: BTreeMap<_, _> =
            arguments.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        Object::Queue(QueueName::from("q"), Queue { durable: true, auto_delete: false, exclusive: false, arguments })
    }

    fn verdicts(before: &[(&str, ArgumentValue)], after: &[(&str, ArgumentValue)], version: &str) -> Vec<Verdict> {
        let (before, after) = (queue(before), queue(after));
        let profile = BrokerProfile::of(version.parse().unwrap());
        fields(&before, &after).iter().map(|change| verdict(change, &before, &after, &profile)).collect()
    }

    #[test]
    fn an_injected_queue_type_is_equal() {
        assert_eq!(verdicts(&[], &[("x-queue-type", "classic".into())], "4.0.5"), [Verdict::Equal]);
        assert_eq!(verdicts(&[], &[("x-queue-type", "quorum".into())], "4.0.5"), [Verdict::Conflict]);
    }

    #[test]
    fn numbers_and_strings_are_never_equal() {
        let ttl = |value: ArgumentValue| [("x-message-ttl", value)];
        assert_eq!(verdicts(&ttl(1.into()), &ttl(2.into()), "3.10.8"), [Verdict::Conflict]);
        assert_eq!(verdicts(&ttl(1.into()), &ttl("1".into()), "3.10.8"), [Verdict::Invalid]);
        let float = ArgumentValue::Float(crate::model::Float(1.0));
        assert_eq!(verdicts(&ttl(1.into()), &ttl(float.clone()), "3.10.8"), [Verdict::Invalid]);
        // No broker validates the delivery limit, so the verdict is a conflict instead of an invalid value.
        let limit = |value: ArgumentValue| [("x-queue-type", "quorum".into()), ("x-delivery-limit", value)];
        assert_eq!(verdicts(&limit(1.into()), &limit(float), "3.10.8"), [Verdict::Conflict]);
        assert_eq!(verdicts(&limit(1.into()), &limit("1".into()), "4.3.6"), [Verdict::Conflict]);
        assert_eq!(verdicts(&limit(1.into()), &limit(2.into()), "3.8.9"), [Verdict::Drift]);
        assert_eq!(verdicts(&[("x-foo", 1.into())], &[], "3.10.8"), [Verdict::Unknown]);
    }

    #[test]
    fn ages_are_compared_by_duration_since_4_3_6() {
        let age = |text: &str| [("x-queue-type", "stream".into()), ("x-max-age", text.into())];
        assert_eq!(verdicts(&age("7D"), &age("168h"), "4.3.6"), [Verdict::Equal]);
        assert_eq!(verdicts(&age("7D"), &age("168h"), "4.3.5"), [Verdict::Conflict]);
    }

    #[test]
    fn missing_queue_type_equals_the_default() {
        let (bare, classic) = (queue(&[]), queue(&[("x-queue-type", "classic".into())]));
        let mut profile = BrokerProfile::of("4.0.5".parse().unwrap());
        let change = fields(&classic, &bare).remove(0);
        assert_eq!(verdict(&change, &classic, &bare, &profile), Verdict::Equal);
        profile.default_queue_type = Some("quorum".to_owned());
        assert_eq!(verdict(&change, &classic, &bare, &profile), Verdict::Conflict);
    }

    #[test]
    fn first_mismatch_depends_on_the_current_type() {
        let first = |kind: &str, version: &str| {
            let name = ("x-queue-type", kind.into());
            let (before, after) = (
                queue(&[name.clone(), ("x-expires", 1.into()), ("x-dead-letter-exchange", "a".into())]),
                queue(&[name, ("x-expires", 2.into()), ("x-dead-letter-exchange", "b".into())]),
            );
            let profile = BrokerProfile::of(version.parse().unwrap());
            let rank = |field: &Field| rank(field, &before, &profile);
            fields(&before, &after).into_iter().map(|change| change.field).min_by_key(rank).unwrap().to_string()
        };
        assert_eq!(first("classic", "4.0.5"), "x-expires");
        assert_eq!(first("quorum", "3.9.29"), "x-expires");
        assert_eq!(first("quorum", "3.10.8"), "x-dead-letter-exchange");
        assert_eq!(first("quorum", "3.8.9"), "x-expires");
    }

    #[test]
    fn error_message_matches_the_broker() {
        let (before, after) = (queue(&[("x-message-ttl", 60_000.into())]), queue(&[("x-message-ttl", 30_000.into())]));
        let profile = BrokerProfile::of("3.10.8".parse().unwrap());
        let text = broker_error(&VhostName::from("t1"), &after, &fields(&before, &after)[0], &profile);
        assert_eq!(
            text,
            "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost 't1': received '30000' but current is '60000'"
        );
    }
}
