//! Generates random specs: all exchange types, alternate exchanges, bindings between exchanges, all notations of
//! `deadLetter`, retries, streams, and external objects. Unmanaged bindings exist on the broker.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::support::{Amqp, NONE, Node, Random, text};

const EXCHANGES: [&str; 4] = ["e1", "e2", "e3", "e4"];
const QUEUES: [&str; 5] = ["work", "order.a", "mail", "b", "log"];
const DEAD: [&str; 2] = ["dead", "order.dead"];
const WORDS: [&str; 4] = ["order", "a", "b", "x"];
/// A stream, on versions whose streams store the headers of dead-lettered messages; 3.10.8 does not store them.
const STREAM: &str = "journal";
/// An external exchange.
const EXTERNAL: &str = "ext";
/// External queues: a plain queue, and a dead-letter queue that the spec binds to the external exchange.
const EXTERNAL_QUEUES: [&str; 2] = ["outside", "outside.dead"];
/// A queue that no spec declares.
const UNMANAGED: &str = "stray";
/// Queues with only unmanaged bindings, so that no spec declares their incoming routes.
pub(super) const EXTERNAL_BINDINGS: [&str; 2] = [EXTERNAL_QUEUES[0], UNMANAGED];
/// The length limit of some queues, which exceeds the number of messages that the workers leave in a queue.
pub(super) const MOST: usize = 100;

/// A message.
#[derive(Clone, Debug)]
pub(super) struct Publication {
    pub(super) exchange: String,
    pub(super) key: String,
    pub(super) headers: BTreeMap<String, String>,
}

