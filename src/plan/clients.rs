//! Adds the hazards for applications that use a queue that the plan deletes or recreates. A hazard describes the effect
//! on each client, or the loss of messages that applications publish to the queue through the default exchange.

use super::activity::{DefaultExchangePublishes, QueueActivity};
use super::changes_by_kind::PlanBuilder;
use super::client_groups::{client_groups, matching_groups};
use super::context::PlanContext;
use super::document::{ChangeKind, PlannedChange};
use super::hazard::{Hazard, HazardKind};
use super::verdict::Verdict;
use crate::model::count::count;
use crate::model::known_clients::{KnownClient, OnCancel, OnMissing, Reaction};
use crate::model::{ArgumentValue, BrokerVersion, Object, Queue, QueueName, QueueType};
use crate::rabbitmq::{may_subscribe_again, needs_pause};
use std::collections::BTreeSet;

/// Adds the hazards for the clients of all queues that the plan deletes or recreates.
pub(super) fn hazards(builder: &mut PlanBuilder, context: &PlanContext<'_>) {
    let mut found = Vec::new();
    for change in &builder.changes {
        let (Some(Object::Queue(name, before)), ChangeKind::Delete | ChangeKind::Recreate) =
            (&change.before, change.kind)
        else {
            continue;
        };
        let Some(live) = context.activity.queues.get(name) else { continue };
        let mut add = |kind, text, must_be_allowed| {
            let address = change.address.clone();
            found.push(Hazard { kind, address, text, messages: None, must_be_allowed });
        };
        if let Some(publishes) = live.default_exchange {
            let text = default_exchange_text(publishes, change.kind);
            add(HazardKind::PublishLoss, text, publishes.per_second > 0);
        }
        let is_migration = builder.migrations.iter().any(|migration| migration.queue == *name);
        for text in client_texts(context, change, (name, is_migration), live) {
            add(HazardKind::ConsumerDisruption, text, true);
        }
        let exists = |name: &str| context.current.queues.contains_key(&QueueName::from(name));
        let version = context.profile.version;
        if let Some(text) = global_prefetch_text((name, before), change, version, live, exists) {
            add(HazardKind::ConsumerDisruption, text, true);
        }
    }
    builder.hazards.extend(found);
}

fn default_exchange_text(publishes: DefaultExchangePublishes, kind: ChangeKind) -> String {
    let DefaultExchangePublishes { per_second, is_upper_bound } = publishes;
    let rate = match per_second {
        0 => "no messages in the last minute".to_owned(),
        many if is_upper_bound => {
            format!(
                "at most {} per second in the last minute; the broker does not report the exact number",
                count(many, "message")
            )
        }
        1 => "at most 1 message per second in the last minute".to_owned(),
        many => format!("{} per second in the last minute", count(many, "message")),
    };
    let consequence = match kind {
        ChangeKind::Delete => {
            "after the deletion, these messages will be lost; change or stop the publishers before the apply"
        }
        ChangeKind::Create | ChangeKind::Change | ChangeKind::Recreate | ChangeKind::Conflict => {
            "topo cannot redirect these messages, so those that arrive while the queue does not exist are lost; publish \
             to a different exchange, or pause the publishers during the apply"
        }
    };
    let verb = if is_upper_bound { "may publish" } else { "publish" };
    format!("applications {verb} to it through the default exchange ({rate}): {consequence}")
}

/// Returns a sentence for each client of a queue.
fn client_texts(
    context: &PlanContext<'_>,
    change: &PlannedChange,
    (queue, is_migration): (&QueueName, bool),
    live: &QueueActivity,
) -> Vec<String> {
    let is_quorum = |object: &Option<Object>| match object {
        Some(Object::Queue(_, queue)) => queue.queue_type() == Some(QueueType::Quorum),
        Some(Object::Vhost(_) | Object::Exchange(..) | Object::Policy(..) | Object::Binding(_) | Object::Record(_))
        | None => false,
    };
    // Only a migration waits until the channels notice that the queue does not exist.
    let needs_pause = needs_pause(context.profile.version, is_quorum(&change.before));
    let may_lose_consumers = needs_pause && !is_migration && change.kind == ChangeKind::Recreate;
    let has_pause = needs_pause && is_migration;
    let remark = match may_subscribe_again(context.profile.version, is_quorum(&change.before)) {
        true if change.kind == ChangeKind::Recreate => {
            " (RabbitMQ 3.8 itself sometimes subscribes the consumers to the new queue; such consumers keep working)"
        }
        true | false => "",
    };
    let exists = |name: &str| context.current.queues.contains_key(&QueueName::from(name));
    let texts = client_groups(live).into_iter().map(|group| {
        let known = group.known(queue, exists);
        format!(
            "{} {}{remark}",
            group.text(&known),
            match may_lose_consumers {
                true => "may receive neither a cancel nor messages: restart the application after the apply".to_owned(),
                false => reactions(&known, change, has_pause),
            }
        )
    });
    texts.collect()
}

