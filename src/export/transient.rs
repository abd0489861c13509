//! Recognizes temporary objects, which do not belong in a spec. These are the temporary objects of known clients, and
//! queues that expire and are not connected to other objects.

use super::left_out::Reason;
use crate::model::known_clients::owner_of_transient;
use crate::model::naming::TierName;
use crate::model::{ArgumentValue, Destination, ObjectId, QueueName, Topology};
use crate::rabbitmq::{dead_lettering, queue_wiring};
use std::collections::BTreeSet;

/// Returns the reason to leave out a queue or an exchange if a known client uses the name for a temporary object.
pub(super) fn reason_for_name(name: &str, expires: bool) -> Option<Reason> {
    owner_of_transient(name, expires).map(|(client, group)| Reason::OwnedByClient { client: client.name, group })
}

/// Returns the queues with `x-expires` that are not connected to exported objects. They have no binding and no
/// dead-letter exchange, and no queue, policy or record refers to them. A connected queue, such as a hand-written retry
/// queue, can be part of the topology. Objects that are left out do not count, because the exported topology does not
/// contain them.
pub(super) fn temporary_queues(topology: &Topology, is_left_out: impl Fn(ObjectId) -> bool) -> BTreeSet<QueueName> {
    let is_tier =
        |name: &QueueName| TierName::parse(name).is_some_and(|tier| topology.queues.contains_key(&tier.queue));
    let queues = topology.queues.iter().filter(|(_, queue)| queue.expires()).map(|(name, _)| name);
    let mut queues: BTreeSet<QueueName> =
        queues.filter(|name| !is_tier(name) && queue_wiring(topology, name).is_none()).cloned().collect();
    if queues.is_empty() {
        return queues;
    }
    for binding in &topology.bindings {
        let Destination::Queue(name) = &binding.destination else { continue };
        let from_exported = !is_left_out(ObjectId::Exchange(binding.source.clone()));
        if from_exported && queues.contains(name) && !is_left_out(ObjectId::Binding(binding.clone())) {
            queues.remove(name);
        }
    }
    let exported = topology.queues.iter().filter(|(name, _)| !is_left_out(ObjectId::Queue((*name).clone())));
    let of_queues = exported.filter_map(|(_, queue)| dead_lettering(&queue.arguments, "x-"));
    let of_policies = topology.policies.values().filter_map(|it| dead_lettering(&it.definition, ""));
    // The default exchange routes a message to the queue whose name equals the routing key.
    let to_default = of_queues.chain(of_policies).filter(|to| to.exchange.as_str().is_empty());
    let targets = to_default.filter_map(|to| to.routing_key);
    let exported = topology.records.iter().filter(|(id, _)| !is_left_out(ObjectId::Record((*id).clone())));
    let fields = exported.flat_map(|(_, record)| record.fields.values());
    let referenced = fields.filter_map(ArgumentValue::as_text).map(str::to_owned);
    for name in targets.chain(referenced) {
        queues.remove(&QueueName::new(name));
    }
    queues
}

#[cfg(test)]
mod tests {
    use crate::export::tests::{apply_spec, export_topology, profile};
    use crate::model::{Arguments, Binding, Destination, Exchange, Queue, QueueName, Topology};
    use std::fmt::Write as _;

    const VERSION: &str = "4.0.5";

    /// Returns the objects that a Celery worker with quorum queues declares.
    fn celery() -> Topology {
        let mut exchanges = "exchanges:\n  celery: {type: direct}\n  celeryev: {type: topic}\n  \
                             celery_delayed_delivery: {type: topic}\n"
            .to_owned();
        let mut queues = "queues:\n  celery: {type: quorum, bindings: [{exchange: celery, routingKey: celery}, \
                          {exchange: celery_delayed_delivery, routingKey: '#.celery'}]}\n"
            .to_owned();
        for level in 0..28 {
            let next = if level == 0 { "delivery".to_owned() } else { (level - 1).to_string() };
            let _ = writeln!(exchanges, "  celery_delayed_{level}: {{type: topic}}");
            let _ = writeln!(
                queues,
                "  celery_delayed_{level}:\n    {{type: quorum, messageTtl: {}s, deadLetter: {{exchange: \
                 celery_delayed_{next}}}, bindings: [{{exchange: celery_delayed_{level}, routingKey: '1.#'}}]}}",
                1_u64 << level
            );
        }
        let mut topology = apply_spec(&(exchanges + &queues), &profile(VERSION));
        let transient = Queue { durable: false, exclusive: false, auto_delete: true, arguments: Arguments::new() };
        topology.queues.insert("celery@host.celery.pidbox".into(), transient);
        let pidbox = Exchange {
            kind: "fanout".to_owned(),
            durable: false,
            auto_delete: false,
            internal: false,
            arguments: Arguments::new(),
        };
        topology.exchanges.insert("celery.pidbox".into(), pidbox);
        let destination = Destination::Queue("celery@host.celery.pidbox".into());
        let (source, routing_key) = ("celery.pidbox".into(), String::new());
        topology.bindings.insert(Binding { source, destination, routing_key, arguments: Arguments::new() });
        topology
    }