/// A spec, and messages that poison all queues in the spec.
pub(super) struct Case {
    exchanges: Map<String, Value>,
    queues: BTreeMap<String, Value>,
    dead: BTreeMap<String, Value>,
    policies: Map<String, Value>,
    pub(super) publications: Vec<Publication>,
    names: Vec<String>,
    /// Queues that receive only dead-lettered messages.
    pub(super) closed: Vec<String>,
    /// The type of the external exchange.
    external: &'static str,
    /// Bindings to queues that exist only on the broker: source, queue, key.
    unmanaged: Vec<(&'static str, &'static str, String)>,
    /// True if the spec declares the stream.
    has_stream: bool,
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

/// Returns a key that matches a topic pattern.
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
            external: *random.pick(&["direct", "fanout", "topic"]),
            unmanaged: Vec::new(),
            has_stream: node.at_least(4, 0) && random.chance(50),
        };
        case.exchanges(random);
        case.external_objects(random);
        case.dead_letter_queues(random);
        for name in QUEUES {
            let queue = case.queue(name, random, node);
            case.queues.insert(name.to_owned(), queue);
        }
        if case.has_stream {
            let stream = case.stream(random);
            case.queues.insert(STREAM.to_owned(), stream);
        }
        case.queues.insert(EXTERNAL_QUEUES[0].to_owned(), json!({"external": true}));
        case.dead.insert(EXTERNAL_QUEUES[1].to_owned(), json!({"external": true, "exchange": {"name": EXTERNAL}}));
        // Each closed queue has a queue that always dead-letters to it.
        for (closed, source) in case.closed.iter().zip(["b", "log"]) {
            if let Some(source) = case.queues.get_mut(source) {
                source["deadLetter"] = closed.as_str().into();
            }
        }
        case.policies(random);
        // Messages that match no binding of a queue and use other routes.
        for _ in 0..3 {
            let exchange = (*random.pick(&EXCHANGES)).to_owned();
            let is_open = case.exchanges[&exchange]["internal"] != true;
            let key = any_key(random);
            if is_open {
                case.publications.push(Publication { exchange, key, headers: BTreeMap::new() });
            }
        }
        let all = case.queues.keys().chain(case.dead.keys());
        case.names =
            all.filter(|name| DEAD.contains(&name.as_str()) || QUEUES.contains(&name.as_str())).cloned().collect();
        case
    }

    /// Returns the names of all declared queues except streams.
    pub(super) fn queues(&self) -> &[String] {
        &self.names
    }

    /// Returns the name of the declared stream.
    pub(super) fn stream_name(&self) -> Option<&'static str> {
        self.has_stream.then_some(STREAM)
    }

    /// Returns the queues that a worker consumes: declared, external and unmanaged queues.
    pub(super) fn read(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).chain(EXTERNAL_QUEUES).chain([UNMANAGED])
    }

    /// Returns true if the broker has bindings of the exchange that the spec does not declare.
    pub(super) fn is_open(exchange: &str) -> bool {
        exchange == EXTERNAL || exchange.starts_with("amq.")
    }

    /// Returns true if the full queue dead-letters new messages, false if it dead-letters the oldest; `None` without a
    /// length limit.
    pub(super) fn limit(&self, queue: &str) -> Option<bool> {
        let written = self.queues.get(queue)?;
        (!written["maxLength"].is_null()).then(|| written["overflow"] == "reject-publish-dlx")
    }

    /// Returns true if the messages of a queue expire on this version: older quorum queues ignore the `expiration` of a
    /// message.
    pub(super) fn expires(&self, queue: &str, node: &Node) -> bool {
        let written = self.queues.get(queue).or_else(|| self.dead.get(queue)).expect("a queue of the spec");
        written["type"] == "classic" || node.at_least(3, 10)
    }

    /// Declares the external and the unmanaged objects.
    pub(super) fn declare_external_objects(&self, amqp: &Amqp) {
        amqp.declare_exchange(EXTERNAL, self.external, NONE).expect("a new exchange");
        for queue in EXTERNAL_QUEUES.into_iter().chain([UNMANAGED]) {
            amqp.declare_queue(queue, &[("x-queue-type", text("classic"))]).expect("a new queue");
        }
        for (source, queue, key) in &self.unmanaged {
            amqp.bind_queue(source, queue, key, NONE);
        }
    }

    /// Returns the spec as JSON, which is valid YAML.
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
                let alternate = *random.pick(&["e1", "e2", "e3", "e4", "amq.fanout", EXTERNAL]);
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

    fn external_objects(&mut self, random: &mut Random) {
        let mut exchange = json!({"external": true});
        if random.chance(20) {
            let &source = random.pick(&EXCHANGES);
            let (binding, publication) = self.binding(source, random);
            exchange["bindings"] = json!([binding]);
            if self.exchanges[&publication.exchange]["internal"] != true {
                self.publications.push(publication);
            }
        }
        self.exchanges.insert(EXTERNAL.to_owned(), exchange);
        for (source, queue, percent) in [
            (EXTERNAL, EXTERNAL_QUEUES[0], 50),
            (EXTERNAL, EXTERNAL_QUEUES[1], 100),
            (EXTERNAL, UNMANAGED, 30),
            ("amq.topic", UNMANAGED, 50),
            ("amq.fanout", UNMANAGED, 30),
        ] {
            if random.chance(percent) {
                let is_topic = source == "amq.topic" || source == EXTERNAL && self.external == "topic";
                let key = if is_topic { pattern(random) } else { any_key(random) };
                self.unmanaged.push((source, queue, key));
            }
        }
    }

    /// Returns a stream. A stream keeps every message and does not dead-letter.
    fn stream(&mut self, random: &mut Random) -> Value {
        let mut bindings = Vec::new();
        for _ in 0..=random.below(2) {
            let &source = random.pick(&EXCHANGES);
            let (binding, publication) = self.binding(source, random);
            if !bindings.contains(&binding) {
                bindings.push(binding);
            }
            if self.exchanges[&publication.exchange]["internal"] != true {
                self.publications.push(publication);
            }
        }
        json!({"type": "stream", "maxLengthBytes": "1GiB", "bindings": bindings})
    }

    fn kind(&self, exchange: &str) -> &str {
        if exchange == EXTERNAL {
            return self.external;
        }
        self.exchanges[exchange]["type"].as_str().expect("a type")
    }

    /// Returns a binding of an exchange, and a message that matches it.
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

    /// Returns a dead-letter destination in a random notation.
    fn dead_letter(random: &mut Random) -> Value {
        let exchanges =
            ["e1", "e2", "e3", "e4", "e1", "e2", "e3", "e4", "dead.x", "order.dead.x", "amq.topic", EXTERNAL];
        let mut settings = match random.below(10) {
            0..=4 => json!({"exchange": *random.pick(&exchanges)}),
            5 => json!({"exchange": "", "routingKey": *random.pick(&["work", "mail", "dead", "gone", "outside"])}),
            6 if random.chance(50) => json!({"queue": EXTERNAL_QUEUES[1]}),
            _ => json!({"queue": *random.pick(&DEAD)}),
        };
        if settings["exchange"] != "" && settings.get("exchange").is_some() && random.chance(35) {
            settings["routingKey"] = any_key(random).into();
        }
        if random.chance(25) {
            settings["wiring"] = "policy".into();
        }
        settings
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
            let source = if number > 0 && random.chance(10) { EXTERNAL } else { *random.pick(sources) };
            let (binding, publication) = self.binding(source, random);
            if bindings.contains(&binding) {
                continue;
            }
            if self.exchanges[source]["internal"] != true {
                self.publications.push(publication.clone());
                // After a death, other keys that match the same pattern may have another destination.
                let pattern = binding["routingKey"].as_str().filter(|_| self.kind(source) == "topic");
                for _ in 0..3 {
                    let key = match pattern {
                        Some(pattern) => key_like(pattern, random),
                        None => any_key(random),
                    };
                    self.publications.push(Publication { key, ..publication.clone() });
                }
            }
            bindings.push(binding);
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
        } else if random.chance(40) {
            queue["maxLength"] = MOST.into();
            if kind == "classic" && random.chance(40) {
                queue["overflow"] = "reject-publish-dlx".into();
            }
        }
        queue
    }

    /// Adds policies for dead-letter and alternate exchanges, in addition to the settings of the queues.
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