/// Describes what happens to a client. `known` contains several clients if topo cannot distinguish them.
fn reactions(known: &[&KnownClient], change: &PlannedChange, has_pause: bool) -> String {
    let mut by_reaction: Vec<(String, Vec<&str>)> = Vec::new();
    for client in known {
        let text = reaction(client, change, has_pause);
        match by_reaction.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(client.name),
            None => by_reaction.push((text, vec![client.name])),
        }
    }
    match &by_reaction[..] {
        [] => "will be canceled: how this client will react is unknown; after the apply, check that the queue has consumers"
            .to_owned(),
        [(text, _)] => text.clone(),
        several => {
            let parts: Vec<String> =
                several.iter().map(|(text, names)| format!("{} {text}", names.join(" or "))).collect();
            format!("will be canceled; the reaction depends on the framework: {}", parts.join("; "))
        }
    }
}

fn reaction(client: &KnownClient, change: &PlannedChange, has_pause: bool) -> String {
    let deleted = change.kind == ChangeKind::Delete;
    match (client.on_cancel, client.on_missing) {
        (OnCancel::Exits, _) if deleted => "will exit".to_owned(),
        (OnCancel::Exits, _) => "will exit: start the application again after the apply".to_owned(),
        (OnCancel::Hangs, _) if deleted => "will hang without an error".to_owned(),
        (OnCancel::Hangs, _) => "will hang without an error: restart the application after the apply".to_owned(),
        // Not expected here: a client that the broker never cancels has no consumers.
        (OnCancel::NotCanceled, _) => "will not be canceled".to_owned(),
        (OnCancel::Declares, _) | (OnCancel::Subscribes, OnMissing::Declares) if deleted => {
            "will declare the queue again".to_owned()
        }
        (OnCancel::Subscribes, OnMissing::Exits) if deleted => "will exit".to_owned(),
        (OnCancel::Subscribes, OnMissing::Subscribes) if deleted => {
            "will try to subscribe again every few seconds".to_owned()
        }
        (OnCancel::Declares, on_missing) if has_pause && client.redeclares_repeatedly => {
            let end = match on_missing {
                OnMissing::Exits => "exits with a 404, and must be started again after the apply",
                OnMissing::Subscribes | OnMissing::Declares => "subscribes again",
            };
            format!(
                "will probably declare the old queue again before topo declares the new queue, so topo will roll back \
                 the migration; otherwise, the client will exit with a 406 or hang: before the apply, stop the \
                 application, or configure it to use the queue without declaring it (it then {end})"
            )
        }
        (OnCancel::Subscribes, OnMissing::Exits) if has_pause => {
            "will exit with a 404: start the application again after the apply".to_owned()
        }
        (OnCancel::Declares, _) | (OnCancel::Subscribes, OnMissing::Declares)
            if has_pause || client.on_cancel == OnCancel::Declares =>
        {
            let end = match client.on_mismatch {
                Reaction::Exits => "exit",
                Reaction::Retries => "hang",
            };
            format!(
                "will declare the queue again, and {end} with a 406{}",
                declared(change, " unless the application declares ")
            )
        }
        (OnCancel::Declares | OnCancel::Subscribes, _) => "will subscribe again".to_owned(),
    }
}

/// Returns the settings that a client must declare, after `prefix`: ` unless the application declares x-max-length
/// 5000`. Returns an empty string if there are none.
fn declared(change: &PlannedChange, prefix: &str) -> String {
    let settings: Vec<String> = change
        .fields
        .iter()
        .filter(|field| field.verdict == Verdict::Conflict)
        .map(|field| match &field.after {
            Some(ArgumentValue::Text(text)) if text.is_empty() => format!("{} \"\"", field.field),
            Some(value) => format!("{} {value}", field.field),
            None => format!("no {}", field.field),
        })
        .collect();
    match settings.is_empty() {
        true => String::new(),
        false => format!("{prefix}{}", settings.join(" and ")),
    }
}

