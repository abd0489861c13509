//! Random specs: exchanges of every type, alternates, bindings between exchanges, dead letters in every notation, retries.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::support::{Node, Random};

const EXCHANGES: [&str; 4] = ["e1", "e2", "e3", "e4"];
const QUEUES: [&str; 5] = ["work", "order.a", "mail", "b", "log"];
const DEAD: [&str; 2] = ["dead", "order.dead"];
const WORDS: [&str; 4] = ["order", "a", "b", "x"];

/// One message.
#[derive(Clone, Debug)]
pub(super) struct Publication {
    pub(super) exchange: String,
    pub(super) key: String,
    pub(super) headers: BTreeMap<String, String>,
}

/// One spec, and messages that poison all of its queues.
pub(super) struct Case {
    exchanges: Map<String, Value>,
    queues: BTreeMap<String, Value>,
    dead: BTreeMap<String, Value>,
    policies: Map<String, Value>,
    pub(super) publications: Vec<Publication>,
    names: Vec<String>,
    /// Queues that only dead-lettered messages come to.
    pub(super) closed: Vec<String>,
}

fn pattern(random: &mut Random) -> String {
    let count = 1 + random.below(2);
    let mut hashes = 0;
    let words: Vec<&str> = (0..count)
        .map(|_| match random.below(8) {
            0 if hashes == 0 => {
                hashes += 1;
                "#"
            }
            1 => "*",
            _ => *random.pick(&WORDS),
        })
        .collect();
    words.join(".")
}

/// A key that a topic exchange takes for a pattern.
fn key_like(pattern: &str, random: &mut Random) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in pattern.split('.') {
        match word {
            "#" => (0..random.below(3)).for_each(|_| words.push(*random.pick(&WORDS))),
            "*" => words.push(*random.pick(&WORDS)),
            word => words.push(word),
        }
    }
    words.join(".")
}

fn any_key(random: &mut Random) -> String {
    let pattern = pattern(random);
    key_like(&pattern, random)
}

impl Case {
    pub(super) fn draw(random: &mut Random, node: &Node) -> Self {
        let mut case = Self {
            exchanges: Map::new(),
            queues: BTreeMap::new(),
            dead: BTreeMap::new(),
            policies: Map::new(),
            publications: Vec::new(),
            names: Vec::new(),
            closed: Vec::new(),
        };
        case.exchanges(random);
        case.dead_letter_queues(random);
        for name in QUEUES {
            let queue = case.queue(name, random, node);
            case.queues.insert(name.to_owned(), queue);
        }
        // Each closed queue has a queue whose dead letters surely come to it.
        for (closed, source) in case.closed.iter().zip(["b", "log"]) {
            if let Some(source) = case.queues.get_mut(source) {
                source["deadLetter"] = closed.as_str().into();
            }
        }
        case.policies(random);
        // Messages that no queue asked for: they take other ways.
        for _ in 0..3 {
            let exchange = (*random.pick(&EXCHANGES)).to_owned();
            let is_open = case.exchanges[&exchange]["internal"] != true;
            let key = any_key(random);
            if is_open {
                case.publications.push(Publication { exchange, key, headers: BTreeMap::new() });
            }
        }
        case.names = case.queues.keys().chain(case.dead.keys()).cloned().collect();
        case
    }

    /// The names of all queues that the spec declares.
    pub(super) fn queues(&self) -> &[String] {
        &self.names
    }

    /// The spec as text: JSON is YAML.
    pub(super) fn spec(&self, vhost: &str) -> String {
        format!(
            "version: 1\nvhost: {}\nexchanges: {}\nqueues: {}\ndeadLetterQueues: {}\npolicies: {}\n",
            json!(vhost),
            json!(self.exchanges),
            json!(self.queues),
            json!(self.dead),
            json!(self.policies)
        )
    }

    fn exchanges(&mut self, random: &mut Random) {
        for name in EXCHANGES {
            let kind = *random.pick(&["direct", "direct", "fanout", "topic", "topic", "headers"]);
            let mut exchange = json!({"type": kind});
            if random.chance(25) {
                let alternate = *random.pick(&["e1", "e2", "e3", "e4", "amq.fanout"]);
                exchange["alternateExchange"] = alternate.into();
            }
            if random.chance(10) {
                exchange["internal"] = true.into();
            }
            self.exchanges.insert(name.to_owned(), exchange);
        }
        for name in EXCHANGES {
            if random.chance(20) {
                let source = *random.pick(&EXCHANGES);
                let (binding, _) = self.binding(source, random);
                self.exchanges[name]["bindings"] = json!([binding]);
            }
        }
    }

    fn kind(&self, exchange: &str) -> &str {
        self.exchanges[exchange]["type"].as_str().expect("a type")
    }

    /// A binding from an exchange, and a message that it takes.
    fn binding(&self, exchange: &str, random: &mut Random) -> (Value, Publication) {
        let mut headers = BTreeMap::new();
        let (binding, key) = match self.kind(exchange) {
            "headers" => {
                headers.insert("region".to_owned(), (*random.pick(&["eu", "us"])).to_owned());
                let mut arguments = json!(headers);
                arguments["x-match"] = (*random.pick(&["all", "any"])).into();
                (json!({"exchange": exchange, "arguments": arguments}), any_key(random))
            }
            "direct" => {
                let key = any_key(random);
                (json!({"exchange": exchange, "routingKey": key}), key)
            }
            "topic" => {
                let pattern = pattern(random);
                (json!({"exchange": exchange, "routingKey": pattern}), key_like(&pattern, random))
            }
            _ => (json!({"exchange": exchange}), any_key(random)),
        };
        (binding, Publication { exchange: exchange.to_owned(), key, headers })
    }

