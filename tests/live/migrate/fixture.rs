//! Provides a queue in use, with declared and unmanaged bindings, and the checks after its migration.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::super::ownership::objects;
use super::traffic::EXCHANGE;
use crate::support::{Amqp, AmqpProxy, Argument, NONE, Node, Output, Proxy, Topo, User, Vhost, text};

/// The name of the queue.
pub(super) const Q: &str = "q";

/// A conversion from one queue to another.
#[derive(Clone, Copy)]
pub(super) struct Conversion {
    pub(super) name: &'static str,
    pub(super) from: &'static str,
    /// An argument other than the type, with its value.
    pub(super) old: Option<(&'static str, i64)>,
    /// The entry in the spec.
    pub(super) new: &'static str,
    /// The argument that the broker then reports.
    pub(super) becomes: (&'static str, &'static str),
}

pub(super) const TTL: Conversion = Conversion {
    name: "ttl",
    from: "classic",
    old: Some(("x-message-ttl", 3_600_000)),
    new: "type: classic, messageTtl: 2h",
    becomes: ("x-message-ttl", "7200000"),
};
pub(super) const LIMIT: Conversion = Conversion {
    name: "limit",
    from: "classic",
    old: Some(("x-max-length", 1_000_000)),
    new: "type: classic, maxLength: 2000000",
    becomes: ("x-max-length", "2000000"),
};
pub(super) const DEAD_LETTERS: Conversion = Conversion {
    name: "dead-letters",
    from: "classic",
    old: None,
    new: "type: classic, deadLetter: dead",
    becomes: ("x-dead-letter-exchange", "\"dead.dlx\""),
};
pub(super) const PRIORITY: Conversion = Conversion {
    name: "priority",
    from: "classic",
    old: None,
    new: "type: classic, maxPriority: 5",
    becomes: ("x-max-priority", "5"),
};
pub(super) const TO_QUORUM: Conversion = Conversion {
    name: "to-quorum",
    from: "classic",
    old: None,
    new: "type: quorum",
    becomes: ("x-queue-type", "\"quorum\""),
};
pub(super) const QUORUM: Conversion = Conversion {
    name: "quorum",
    from: "quorum",
    old: Some(("x-max-length", 1_000_000)),
    new: "type: quorum, maxLength: 2000000",
    becomes: ("x-max-length", "2000000"),
};

/// The transports.
pub(super) const TRANSPORTS: [&str; 2] = ["amqp", "shovel"];

/// Returns true from this version on.
pub(super) fn since(major: u32, minor: u32) -> bool {
    Node::shared().at_least(major, minor)
}

/// Returns true if quorum queues can be migrated without an allowance.
pub(super) fn supports_quorum_queues() -> bool {
    since(3, 10)
}

impl Conversion {
    pub(super) fn spec(&self) -> String {
        format!(
            "exchanges:\n  {EXCHANGE}: {{type: topic}}\nqueues:\n  {Q}: {{{}, bindings: [{{exchange: {EXCHANGE}, routingKey: \
             \"work.#\"}}]}}\n{}",
            self.new,
            if self.new.contains("deadLetter: dead") { "deadLetterQueues: {dead: {type: classic}}\n" } else { "" }
        )
    }

    /// Returns true if the confirmation that a queue is empty takes 12 s.
    pub(super) fn is_slow(&self) -> bool {
        self.from == "quorum" || self.becomes.1.contains("quorum")
    }
}

/// A vhost with the old queue, and topo with the spec of the new queue.
pub(super) struct Fixture<'node> {
    pub(super) amqp: Amqp,
    pub(super) vhost: Vhost<'node>,
    pub(super) topo: Topo,
    pub(super) conversion: Conversion,
    before: BTreeSet<String>,
}