/// Describes consumers with a global prefetch count on a queue that becomes a quorum queue or a stream, which refuses
/// such consumers with 540 NOT_IMPLEMENTED. RabbitMQ 4.0 and later do not list the global prefetch count, so topo knows
/// only the clients that use it by default. Returns `None` on 4.3 and later: by default, these versions apply a global
/// prefetch count to each consumer separately.
fn global_prefetch_text(
    (queue, before): (&QueueName, &Queue),
    change: &PlannedChange,
    version: BrokerVersion,
    live: &QueueActivity,
    exists: impl Fn(&str) -> bool + Copy,
) -> Option<String> {
    let Some(Object::Queue(_, after)) = &change.after else { return None };
    let refusing = |queue: &Queue| match queue.queue_type() {
        Some(QueueType::Quorum) => Some("quorum queues do"),
        Some(QueueType::Stream) => Some("streams do"),
        Some(QueueType::Classic) | None => None,
    };
    let refusing = refusing(after).filter(|_| change.kind == ChangeKind::Recreate && refusing(before).is_none())?;
    let is_listed = !version.is_at_least(4, 0);
    let groups = match is_listed {
        true => matching_groups(live, |client| client.has_global_prefetch),
        false if version.is_at_least(4, 3) => Vec::new(),
        false => client_groups(live),
    };
    let mut consumers = 0;
    let (mut named, mut options) = (Vec::new(), BTreeSet::new());
    for group in groups {
        let known = group.known(queue, exists);
        let option = match &known[..] {
            [one] => one.per_consumer_prefetch,
            _ => None,
        };
        if is_listed || option.is_some() {
            consumers += group.consumers;
            named.push(group.text(&known));
            options.insert(option.unwrap_or("set the prefetch count with global=false"));
        }
    }
    let (has, verb) = if consumers == 1 { ("has", "uses") } else { ("have", "use") };
    let (verb, will) = match is_listed {
        true => (format!("{has} a connection with a global prefetch count"), "will refuse"),
        false => (format!("{verb} a global prefetch count by default"), "would then refuse"),
    };
    (consumers > 0).then(|| {
        format!(
            "{} {verb}, which {refusing} not support: the broker {will} the subscription (540 NOT_IMPLEMENTED); before the \
             apply, change the application: {}",
            named.join(" and "),
            options.into_iter().collect::<Vec<_>>().join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::known_clients::KNOWN_CLIENTS;
    use crate::plan::QueueClient;
    use serde_json::json;

    /// Returns a change of kind `kind` to the `jobs` queue. The queue type changes from classic to `after_type`.
    fn change(kind: &str, after_type: &str) -> PlannedChange {
        let queue = |kind: &str| json!({"queue": {"name": "jobs", "durable": true, "auto_delete": false, "arguments": {"x-queue-type": kind}}});
        serde_json::from_value(json!({
            "address": "queues/shop/jobs", "kind": kind, "before": queue("classic"), "after": queue(after_type),
            "fields": [
                {"field": "x-max-length", "before": 1000, "after": 5000, "verdict": "conflict"},
                {"field": "x-max-priority", "before": 5, "after": null, "verdict": "conflict"}
            ]
        }))
        .unwrap()
    }

    fn texts(names: &[&str], kind: &str, has_pause: bool) -> String {
        let known: Vec<&KnownClient> = KNOWN_CLIENTS.iter().filter(|client| names.contains(&client.name)).collect();
        assert_eq!(known.len(), names.len());
        reactions(&known, &change(kind, "classic"), has_pause)
    }

    #[test]
    fn reactions_depend_on_the_client_and_the_pause() {
        let declares = "will declare the queue again, and exit with a 406 unless the application declares x-max-length 5000 \
                        and no x-max-priority";
        let rolls_back = "will probably declare the old queue again before topo declares the new queue, so topo will \
                          roll back the migration; otherwise, the client will exit with a 406 or hang: before the apply, stop the application, \
                          or configure it to use the queue without declaring it (it then exits with a 404, and must be started again after the apply)";
        assert_eq!(texts(&["Celery"], "recreate", false), declares);
        assert_eq!(texts(&["Celery"], "recreate", true), rolls_back);
        assert!(
            texts(&["aio-pika", "FastStream"], "recreate", true).starts_with("will declare the queue again, and hang")
        );
        assert_eq!(texts(&["Celery"], "delete", false), "will declare the queue again");
        assert_eq!(texts(&["dramatiq"], "recreate", true), "will subscribe again");
        assert_eq!(texts(&["dramatiq"], "delete", true), "will try to subscribe again every few seconds");
        assert_eq!(
            texts(&["bunny"], "recreate", true),
            "will hang without an error: restart the application after the apply"
        );
        assert_eq!(texts(&["bunny"], "delete", true), "will hang without an error");
        assert_eq!(texts(&["pika"], "recreate", false), "will exit: start the application again after the apply");
        assert!(texts(&[], "recreate", false).starts_with("will be canceled: how this client will react is unknown"));
    }

    #[test]
    fn clients_of_the_same_library_are_listed_by_their_reactions() {
        let same = texts(&["amqplib", "NestJS"], "recreate", true);
        assert_eq!(same, "will hang without an error: restart the application after the apply");
        let several = texts(&["amqplib", "NestJS", "rascal"], "recreate", true);
        assert_eq!(
            several,
            "will be canceled; the reaction depends on the framework: amqplib or NestJS will hang without an error: restart \
             the application after the apply; rascal will subscribe again"
        );
    }

    #[test]
    fn publish_rates_are_marked_as_exact_or_upper_bounds() {
        let text = |per_second, is_upper_bound| {
            default_exchange_text(DefaultExchangePublishes { per_second, is_upper_bound }, ChangeKind::Recreate)
        };
        assert!(
            text(0, false).contains("(no messages in the last minute): topo cannot redirect"),
            "{}",
            text(0, false)
        );
        assert!(
            text(1, false).contains(
                "publish to it through the default exchange (at most 1 message per second in the last minute)"
            )
        );
        assert!(
            text(250, true).contains("may publish to it through the default exchange (at most 250 messages per second")
        );
    }

    #[test]
    fn global_prefetch_counts_are_reported_for_quorum_queues_and_streams() {
        let client = |product: &str, has_global_prefetch| QueueClient {
            product: Some(product.to_owned()),
            version: None,
            has_global_prefetch,
        };
        let text = |version: &str, flagged: bool, kind: &str, after: &str| {
            let live = QueueActivity {
                consumers: Some(vec!["h:1".to_owned(), "h:2".to_owned(), "h:3".to_owned()]),
                clients: Some(vec![client("py-amqp", flagged), client("other", flagged), client("Bunny", false)]),
                ..QueueActivity::default()
            };
            let change = change(kind, after);
            let Some(Object::Queue(name, before)) = &change.before else { panic!("expected a queue") };
            global_prefetch_text((name, before), &change, version.parse().unwrap(), &live, |_| false)
        };
        assert_eq!(
            text("3.10.8", true, "recreate", "quorum").unwrap(),
            "1 consumer using the unknown client other at h and 1 consumer using Celery (py-amqp) at h have a connection with a \
             global prefetch count, which quorum queues do not support: the broker will refuse the subscription (540 \
             NOT_IMPLEMENTED); before the apply, change the application: set `x-queue-type: quorum` in `queue_arguments` of \
             the queue; set the prefetch count with global=false"
        );
        assert!(text("3.10.8", true, "recreate", "stream").unwrap().contains("which streams do not support"));
        assert!(text("4.0.5", false, "recreate", "quorum").unwrap().starts_with(
            "1 consumer using Celery (py-amqp) at h uses a global prefetch count by default, which quorum queues do not support: \
             the broker would then refuse the subscription"
        ));
        for (version, flagged, kind, after) in [
            ("3.10.8", true, "recreate", "classic"),
            ("3.10.8", true, "delete", "quorum"),
            ("3.10.8", false, "recreate", "quorum"),
            ("4.3.6", false, "recreate", "quorum"),
        ] {
            assert_eq!(text(version, flagged, kind, after), None, "{version} {flagged} {kind} {after}");
        }
    }
}