    fn dead_letter_queues(&mut self, random: &mut Random) {
        for name in DEAD {
            let kind = *random.pick(&["fanout", "fanout", "direct", "topic"]);
            let mut exchange = json!({"type": kind, "name": format!("{name}.x")});
            if kind != "fanout" && random.chance(60) {
                let key = if kind == "topic" { pattern(random) } else { any_key(random) };
                exchange["routingKey"] = key.into();
            }
            let is_internal = random.chance(30);
            if is_internal {
                exchange["internal"] = true.into();
            }
            let queue_type = *random.pick(&["classic", "quorum"]);
            let mut queue = json!({"type": queue_type, "exchange": exchange});
            if random.chance(20) {
                queue["deadLetter"] = json!({"exchange": *random.pick(&EXCHANGES)});
            }
            self.dead.insert(name.to_owned(), queue);
            let key = match exchange["routingKey"].as_str() {
                Some(pattern) => key_like(pattern, random),
                None => name.to_owned(),
            };
            if is_internal {
                self.closed.push(name.to_owned());
            } else {
                let exchange = format!("{name}.x");
                self.publications.push(Publication { exchange, key, headers: BTreeMap::new() });
            }
        }
    }

    /// Where the messages of a queue go that die: in every notation.
    fn dead_letter(random: &mut Random) -> Value {
        let exchanges = ["e1", "e2", "e3", "e4", "e1", "e2", "dead.x", "order.dead.x", "amq.topic"];
        let mut said = match random.below(10) {
            0..=4 => json!({"exchange": *random.pick(&exchanges)}),
            5 => json!({"exchange": "", "routingKey": *random.pick(&["work", "mail", "dead", "gone"])}),
            _ => json!({"queue": *random.pick(&DEAD)}),
        };
        if said["exchange"] != "" && said.get("exchange").is_some() && random.chance(35) {
            said["routingKey"] = any_key(random).into();
        }
        if random.chance(25) {
            said["wiring"] = "policy".into();
        }
        said
    }

    fn queue(&mut self, name: &str, random: &mut Random, node: &Node) -> Value {
        let kind = *random.pick(&["classic", "classic", "quorum"]);
        let mut queue = json!({"type": kind});
        let open: Vec<&str> = EXCHANGES.into_iter().filter(|it| self.exchanges[*it]["internal"] != true).collect();
        let mut bindings = Vec::new();
        for number in 0..random.below(4) {
            let sources = if number == 0 { &open[..] } else { &EXCHANGES[..] };
            if sources.is_empty() {
                break;
            }
            let source = *random.pick(sources);
            let (binding, publication) = self.binding(source, random);
            if bindings.contains(&binding) {
                continue;
            }
            bindings.push(binding);
            if self.exchanges[source]["internal"] != true {
                self.publications.push(publication);
            }
        }
        if bindings.is_empty() {
            let (exchange, key) = (String::new(), name.to_owned());
            self.publications.push(Publication { exchange, key, headers: BTreeMap::new() });
        } else {
            queue["bindings"] = json!(bindings);
        }
        match random.below(10) {
            0 => {}
            1 => queue["deadLetter"] = "none".into(),
            _ => queue["deadLetter"] = Self::dead_letter(random),
        }
        if random.chance(30) {
            let delayed = if kind == "quorum" && node.at_least(4, 3) { "delayed" } else { "ladder" };
            let retry = match random.below(4) {
                0 if kind == "quorum" => json!({"strategy": "redeliver", "maxRetries": 1}),
                1 => json!({"strategy": "republish", "maxRetries": 1}),
                2 => json!({"strategy": "republish", "delays": ["20ms"]}),
                3 => json!({"strategy": delayed, "delays": ["20ms"]}),
                _ => json!({"strategy": "ladder", "delays": ["20ms", "30ms"]}),
            };
            queue["retry"] = retry;
        }
        if kind == "quorum" && node.at_least(3, 10) && random.chance(15) {
            queue["deadLetterStrategy"] = "at-least-once".into();
            queue["overflow"] = "reject-publish".into();
        }
        queue
    }

    /// Policies that wire dead letters, and alternates, beside what the queues say themselves.
    fn policies(&mut self, random: &mut Random) {
        if random.chance(40) {
            let mut definition = json!({"deadLetterExchange": *random.pick(&["e1", "e2", "e3", "gone"])});
            if random.chance(50) {
                definition["deadLetterRoutingKey"] = any_key(random).into();
            }
            let pattern = *random.pick(&["^work$", "^order", "^(mail|b)$"]);
            self.policies.insert(
                "wires".to_owned(),
                json!({"pattern": pattern, "applyTo": "queues", "priority": 1, "definition": definition}),
            );
        }
        if random.chance(25) {
            let definition = json!({"alternateExchange": *random.pick(&["e1", "e2", "amq.fanout"])});
            self.policies.insert(
                "alternates".to_owned(),
                json!({"pattern": "^e[34]$", "applyTo": "exchanges", "priority": 1, "definition": definition}),
            );
        }
    }
}