/// Declares the old queue and its bindings.
pub(super) fn declare_old(amqp: &Amqp, conversion: Conversion, more: &[(&str, Argument)]) {
    let mut arguments = vec![("x-queue-type", text(conversion.from))];
    arguments.extend(conversion.old.map(|(name, value)| (name, Argument::LongLongInt(value))));
    arguments.extend(more.iter().cloned());
    amqp.declare_queue(Q, &arguments).unwrap();
    amqp.declare_exchange(EXCHANGE, "topic", NONE).unwrap();
    amqp.bind_queue(EXCHANGE, Q, "work.#", NONE);
    // Unmanaged bindings: the same exchange with a different key, another exchange, and a binding with arguments.
    amqp.bind_queue(EXCHANGE, Q, "unmanaged.key", NONE);
    amqp.bind_queue("amq.topic", Q, "unmanaged.key", NONE);
    amqp.bind_queue("amq.headers", Q, "", &[("n", Argument::LongLongInt(1)), ("x-match", text("all"))]);
}

impl Fixture<'static> {
    pub(super) fn new(hint: &str, conversion: Conversion) -> Self {
        Self::with(hint, conversion, &[])
    }

    /// Adds arguments to the old queue and to the spec.
    pub(super) fn with(hint: &str, conversion: Conversion, more: &[(&str, Argument)]) -> Self {
        Self::on(Node::shared(), hint, conversion, more)
    }

    /// Uses a node other than the shared one.
    pub(super) fn on(node: &'static Node, hint: &str, conversion: Conversion, more: &[(&str, Argument)]) -> Self {
        let vhost = node.vhost(hint);
        declare_old(&vhost.amqp(), conversion, more);
        let topo = Topo::new(&vhost).spec(&conversion.spec()).timeout(Duration::from_secs(300));
        Self::of(vhost, topo, conversion)
    }
}

impl<'node> Fixture<'node> {
    /// Uses the existing objects.
    pub(super) fn of(vhost: Vhost<'node>, topo: Topo, conversion: Conversion) -> Self {
        let (amqp, before) = (vhost.amqp(), objects(&vhost));
        Self { amqp, vhost, topo, conversion, before }
    }

    /// Records the current objects as the expected objects.
    pub(super) fn remembered(mut self) -> Self {
        self.before = objects(&self.vhost);
        self
    }

    /// Uses a different user.
    pub(super) fn by_user(mut self, user: &User<'_>) -> Self {
        // Some users may not read the listeners.
        let amqp = format!("amqp://127.0.0.1:{}", self.vhost.node().amqp_port());
        self.topo = self.topo.user(user).env("TOPO_AMQP_URL", &amqp);
        self
    }

    /// Uses the administrator again.
    pub(super) fn by_guest(mut self) -> Self {
        self.topo = self.topo.env("TOPO_USERNAME", "guest").env("TOPO_PASSWORD", "guest").without_env("TOPO_AMQP_URL");
        self
    }

    /// Connects to the node without a proxy.
    pub(super) fn directly(&mut self) {
        let url = self.vhost.node().url();
        self.topo = std::mem::replace(&mut self.topo, Topo::offline()).url(&url).without_env("TOPO_AMQP_URL");
    }

    /// Connects through a proxy, which exists until the returned value is dropped.
    pub(super) fn through(mut self) -> (Self, Proxy) {
        let proxy = self.through_node(self.vhost.node());
        (self, proxy)
    }

    /// Connects AMQP through a proxy, too.
    pub(super) fn through_proxies(mut self, road: &AmqpProxy) -> Self {
        self.topo = self.topo.env("TOPO_AMQP_URL", &road.url());
        self
    }

    /// Connects to another node of the cluster.
    pub(super) fn through_node(&mut self, node: &Node) -> Proxy {
        let proxy = Proxy::to(node);
        self.topo = std::mem::replace(&mut self.topo, Topo::offline()).through(&proxy);
        proxy
    }

    pub(super) fn apply(transport: &str) -> Vec<String> {
        let words = ["apply", "-y", "--transport", transport, "--recreate", "queues/{vhost}/q=migrate", "--allow"];
        words
            .map(str::to_owned)
            .into_iter()
            .chain(["publish-loss,routing-gap,consumer-disruption,contract-change,duplicates,reorder".to_owned()])
            .collect()
    }

    pub(super) fn migrate(&self, transport: &str, more: &[&str]) -> Output {
        let words = Self::apply(transport);
        self.topo.run(words.iter().map(String::as_str).chain(more.iter().copied()))
    }

