//! Generates random topologies and messages.

use std::collections::BTreeMap;

use lapin::protocol::basic::AMQPProperties;
use lapin::types::{AMQPValue, FieldTable};
use serde_json::json;
use topo::model::{
    ApplyTo, ArgumentValue, Arguments, Binding, BrokerVersion, Destination, Exchange, ExchangeName, Float, Policy,
    PolicyName, Priority, Queue, QueueName, Topology,
};

use crate::support::{Random, Vhost};

/// The names of the exchanges. Policies match some of them.
const EXCHANGES: [&str; 8] = ["e1", "e2", "e3", "e4", "e5", "f1", "f2", "f3"];
pub(super) const QUEUES: [&str; 6] = ["order", "a", "b.order", "q1", "q2", "q3"];
const WORDS: [&str; 5] = ["order", "a", "b", "", "x"];

/// A vhost.
pub(super) struct Case {
    pub(super) topology: Topology,
}

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Publication {
    pub(super) exchange: ExchangeName,
    pub(super) key: String,
    pub(super) headers: Arguments,
    /// The pattern that the key matches.
    pub(super) like: Option<String>,
    /// True if a word of the key is a wildcard.
    pub(super) is_odd: bool,
}

/// Returns one of these words.
fn one_of(random: &mut Random, words: &[&'static str]) -> &'static str {
    words[random.below(words.len())]
}

/// Returns one to three words, some of which may be wildcards.
fn pattern(random: &mut Random) -> String {
    let count = 1 + random.below(3);
    let mut hashes = 0;
    let words: Vec<&str> = (0..count)
        .map(|_| match random.below(10) {
            // Since 4.3.5, the broker refuses more than two.
            0..=2 if hashes < 2 => {
                hashes += 1;
                "#"
            }
            3 | 4 => "*",
            _ => one_of(random, &WORDS),
        })
        .collect();
    words.join(".")
}

/// Returns a key that a pattern matches.
fn key_like(pattern: &str, random: &mut Random) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    for word in pattern.split('.').filter(|_| !pattern.is_empty()) {
        match word {
            "#" => (0..random.below(3)).for_each(|_| words.push(one_of(random, &WORDS))),
            "*" => words.push(one_of(random, &WORDS)),
            word => words.push(word),
        }
    }
    // The empty key has no words.
    (words != [""]).then(|| words.join("."))
}

fn any_key(random: &mut Random) -> String {
    let pattern = pattern(random);
    key_like(&pattern, random).unwrap_or_default()
}

fn value(random: &mut Random) -> ArgumentValue {
    match random.below(6) {
        0 | 1 => "eu".into(),
        2 => "1".into(),
        3 => 1.into(),
        4 => ArgumentValue::Float(Float(1.0)),
        _ => true.into(),
    }
}

fn headers(random: &mut Random, most: usize) -> Arguments {
    let count = random.below(most + 1);
    (0..count).map(|_| ((*random.pick(&["region", "tier", "x-kind"])).to_owned(), value(random))).collect()
}

/// Returns the arguments of a headers binding.
pub(super) fn match_headers(random: &mut Random, version: BrokerVersion) -> Arguments {
    let mut arguments = headers(random, 2);
    if random.chance(20) {
        arguments.insert("region".to_owned(), ArgumentValue::Null);
    }
    let how: &[&str] =
        if version.is_at_least(3, 10) { &["all", "any", "all-with-x", "any-with-x"] } else { &["all", "any"] };
    if random.chance(80) {
        arguments.insert("x-match".to_owned(), (*random.pick(how)).into());
    }
    arguments
}

/// Returns an exchange of one of these types, sometimes with an alternate exchange.
fn exchange(random: &mut Random, kinds: &[&str]) -> Exchange {
    let mut arguments = Arguments::new();
    if random.chance(30) {
        let alternate = match random.below(12) {
            0 => "gone",
            1 => "",
            2 => "amq.fanout",
            _ => one_of(random, &EXCHANGES),
        };
        arguments.insert("alternate-exchange".to_owned(), alternate.into());
    }
    let kind = (*random.pick(kinds)).to_owned();
    Exchange { kind, durable: true, auto_delete: false, internal: random.chance(10), arguments }
}

/// Returns an exchange policy that sets an alternate exchange.
fn alternate_policy(random: &mut Random) -> Policy {
    Policy {
        pattern: (*random.pick(&["^e", "[13]$", "^f2$"])).to_owned(),
        apply_to: ApplyTo::Exchanges,
        priority: Priority(0.0),
        definition: [("alternate-exchange".to_owned(), one_of(random, &EXCHANGES).into())].into(),
    }
}

impl Case {
    pub(super) fn draw(random: &mut Random, version: BrokerVersion) -> Self {
        let mut topology = exchanges(random, &["direct", "direct", "fanout", "topic", "topic", "headers"]);
        // Used rarely, because too many routes would be unpredictable.
        if random.chance(35) {
            topology.exchanges.insert("e1".into(), exchange(random, &["x-consistent-hash"]));
        }
        for name in QUEUES {
            topology.queues.insert(name.into(), queue(&[]));
        }
        bindings(&mut topology, random, version, 24);
        Self { topology }
    }

    /// Returns a case with up to three other bindings, alternate exchanges, types or policies.
    pub(super) fn changed(&self, random: &mut Random, version: BrokerVersion) -> Self {
        let mut topology = self.topology.clone();
        for _ in 0..1 + random.below(3) {
            match random.below(8) {
                0..=2 => {
                    let number = random.below(topology.bindings.len());
                    let removed = topology.bindings.iter().nth(number).cloned();
                    removed.map(|binding| topology.bindings.remove(&binding));
                }
                3..=5 => bindings(&mut topology, random, version, 1),
                6 => drop(topology.policies.remove(&PolicyName::new("alternate"))),
                _ => {
                    let name = ExchangeName::from(one_of(random, &EXCHANGES));
                    let kind = topology.exchanges[&name].kind.clone();
                    // A different type would need different bindings.
                    topology.exchanges.insert(name, exchange(random, &[&kind]));
                }
            }
        }
        Self { topology }
    }

    pub(super) fn kind(&self, name: &ExchangeName) -> String {
        match name.as_str() {
            "" => "default".to_owned(),
            "amq.topic" => "topic".to_owned(),
            _ => self.topology.exchanges[name].kind.clone(),
        }
    }

    pub(super) fn publication(&self, random: &mut Random) -> Publication {
        let open: Vec<&ExchangeName> =
            self.topology.exchanges.iter().filter(|(_, it)| !it.internal).map(|(name, _)| name).collect();
        let exchange = match random.below(40) {
            0..=3 => ExchangeName::new(""),
            4 => ExchangeName::new("amq.topic"),
            _ => (*random.pick(&open)).clone(),
        };
        let like = pattern(random);
        let (key, like) = match random.below(10) {
            // Treats the key as a pattern.
            0 => (like, None),
            1 | 2 => (one_of(random, &QUEUES).to_owned(), None),
            _ => match key_like(&like, random) {
                Some(key) => (key, Some(like)),
                None => (String::new(), None),
            },
        };
        let is_odd = key.split('.').any(|word| word == "#" || word == "*");
        Publication { exchange, key, headers: headers(random, 2), like, is_odd }
    }

    /// Returns the headers `CC` and `BCC` of some messages: the names of queues, and keys that a pattern matches.
    pub(super) fn sender_selected(random: &mut Random) -> Arguments {
        let mut headers = Arguments::new();
        for name in ["CC", "BCC"] {
            if random.chance(15) {
                let key = |random: &mut Random| match random.chance(50) {
                    true => one_of(random, &QUEUES).to_owned(),
                    false => key_like(&pattern(random), random).unwrap_or_default(),
                };
                let keys = (0..1 + random.below(2)).map(|_| key(random).as_str().into()).collect();
                headers.insert(name.to_owned(), ArgumentValue::List(keys));
            }
        }
        headers
    }

    pub(super) fn declare(&self, vhost: &Vhost<'_>) {
        declare(&self.topology, vhost);
    }
}

/// Returns a vhost with exchanges, and with a policy for some of them.
pub(super) fn exchanges(random: &mut Random, kinds: &[&str]) -> Topology {
    let mut topology = Topology::missing("v".into());
    for name in EXCHANGES {
        topology.exchanges.insert(name.into(), exchange(random, kinds));
    }
    if random.chance(50) {
        topology.policies.insert(PolicyName::new("alternate"), alternate_policy(random));
    }
    topology
}

pub(super) fn queue(arguments: &[(&str, ArgumentValue)]) -> Queue {
    let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Queue { durable: true, auto_delete: false, exclusive: false, arguments }
}

/// Adds this number of bindings, mostly to queues.
pub(super) fn bindings(topology: &mut Topology, random: &mut Random, version: BrokerVersion, count: usize) {
    for _ in 0..count {
        let source = if random.chance(6) { "amq.topic" } else { one_of(random, &EXCHANGES) };
        let kind = topology.exchanges.get(&source.into()).map_or("topic", |it| it.kind.as_str());
        let destination = if random.chance(70) {
            Destination::Queue(one_of(random, &QUEUES).into())
        } else {
            Destination::Exchange(one_of(random, &EXCHANGES).into())
        };
        let mut arguments = Arguments::new();
        let routing_key = match kind {
            "x-consistent-hash" => (1 + random.below(3)).to_string(),
            "headers" => {
                arguments = match_headers(random, version);
                String::new()
            }
            "direct" if random.chance(70) => any_key(random),
            _ => pattern(random),
        };
        topology.bindings.insert(Binding { source: source.into(), destination, routing_key, arguments });
    }
}

fn on_the_wire(arguments: &Arguments) -> BTreeMap<String, AMQPValue> {
    fn field(value: &ArgumentValue) -> AMQPValue {
        match value {
            ArgumentValue::Null => AMQPValue::Void,
            ArgumentValue::Boolean(value) => AMQPValue::Boolean(*value),
            ArgumentValue::Integer(value) => AMQPValue::LongLongInt(*value),
            ArgumentValue::Float(value) => AMQPValue::Double(value.0),
            ArgumentValue::Text(value) => AMQPValue::LongString(value.as_str().into()),
            ArgumentValue::List(items) => AMQPValue::FieldArray(items.iter().map(field).collect::<Vec<_>>().into()),
            ArgumentValue::Table(_) => unreachable!("none is drawn"),
        }
    }
    arguments.iter().map(|(name, it)| (name.clone(), field(it))).collect()
}

pub(in crate::live) fn properties(headers: &Arguments) -> AMQPProperties {
    let mut table = FieldTable::default();
    for (name, value) in on_the_wire(headers) {
        table.insert(name.into(), value);
    }
    AMQPProperties::default().with_delivery_mode(2).with_headers(table)
}

/// Declares a topology. Declares bindings over AMQP, because HTTP cannot represent "any value".
pub(super) fn declare(topology: &Topology, vhost: &Vhost<'_>) {
    let created = |kind: &str, name: &str, body: serde_json::Value| {
        let answer = vhost.http().put(&vhost.path(kind, &[name]), &body);
        assert!(answer.is_success(), "{kind} {name}: {answer:?}");
    };
    for (name, it) in &topology.exchanges {
        let body = json!({"type": it.kind, "durable": true, "internal": it.internal, "arguments": it.arguments});
        created("exchanges", name.as_str(), body);
    }
    for (name, it) in &topology.policies {
        created("policies", name.as_str(), serde_json::to_value(it).unwrap());
    }
    for (name, it) in &topology.queues {
        created("queues", name.as_str(), json!({"durable": true, "arguments": it.arguments}));
    }
    let amqp = vhost.amqp();
    for it in &topology.bindings {
        let arguments = on_the_wire(&it.arguments);
        let arguments: Vec<(&str, AMQPValue)> =
            arguments.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        match &it.destination {
            Destination::Queue(queue) => {
                amqp.bind_queue(it.source.as_str(), queue.as_str(), &it.routing_key, &arguments);
            }
            Destination::Exchange(exchange) => {
                amqp.bind_exchange(it.source.as_str(), exchange.as_str(), &it.routing_key, &arguments);
            }
        }
    }
}

/// Returns random dead-letter settings of a queue, for its arguments or a policy.
pub(super) fn dead_lettering(random: &mut Random) -> BTreeMap<&'static str, ArgumentValue> {
    let mut reported = BTreeMap::new();
    if random.chance(35) {
        // Dead-letters directly to a queue, which creates cycles.
        reported.insert("dead-letter-exchange", "".into());
        reported.insert("dead-letter-routing-key", one_of(random, &QUEUES).into());
        return reported;
    }
    if random.chance(85) {
        let exchange = if random.chance(10) { "gone" } else { one_of(random, &EXCHANGES) };
        reported.insert("dead-letter-exchange", exchange.into());
    }
    if random.chance(35) {
        reported.insert("dead-letter-routing-key", any_key(random).into());
    }
    reported
}

pub(super) fn name(queue: &str) -> QueueName {
    queue.into()
}

/// Formats the objects for output, one per line.
pub(super) fn shown(topology: &Topology) -> String {
    let exchanges =
        topology.exchanges.iter().map(|(name, it)| format!("exchange {name}: {} {:?}", it.kind, it.arguments));
    let policies =
        topology.policies.iter().map(|(name, it)| format!("policy {name}: {} {:?}", it.pattern, it.definition));
    let queues = topology.queues.iter().map(|(name, it)| format!("queue {name}: {:?}", it.arguments));
    let bindings = topology.bindings.iter().map(|it| format!("binding {it}"));
    exchanges.chain(policies).chain(queues).chain(bindings).collect::<Vec<_>>().join("\n")
}
