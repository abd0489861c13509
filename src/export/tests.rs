//! Tests exports of complete vhosts and of random vhosts.

use super::CurrentVhost;
use super::convergence::{Export, export};
use crate::expand::expand;
use crate::model::{
    ApplyTo, ArgumentValue, Arguments, Binding, Destination, Exchange, Float, Glob, ObjectId, Policy, Priority, Queue,
    Topology, Vhost,
};
use crate::rabbitmq::BrokerProfile;
use crate::spec::{SourceFile, Spec, Variables, parse};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn profile(version: &str) -> BrokerProfile {
    BrokerProfile::of(version.parse().unwrap())
}

fn read(text: &str) -> Spec {
    let file = SourceFile { name: "spec".to_owned(), text: text.to_owned() };
    parse(&[file], &Variables::new()).unwrap_or_else(|found| panic!("{found}\n{text}")).vhosts.remove(0)
}

/// Returns the objects on a broker after the spec has been applied.
pub(super) fn apply_spec(text: &str, profile: &BrokerProfile) -> Topology {
    expand(&read(&format!("version: 1\nvhost: shop\n{text}")), profile)
        .unwrap_or_else(|found| panic!("{found}"))
        .topology
}

pub(super) fn export_topology(topology: &Topology, profile: &BrokerProfile, globs: &[&str]) -> Export {
    export_of(topology, profile, globs, true)
}

/// Exports a topology that was read from a definitions file.
pub(super) fn export_definitions(topology: &Topology, profile: &BrokerProfile) -> Export {
    export_of(topology, profile, &[], false)
}

fn export_of(topology: &Topology, profile: &BrokerProfile, globs: &[&str], includes_transient_queues: bool) -> Export {
    let untouchable: BTreeSet<ObjectId> = topology
        .queues
        .iter()
        .filter(|(name, queue)| queue.auto_delete || queue.exclusive || name.is_server_named())
        .map(|(name, _)| ObjectId::Queue(name.clone()))
        .collect();
    let live = CurrentVhost {
        topology,
        untouchable: &untouchable,
        properties_keys: &topology.bindings.iter().map(|binding| (binding.clone(), vec!["k".to_owned()])).collect(),
        unsupported_objects: &BTreeMap::new(),
        record_kinds: &BTreeSet::new(),
        lock_holder: None,
        includes_transient_queues,
        profile,
    };
    let globs: Vec<Glob> = globs.iter().copied().map(Glob::new).collect();
    export(&live, &globs).unwrap_or_else(|error| panic!("{error}\n{topology:#?}"))
}

/// Returns the exported text without `version` and `vhost`.
pub(super) fn text(topology: &Topology, version: &str, globs: &[&str]) -> String {
    export_topology(topology, &profile(version), globs).text.replacen("version: 1\nvhost: shop\n", "", 1)
}

const ORDERS: &str = "
exchanges:
  orders: {type: topic, alternateExchange: unrouted}
  unrouted: {type: fanout}