    pub(super) fn is_new(&self) -> bool {
        let (argument, value) = self.conversion.becomes;
        let value: Value = serde_json::from_str(value).expect("JSON");
        self.vhost.queue(Q)["arguments"][argument] == value
    }

    /// Expects the new settings, the recorded bindings, no additional objects, and an empty plan.
    #[track_caller]
    pub(super) fn expect_migrated(&self, context: &dyn std::fmt::Display) {
        assert!(self.is_new(), "{context}: {}", self.vhost.queue(Q)["arguments"]);
        let plan = self.topo.run(["plan", "--detailed-exitcode"]);
        assert_eq!(plan.code, Some(0), "{context}\n{plan}");
        self.expect_bindings_as_before(context);
    }

    /// Expects the recorded objects and bindings, and no others except those of dead letters.
    #[track_caller]
    pub(super) fn expect_bindings_as_before(&self, context: &dyn std::fmt::Display) {
        let mut after = objects(&self.vhost);
        let of_dead_letters = |line: &String| line.contains("dead");
        after.retain(|line| self.before.contains(line) || !of_dead_letters(line));
        assert_eq!(after, self.before, "{context}");
        self.expect_no_shovel(context);
    }

    /// Expects an unchanged vhost.
    #[track_caller]
    pub(super) fn expect_as_before(&self, context: &dyn std::fmt::Display) {
        assert!(!self.is_new(), "{context}");
        assert_eq!(objects(&self.vhost), self.before, "{context}");
        self.expect_no_shovel(context);
    }

    #[track_caller]
    fn expect_no_shovel(&self, context: &dyn std::fmt::Display) {
        let shovels = self.vhost.http().get(&self.vhost.path("parameters/shovel", &[])).found();
        assert!(shovels.as_array().is_none_or(Vec::is_empty), "{context}: {shovels}");
    }

    /// Returns the peer addresses of the consumers that the broker lists, such as `127.0.0.1:50000`. The list is
    /// delayed.
    pub(super) fn addresses(&self) -> Vec<Option<String>> {
        let list = self.vhost.http().get(&self.vhost.path("consumers", &[])).expect_status(200);
        let of_queue = list.as_array().unwrap().iter().filter(|it| it["queue"]["name"] == Q);
        let address =
            |channel: &Value| Some(format!("{}:{}", channel["peer_host"].as_str()?, channel["peer_port"].as_u64()?));
        of_queue.map(|it| address(&it["channel_details"])).collect()
    }

    /// Returns the number of consumers.
    pub(super) fn consumers(&self) -> usize {
        self.addresses().len()
    }
}

/// Fails unless each message was received exactly once.
#[track_caller]
pub(super) fn expect_each_once(
    numbers: impl IntoIterator<Item = usize>,
    published: usize,
    context: &dyn std::fmt::Display,
) {
    assert_eq!(duplicates(numbers, published, context), 0, "duplicates: {context}");
}

/// Returns the number of possible duplicates that a run reports.
pub(super) fn reported_duplicates(output: &Output) -> usize {
    let words: Vec<&str> = output.stdout.split_whitespace().collect();
    let phrase =
        words.windows(5).find(|five| matches!(five[1], "message" | "messages") && five[2..4] == ["may", "come"]);
    phrase.map_or(0, |phrase| phrase[0].replace(',', "").parse().unwrap())
}

/// Returns the number of duplicates. Fails unless each message was received.
#[track_caller]
pub(super) fn duplicates(
    numbers: impl IntoIterator<Item = usize>,
    published: usize,
    context: &dyn std::fmt::Display,
) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for number in numbers {
        *counts.entry(number).or_default() += 1;
    }
    let lost: Vec<usize> = (0..published).filter(|number| !counts.contains_key(number)).collect();
    assert!(
        lost.is_empty(),
        "lost {} of {published}, such as {:?}: {context}",
        lost.len(),
        &lost[..lost.len().min(10)]
    );
    assert_eq!(counts.len(), published, "{context}");
    counts.values().map(|count| count - 1).sum()
}