    fn export(topology: &Topology) -> (String, String) {
        let export = export_topology(topology, &profile(VERSION), &[]);
        (export.text, export.left_out.lines().join("\n"))
    }

    /// Returns the comments on the `ignore` list, except the first comment, and the items in the list.
    fn ignored(text: &str) -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.starts_with("# temporary objects of clients: ")).skip(1);
        let lines = lines.take_while(|line| !line.is_empty()).filter(|line| *line != "ignore:");
        lines.map(|line| line.trim_start().trim_start_matches("- ").trim_matches('"').to_owned()).collect()
    }

    #[test]
    fn transient_objects_of_celery_are_left_out() {
        let (text, left_out) = export(&celery());
        let queues = "28 queues created by Celery for delayed delivery: celery_delayed_0, celery_delayed_1, \
                      celery_delayed_2, celery_delayed_3, celery_delayed_4, celery_delayed_5, celery_delayed_6, \
                      celery_delayed_7 and 20 more";
        assert!(left_out.contains(queues), "{left_out}");
        let exchanges = "29 exchanges created by Celery for delayed delivery: celery_delayed_0, celery_delayed_1, \
                         celery_delayed_2,";
        assert!(left_out.contains(exchanges), "{left_out}");
        assert!(
            left_out.contains("1 queue created by Celery for remote control: celery@host.celery.pidbox"),
            "{left_out}"
        );
        assert_eq!(ignored(&text), ["*.pidbox", "*celery_delayed_*"], "{text}");
        let names = text.lines().filter(|line| !line.starts_with(['#', '-']) && !line.trim().starts_with('-'));
        assert_eq!(names.filter(|line| line.contains("delayed") || line.contains("pidbox")).count(), 0, "{text}");
    }

    #[test]
    fn ignore_lists_names_if_a_glob_matches_an_exported_object() {
        let mut topology = celery();
        let exported =
            apply_spec("policies: {my_celery_delayed_: {pattern: ^x, definition: {maxLength: 5}}}", &profile(VERSION));
        topology.policies = exported.policies;
        let (text, _) = export(&topology);
        let found = ignored(&text);
        assert_eq!(found[0], "# 9 more names are not listed: add a glob that matches only these objects", "{text}");
        assert_eq!(found[1..4], ["*.pidbox", "celery_delayed_0", "celery_delayed_1"], "{text}");
        assert_eq!((found.len(), &found[21][..]), (22, "celery_delayed_19"), "{text}");
    }

    #[test]
    fn unconnected_queues_that_expire_are_left_out() {
        let spec = "
exchanges: {e: {type: topic}}
queues:
  reply.2: {type: classic, expires: 1h}
  reply.10: {type: classic, expires: 1h}
  bound: {type: classic, expires: 1h, bindings: [{exchange: e, routingKey: k}]}
  tier: {type: classic, expires: 1h, messageTtl: 5s, deadLetter: {exchange: '', routingKey: work}}
  work: {type: classic, deadLetter: {exchange: '', routingKey: dead}}
  dead: {type: classic, expires: 7d}
";
        let mut topology = apply_spec(spec, &profile(VERSION));
        // A binding from an exchange that is left out does not count.
        let exchange = Exchange {
            kind: "fanout".to_owned(),
            durable: false,
            auto_delete: false,
            internal: false,
            arguments: Arguments::new(),
        };
        topology.exchanges.insert("temporary".into(), exchange);
        let destination = Destination::Queue("reply.2".into());
        let (source, routing_key) = ("temporary".into(), String::new());
        topology.bindings.insert(Binding { source, destination, routing_key, arguments: Arguments::new() });
        let (text, left_out) = export(&topology);
        assert!(left_out.contains("2 queues that expire when unused: reply.2, reply.10"), "{left_out}");
        for name in ["bound", "tier", "work", "dead"] {
            assert!(text.contains(&format!("  {name}:")), "{name}\n{text}");
        }
        assert_eq!(ignored(&text), ["reply.2", "reply.10"], "{text}");
        let reply = topology.queues[&QueueName::from("reply.2")].clone();
        for number in 0..30 {
            topology.queues.insert(format!("rpc.{number}")[..].into(), reply.clone());
        }
        let (text, _) = export(&topology);
        let found = ignored(&text);
        assert_eq!(found[0], "# 12 more names are not listed: add a glob that matches only these objects", "{text}");
        assert_eq!((found.len(), &found[20][..]), (21, "rpc.17"), "{text}");
    }
}