queues:
  orders.audit: {type: stream, maxAge: 7D, bindings: [{exchange: orders, routingKey: \"#\"}]}
  orders.work:
    type: quorum
    maxLengthBytes: 1GiB
    retry: {delays: [5s, 30s, 5m]}
    deadLetter: orders.dead
    bindings: [{exchange: orders, routingKey: order.#}]

deadLetterQueues:
  orders.dead: {type: quorum, bindings: [{exchange: unrouted}]}

policies:
  limits: {pattern: '^mail\\.', applyTo: queues, priority: 5, definition: {messageTtl: 1h30m}}
";

#[test]
fn idiomatic_spec_is_exported_unchanged() {
    for version in ["3.13.7", "4.0.5", "4.3.6"] {
        let found = text(&apply_spec(ORDERS, &profile(version)), version, &[]);
        let without_comments: String =
            found.split_inclusive('\n').filter(|line| !line.trim().starts_with('#')).collect();
        assert_eq!(without_comments, ORDERS, "{version}");
    }
}

#[test]
fn filter_includes_generated_objects() {
    let topology = apply_spec(ORDERS, &profile("4.0.5"));
    let found = text(&topology, "4.0.5", &["orders.work"]);
    let expected = "
exchanges:
  orders: {external: true}
  orders.dead.dlx: {external: true}

queues:
  orders.work:
    type: quorum
    maxLengthBytes: 1GiB
    retry: {delays: [5s, 30s, 5m]}
    deadLetter: {exchange: orders.dead.dlx}
    bindings: [{exchange: orders, routingKey: order.#}]
";
    assert_eq!(found, expected);
    let found = text(&topology, "4.0.5", &["lim*", "orders.d*"]);
    let expected = "
exchanges:
  unrouted: {external: true}

deadLetterQueues:
  orders.dead: {type: quorum, bindings: [{exchange: unrouted}]}

policies:
  limits: {pattern: '^mail\\.', applyTo: queues, priority: 5, definition: {messageTtl: 1h30m}}
";
    assert_eq!(found, expected);
}

#[test]
fn common_settings_are_shared() {
    let spec = "
defaults:
  queue: {type: quorum, singleActiveConsumer: true}
  deadLetter: dead
  maxRetries: 3

queues:
  a: {}
  b: {}
  c: {maxLength: 5}

deadLetterQueues:
  dead: {}
";
    assert_eq!(text(&apply_spec(spec, &profile("4.0.5")), "4.0.5", &[]), spec);
    let spec = "
x-shard: &shard {singleActiveConsumer: true, maxRetries: 4, deadLetter: dead}

defaults:
  queue: {type: quorum}

queues:
  other: {}
  shard.0: {<<: *shard}
  shard.1: {<<: *shard}
  shard.2: {<<: *shard}

deadLetterQueues:
  dead: {}
";
    assert_eq!(text(&apply_spec(spec, &profile("4.0.5")), "4.0.5", &[]), spec);
}

#[test]
fn delays_are_exported_in_their_shortest_form() {
    for retry in [
        "retry: {delays: [1s, 2s, 4s]}",
        "maxRetries: 4, retry: {delays: [30s]}",
        "maxRetries: 5, retry: {backoff: {initial: 2s, factor: 2}}",
        "maxRetries: 4, retry: {backoff: {initial: 2s, factor: 3, max: 9s}}",
        "maxRetries: 6, retry: {delays: [1s, 5s]}",
        "retry: {strategy: republish, delays: [1s]}",
        "retry: {strategy: delayed, delays: [1s, 2s, 2s]}",
        "maxRetries: 7",
    ] {
        let spec = format!(
            "queues: {{w: {{type: quorum, {retry}, deadLetter: dead}}}}\ndeadLetterQueues: {{dead: {{type: quorum}}}}\n"
        );
        let found = text(&apply_spec(&spec, &profile("4.3.6")), "4.3.6", &[]);
        let in_a_block = retry.replace(", retry", "\n    retry");
        assert!(found.contains(retry) || found.contains(&in_a_block), "{retry}\n{found}");
    }
}

#[test]
fn objects_that_cannot_be_represented_are_left_out_with_a_reason() {
    let mut topology = apply_spec("queues: {q: {type: quorum}, ok: {type: quorum}}", &profile("4.0.5"));
    topology.queues.get_mut(&"q".into()).unwrap().arguments.insert("x-max-priority".to_owned(), 5.into());
    let export = export_topology(&topology, &profile("4.0.5"), &[]);
    let why = "1 queue that cannot be represented in a spec: q (quorum queue `q` does not support `maxPriority`)";
    assert_eq!(export.left_out.lines(), [why]);
    assert_eq!(
        export.text,
        format!(
            "# Not exported:\n#   {}\nversion: 1\nvhost: shop\n\nqueues:\n  ok: {{type: quorum}}\n",
            why.replace("support ", "support\n#     ")
        )
    );
}

#[test]
fn temporary_queue_does_not_affect_recognition() {
    let profile = profile("3.10.8");
    let without = "
exchanges: {dead: {type: fanout}}
queues: {work.dead: {type: classic, bindings: [{exchange: dead}]}}
";
    let passing = Queue {
        durable: false,
        exclusive: false,
        auto_delete: false,
        arguments: Arguments::from([("x-dead-letter-exchange".to_owned(), "dead".into())]),
    };
    let mut topology = apply_spec(without, &profile);
    let before = export_topology(&topology, &profile, &[]);
    topology.queues.insert("passing".into(), passing.clone());
    let after = export_topology(&topology, &profile, &[]);
    assert_eq!(after.text, format!("# Not exported:\n#   1 transient queue: passing\n{}", before.text));
    // A durable queue affects the recognition.
    topology.queues.insert("passing".into(), Queue { durable: true, ..passing });
    assert!(export_topology(&topology, &profile, &[]).text.contains("deadLetterQueues:\n  work.dead"));
}

/// A generator of random vhosts with unusual objects.
struct RandomVhosts(u64);

impl RandomVhosts {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn name(&mut self) -> String {
        let odd = [
            "a",
            "b",
            "w",
            "w.dlx",
            "w.retry",
            "w.retry.over",
            "w.return",
            "w.retry.first",
            "w.retry.1.1s",
            "w.retry.2.2s",
            "w.retry.1.1s~2",
            "w.retry.switch",
            "w.retry.first.switch",
            "dead",
            "dead.dlx",
            "<<",
            "x-a",
            "none",
            "null",
            "${A}",
            "a # topo: allow b",
            "w.topo.dead-letter",
            "é\n",
            "*",
            "a: b",
            "topo.lock",
            "amq.x",
            "",
        ];
        self.pick(&odd).to_owned()
    }

    fn value(&mut self) -> ArgumentValue {
        match self.below(12) {
            0 => ArgumentValue::Null,
            1 => ArgumentValue::Boolean(true),
            2 => ArgumentValue::Float(Float([0.0, -0.0, 1.0, 1e300, 0.1, 1e-7][self.below(6)])),
            3 => ArgumentValue::List(vec![self.value(), self.value()]),
            4 => ArgumentValue::Table([(self.name(), self.value())].into()),
            5..=7 => ArgumentValue::Integer([0, -1, 1, 5000, 90_000, i64::MAX, i64::MIN, 1 << 30][self.below(8)]),
            _ => ArgumentValue::Text(self.name()),
        }
    }

    fn arguments(&mut self, names: &[&str]) -> Arguments {
        (0..self.below(4)).map(|_| (self.pick(names).to_owned(), self.value())).collect()
    }

    fn queue(&mut self) -> Queue {
        let names = [
            "x-message-ttl",
            "x-expires",
            "x-max-length",
            "x-max-length-bytes",
            "x-overflow",
            "x-delivery-limit",
            "x-max-priority",
            "x-max-age",
            "x-dead-letter-exchange",
            "x-dead-letter-routing-key",
            "x-dead-letter-strategy",
            "x-delayed-retry-min",
            "x-foo",
            "",
            "maxLength",
        ];
        let mut arguments = self.arguments(&names);
        if self.below(5) > 0 {
            arguments.insert("x-queue-type".to_owned(), self.pick(&["classic", "quorum", "stream", "x-odd"]).into());
        }
        if self.below(3) > 0 {
            arguments.insert("x-dead-letter-exchange".to_owned(), self.name().into());
        }
        Queue {
            durable: self.below(9) > 0,
            auto_delete: self.below(12) == 0,
            exclusive: self.below(12) == 0,
            arguments,
        }
    }

    fn topology(&mut self, profile: &BrokerProfile) -> Topology {
        let whole = "queues: {w: {type: classic, deadLetter: dead, retry: {delays: [1s, 2s]}}}\ndeadLetterQueues: {dead: {type: classic}}";
        let mut topology =
            if self.below(2) == 0 { apply_spec(whole, profile) } else { Topology::missing("shop".into()) };
        topology.settings = Some(Vhost { description: Some(self.name()), tags: None, default_queue_type: None });
        for _ in 0..self.below(6) {
            let queue = self.queue();
            topology.queues.insert(self.name().as_str().into(), queue);
        }
        for _ in 0..self.below(5) {
            let arguments = self.arguments(&["alternate-exchange", "hash-header", "odd", ""]);
            let kind = self.pick(&["topic", "fanout", "direct", "headers", "x-odd", "odd"]).to_owned();
            let (durable, auto_delete, internal) = (self.below(9) > 0, self.below(9) == 0, self.below(9) == 0);
            let name = self.name();
            if !crate::model::ExchangeName::new(&name).is_predeclared() {
                topology
                    .exchanges
                    .insert(name.as_str().into(), Exchange { kind, durable, auto_delete, internal, arguments });
            }
        }
        for _ in 0..self.below(3) {
            let definition = self.arguments(&[
                "message-ttl",
                "max-length",
                "dead-letter-exchange",
                "alternate-exchange",
                "ha-mode",
                "x-foo",
                "Odd",
            ]);
            let (pattern, priority) = (self.name(), Priority([0.0, 1.0, -1.0, 1.5, 1e16][self.below(5)]));
            topology
                .policies
                .insert(self.name().as_str().into(), Policy { pattern, apply_to: ApplyTo::All, priority, definition });
        }
        let sources: Vec<_> = topology.exchanges.keys().cloned().chain(["amq.topic".into()]).collect();
        let queues: Vec<_> = topology.queues.keys().cloned().collect();
        for _ in 0..self.below(6) {
            let source = sources[self.below(sources.len())].clone();
            let destination = match queues.get(self.below(queues.len() + 2)) {
                Some(queue) => Destination::Queue(queue.clone()),
                None => Destination::Exchange(sources[self.below(sources.len())].clone()),
            };
            let (routing_key, arguments) = (self.name(), self.arguments(&["x-match", "n", ""]));
            topology.bindings.insert(Binding { source, destination, routing_key, arguments });
        }
        topology
    }
}

/// `export` itself verifies that the plan for an exported spec contains no changes. This test verifies that such a spec
/// exists for every vhost, and that each object is either exported or reported.
#[test]
fn every_vhost_can_be_exported() {
    let (mut written, mut left_out) = (0, 0);
    for seed in 0..500 {
        let profile = profile(["3.8.9", "3.10.8", "4.0.5", "4.3.6"][seed % 4]);
        let topology = RandomVhosts(seed as u64).topology(&profile);
        let export = export_topology(&topology, &profile, &[]);
        let read = expand(&read(&export.text), &profile).unwrap().topology;
        let count = |it: &Topology| it.queues.len() + it.exchanges.len() + it.policies.len();
        assert_eq!(count(&read), count(&export.topology), "seed {seed}\n{}\n{topology:#?}", export.text);
        assert_eq!(count(&export.topology) + export.left_out.count(), count(&topology), "seed {seed}\n{}", export.text);
        written += count(&export.topology);
        left_out += export.left_out.count();
    }
    assert!(written > 1200 && left_out > 400, "{written} objects, {left_out} left out");
}
