//! Generates random pairs of specs with unmanaged objects. A seed always generates the same pair.
//!
//! Most of a pair is random. *Features* are small arrangements with separate probabilities. They ensure that every
//! verdict and every hazard occurs often.

use serde_json::{Map, Value, json};

use crate::support::Random;

/// A pair.
#[derive(Clone, Debug)]
pub(in crate::live) struct Case {
    /// The first spec.
    pub(in crate::live) first: Value,
    /// Unmanaged objects that are added between the applies, like the `live` part of a scenario. Additional keys are
    /// `messages` by queue, `consumers` (queues), and `int32` (bindings with an argument type that HTTP cannot
    /// represent).
    pub(in crate::live) unmanaged: Value,
    /// The second spec.
    pub(super) second: Value,
    /// The kinds of `--prune`, as on the command line.
    pub(super) prune: Vec<&'static str>,
    /// True if every hazard is allowed, false if none is allowed.
    pub(super) allow: bool,
}

/// The capabilities of the broker.
#[derive(Clone, Copy)]
pub(in crate::live) struct Possible {
    pub(super) streams: bool,
    /// True if a queue without `x-queue-type` is classic.
    pub(super) untyped_queues: bool,
    /// True if TTLs have a maximum, and quorum queues support a TTL.
    pub(super) ten_years_at_most: bool,
}

const KEYS: [&str; 5] = ["a", "a.#", "b.*", "", "1"];
const PREDECLARED: [&str; 2] = ["amq.topic", "amq.direct"];

pub(in crate::live) fn draw(seed: u64, possible: Possible) -> Case {
    let mut random = Random::new(seed);
    let first = spec(&mut random, possible);
    let second = changed(&mut random, &first, possible);
    let mut case = Case {
        first,
        unmanaged: json!({"exchanges": [], "queues": [], "bindings": [], "policies": [], "messages": {}, "consumers": [], "int32": []}),
        second,
        prune: match random.below(10) {
            0..=2 => Vec::new(),
            3..=6 => vec!["exchanges", "queues", "bindings", "policies"],
            _ => {
                let mut kinds = vec!["exchanges", "queues", "bindings", "policies"];
                kinds.retain(|_| random.chance(50));
                kinds
            }
        },
        allow: random.chance(95),
    };
    scope(&mut random, &mut case.second);
    unmanaged_objects(&mut random, &mut case);
    features(&mut random, &mut case, possible);
    // Chosen last, so that it takes the objects of features into account.
    let mode = random.below(100);
    for kind in ["exchanges", "queues"] {
        for object in table(&mut case.second, kind).values_mut().filter(|object| object.get("external").is_none()) {
            let how = match mode {
                0..=71 => "discard",
                72..=91 => "ifEmpty",
                92..=96 => *random.pick(&["discard", "ifEmpty", "refuse"]),
                _ => "refuse",
            };
            object["onConflict"] = how.into();
        }
    }
    case
}

pub(super) fn table<'a>(spec: &'a mut Value, kind: &str) -> &'a mut Map<String, Value> {
    spec[kind].as_object_mut().unwrap()
}

fn list<'a>(value: &'a mut Value, kind: &str) -> &'a mut Vec<Value> {
    value[kind].as_array_mut().unwrap()
}

fn spec(random: &mut Random, possible: Possible) -> Value {
    let mut spec = json!({"version": 1, "exchanges": {}, "queues": {}, "bindings": [], "policies": {}});
    for number in 0..5 {
        if random.chance(60) {
            let drawn = exchange(random, &spec);
            table(&mut spec, "exchanges").insert(format!("own.x{number}"), drawn);
        }
    }
    for number in 0..6 {
        if random.chance(60) {
            let name = if number == 5 { "far.q5".to_owned() } else { format!("own.q{number}") };
            let drawn = queue(random, &spec, possible);
            table(&mut spec, "queues").insert(name, drawn);
        }
    }
    for name in ["own.p0", "own.p1"] {
        if random.chance(40) {
            let drawn = policy(random, name);
            table(&mut spec, "policies").insert(name.to_owned(), drawn);
        }
    }
    for _ in 0..random.below(9) {
        if let Some(drawn) = binding(random, &spec) {
            bind(&mut spec, drawn);
        }
    }
    spec
}

fn exchange(random: &mut Random, spec: &Value) -> Value {
    let mut exchange = json!({"type": *random.pick(&["direct", "fanout", "topic", "headers"])});
    let others: Vec<&String> = spec["exchanges"].as_object().unwrap().keys().collect();
    if random.chance(20) && !others.is_empty() {
        exchange["alternateExchange"] = (*random.pick(&others)).as_str().into();
    }
    for (key, percent, value) in
        [("internal", 5, json!(true)), ("durable", 8, json!(false)), ("autoDelete", 5, json!(true))]
    {
        if random.chance(percent) {
            exchange[key] = value;
        }
    }
    exchange
}

fn queue(random: &mut Random, spec: &Value, possible: Possible) -> Value {
    let kind = match random.below(100) {
        0..=3 if possible.streams => "stream",
        4..=15 => "quorum",
        _ => "classic",
    };
    let mut queue = json!({"type": kind});
    let times = random.below(3);
    for _ in 0..times {
        set(random, &mut queue, spec);
    }
    queue
}

/// Sets one key to a different value or removes it.
fn set(random: &mut Random, queue: &mut Value, spec: &Value) {
    let exchanges: Vec<&String> = spec["exchanges"].as_object().unwrap().keys().collect();
    let choices: &[&str] = match queue["type"].as_str().unwrap() {
        "stream" => &["maxAge", "x-foo"],
        "quorum" => &["maxLength", "deliveryLimit", "deadLetter", "x-foo"],
        _ => &["messageTtl", "maxLength", "maxPriority", "overflow", "expires", "deadLetter", "x-foo", "durable"],
    };
    // Made rare deliberately, because on versions without streams, classic queues accept many other keys.
    let key = if random.chance(15) { "x-foo" } else { *random.pick(choices) };
    let table = queue.as_object_mut().unwrap();
    if random.chance(25) {
        table.remove(if key == "x-foo" { "arguments" } else { key });
        return;
    }
    let value = match key {
        "messageTtl" => json!(*random.pick(&["1h", "2h"])),
        "maxLength" => json!(*random.pick(&[100_000, 200_000])),
        "maxPriority" => json!(*random.pick(&[3, 5])),
        "overflow" => json!(*random.pick(&["drop-head", "reject-publish"])),
        "expires" => json!(*random.pick(&["1d", "2d"])),
        "deliveryLimit" => json!(*random.pick(&[5, 6])),
        "maxAge" => json!(*random.pick(&["7D", "8D"])),
        "durable" => json!(random.chance(50)),
        "deadLetter" if exchanges.is_empty() => return,
        "deadLetter" => json!({"exchange": *random.pick(&exchanges)}),
        _ => {
            table.insert("arguments".to_owned(), json!({"x-foo": random.below(3)}));
            return;
        }
    };
    table.insert(key.to_owned(), value);
}

fn policy(random: &mut Random, name: &str) -> Value {
    // If priorities were equal, the broker would choose the governing policy.
    let priority = if name.ends_with('0') { 1 } else { 3 };
    json!({
        "pattern": *random.pick(&["^own\\.q[0-2]$", "^own\\.q", "^far", "q3$"]),
        "applyTo": *random.pick(&["queues", "all", "exchanges"]),
        "priority": priority + random.below(2),
        "definition": random.pick(&[
            json!({"maxLength": 100_000}), json!({"maxLength": 200_000, "overflow": "reject-publish"}),
            json!({"messageTtl": "2h"}), json!({"expires": "1d"}),
        ]).clone(),
    })
}

fn binding(random: &mut Random, spec: &Value) -> Option<Value> {
    let names = |kind: &str| spec[kind].as_object().unwrap().keys().cloned().collect::<Vec<String>>();
    let (mut sources, queues) = (names("exchanges"), names("queues"));
    let exchanges = sources.clone();
    sources.extend(PREDECLARED.map(str::to_owned));
    let between = random.chance(40);
    let destinations = if between { &exchanges } else { &queues };
    if destinations.is_empty() {
        return None;
    }
    let source = random.pick(&sources).clone();
    let mut binding = json!({
        "source": source, "destination": random.pick(destinations), "routingKey": *random.pick(&KEYS),
        "destinationType": if between { "exchange" } else { "queue" },
    });
    if spec["exchanges"][&source]["type"] == "headers" || random.chance(10) {
        let value = random.pick(&[json!(1), json!(1.5), json!(true), json!("1"), json!(2)]).clone();
        binding["arguments"] = json!({"x-match": *random.pick(&["all", "any"]), "n": value});
    }
    Some(binding)
}

/// Two equal bindings in a spec are an error.
fn bind(spec: &mut Value, binding: Value) {
    let bindings = list(spec, "bindings");
    if !bindings.contains(&binding) {
        bindings.push(binding);
    }
}

/// Returns the second spec: most of the first one, with changed and new objects.
fn changed(random: &mut Random, first: &Value, possible: Possible) -> Value {
    let mut second = first.clone();
    let fresh = spec(random, possible);
    for kind in ["exchanges", "queues", "policies"] {
        let keys: Vec<String> = table(&mut second, kind).keys().cloned().collect();
        for key in keys {
            if random.chance(12) {
                table(&mut second, kind).remove(&key);
            }
        }
        for (key, value) in fresh[kind].as_object().unwrap() {
            let here = table(&mut second, kind);
            // topo needs 12 s to confirm that a quorum queue is empty, so only features delete one.
            let slow = here.get(key).is_some_and(|live| live["type"] == "quorum");
            let percent = if kind == "queues" { 15 } else { 30 };
            if here.contains_key(key) && !slow && random.chance(percent) || !here.contains_key(key) && random.chance(25)
            {
                here.insert(key.clone(), value.clone());
            }
        }
    }
    let keys: Vec<String> = table(&mut second, "queues").keys().cloned().collect();
    for key in keys {
        let slow = second["queues"][&key]["type"] == "quorum";
        if !slow && random.chance(30) {
            let mut queue = second["queues"][&key].take();
            set(random, &mut queue, &second);
            second["queues"][&key] = queue;
        }
    }
    list(&mut second, "bindings").retain(|_| random.chance(75));
    for drawn in list(&mut fresh.clone(), "bindings").drain(..) {
        bind(&mut second, drawn);
    }
    without_dangling_references(&mut second);
    second
}

/// Removes references to missing objects.
pub(super) fn without_dangling_references(spec: &mut Value) {
    let has = |spec: &Value, kind: &str, name: &Value| {
        let name = name.as_str().unwrap_or_default();
        name.starts_with("amq.") || spec[kind].get(name).is_some()
    };
    let before = spec.clone();
    list(spec, "bindings").retain(|binding| {
        let kind = if binding["destinationType"] == "exchange" { "exchanges" } else { "queues" };
        has(&before, "exchanges", &binding["source"]) && has(&before, kind, &binding["destination"])
    });
    for exchange in table(spec, "exchanges").values_mut() {
        if exchange.get("alternateExchange").is_some_and(|name| !has(&before, "exchanges", name)) {
            exchange.as_object_mut().unwrap().remove("alternateExchange");
        }
    }
    for queue in table(spec, "queues").values_mut() {
        if queue.get("deadLetter").is_some_and(|target| !has(&before, "exchanges", &target["exchange"])) {
            queue.as_object_mut().unwrap().remove("deadLetter");
        }
    }
}

fn scope(random: &mut Random, spec: &mut Value) {
    spec["owns"] =
        random.pick(&[json!(["own.*"]), json!(["own.*"]), json!(["own.*"]), json!([]), json!(["*"])]).clone();
    if random.chance(8) {
        spec["protect"] = json!([*random.pick(&["own.q*", "own.x1", "own.old"])]);
    }
    if random.chance(40) {
        spec["ignore"] = json!(["own.tmp.*"]);
    }
}

/// Adds unmanaged objects inside and outside `owns`, and unmanaged bindings to all objects.
fn unmanaged_objects(random: &mut Random, case: &mut Case) {
    let kept =
        |case: &Case, kind: &str| -> Vec<String> { case.first[kind].as_object().unwrap().keys().cloned().collect() };
    let (exchanges, queues) = (kept(case, "exchanges"), kept(case, "queues"));
    for name in ["own.old", "own.tmp.a", "far.old", "far.other"] {
        if random.chance(35) {
            list(&mut case.unmanaged, "queues").push(json!({"name": name, "arguments": {"x-queue-type": "classic"}}));
            if random.chance(30) {
                case.unmanaged["messages"][name] = (*random.pick(&[1, 3])).into();
            }
        }
    }
    for name in ["own.oldx", "own.tmp.x", "far.x"] {
        if random.chance(35) {
            list(&mut case.unmanaged, "exchanges").push(json!({"name": name, "type": "topic"}));
        }
    }
    if random.chance(25) {
        let policy = json!({"name": *random.pick(&["own.oldp", "far.p"]), "pattern": "^nothing", "apply-to": "queues", "priority": 0, "definition": {"max-length": 5}});
        list(&mut case.unmanaged, "policies").push(policy);
    }
    if random.chance(30) {
        case.second["removed"] = json!({"queues": ["far.old"], "exchanges": ["far.x"], "policies": ["far.p"]});
    }
    let mut sources: Vec<String> = exchanges.clone();
    let made = |kind: &str, case: &Case| -> Vec<String> {
        let list = case.unmanaged[kind].as_array().unwrap();
        list.iter().map(|object| object["name"].as_str().unwrap().to_owned()).collect()
    };
    sources.extend(made("exchanges", case));
    sources.extend(PREDECLARED.map(str::to_owned));
    let mut into: Vec<(String, &str)> = queues.into_iter().map(|name| (name, "queue")).collect();
    into.extend(made("queues", case).into_iter().map(|name| (name, "queue")));
    into.extend(exchanges.into_iter().map(|name| (name, "exchange")));
    for _ in 0..random.below(6) {
        if into.is_empty() {
            break;
        }
        let (destination, kind) = random.pick(&into).clone();
        let mut binding = json!({"source": random.pick(&sources), "destination": destination,
            "destination_type": kind, "routing_key": *random.pick(&["theirs", "a", "#"])});
        if random.chance(25) {
            binding["arguments"] = json!({"n": random.below(3)});
        }
        list(&mut case.unmanaged, "bindings").push(binding);
    }
}

/// Adds an object to both specs.
fn both(case: &mut Case, kind: &str, name: &str, first: Value, second: Value) {
    table(&mut case.first, kind).insert(name.to_owned(), first);
    table(&mut case.second, kind).insert(name.to_owned(), second);
}

fn bind_unmanaged(case: &mut Case, source: &str, destination: &str, kind: &str) {
    let binding =
        json!({"source": source, "destination": destination, "destination_type": kind, "routing_key": "theirs"});
    list(&mut case.unmanaged, "bindings").push(binding);
}

fn features(random: &mut Random, case: &mut Case, possible: Possible) {
    let classic = || json!({"type": "classic"});
    if random.chance(24) {
        both(case, "queues", "own.full", classic(), classic());
        case.unmanaged["messages"]["own.full"] = 6.into();
        table(&mut case.second, "policies").insert(
            "own.drop".to_owned(),
            json!({"pattern": "^own\\.full$", "applyTo": "queues", "priority": 20, "definition": {"maxLength": 2}}),
        );
    }
    if random.chance(24) {
        let queue = json!({"type": *random.pick(&["classic", "quorum"])});
        both(case, "queues", "own.busy", queue.clone(), queue);
        case.unmanaged["messages"]["own.busy"] = 4.into();
        let definition = json!({"maxLength": 2, "overflow": "reject-publish"});
        table(&mut case.second, "policies").insert(
            "own.block".to_owned(),
            json!({"pattern": "^own\\.busy$", "applyTo": "queues", "priority": 20, "definition": definition}),
        );
    }
    if random.chance(30) {
        // Adds a consumer to a queue that is recreated or deleted.
        both(case, "queues", "own.eaten", classic(), json!({"type": "classic", "maxLength": 50}));
        list(&mut case.unmanaged, "consumers").push("own.eaten".into());
        if random.chance(30) {
            table(&mut case.second, "queues").remove("own.eaten");
            case.second["removed"]["queues"] = json!(["own.eaten"]);
        }
    }
    if random.chance(26) {
        if random.chance(70) {
            both(case, "queues", "own.down", classic(), json!({"type": "classic", "durable": false}));
        } else {
            // If messages are discarded, topo does not confirm that the queue is empty, so this is fast.
            both(case, "queues", "own.down", json!({"type": "quorum"}), classic());
            case.unmanaged["messages"]["own.down"] = 2.into();
        }
    }
    if random.chance(24) {
        case.second["owns"] = json!(["own.*"]);
        case.prune = vec!["exchanges", "queues", "bindings", "policies"];
        for number in 0..9 {
            list(&mut case.unmanaged, "queues")
                .push(json!({"name": format!("own.m{number}"), "arguments": {"x-queue-type": "classic"}}));
        }
        case.unmanaged["messages"]["own.m3"] = 2.into();
    }
    if random.chance(26) {
        let hash = |header: &str| json!({"type": "x-consistent-hash", "arguments": {"hash-header": header}});
        both(case, "exchanges", "own.hash", hash("user"), hash("session"));
        both(case, "queues", "own.hashed", classic(), classic());
        let binding =
            json!({"source": "own.hash", "destination": "own.hashed", "destinationType": "queue", "routingKey": "1"});
        list(&mut case.first, "bindings").push(binding.clone());
        list(&mut case.second, "bindings").push(binding);
    }
    if random.chance(15) {
        // Adds an object that a spec can declare and that this version refuses.
        let (kind, ttl) = if possible.ten_years_at_most { ("classic", "4000d") } else { ("quorum", "1h") };
        both(case, "queues", "own.new", json!({"type": kind}), json!({"type": kind, "messageTtl": ttl}));
    }
    if possible.untyped_queues && random.chance(24) {
        list(&mut case.unmanaged, "queues").push(json!({"name": "own.plain"}));
        table(&mut case.second, "queues").insert("own.plain".to_owned(), classic());
    }
    if random.chance(26) {
        // An auto-delete exchange is deleted with its last binding, whose destination is recreated.
        list(&mut case.unmanaged, "exchanges").push(json!({"name": "far.auto", "type": "fanout", "auto_delete": true}));
        if random.chance(50) {
            both(case, "queues", "own.fed", classic(), json!({"type": "classic", "maxPriority": 3}));
            bind_unmanaged(case, "far.auto", "own.fed", "queue");
        } else {
            both(case, "exchanges", "own.fedx", json!({"type": "topic"}), json!({"type": "direct"}));
            bind_unmanaged(case, "far.auto", "own.fedx", "exchange");
        }
    }
    if random.chance(26) {
        both(case, "queues", "own.typed", classic(), json!({"type": "quorum", "deliveryLimit": 5}));
        bind_unmanaged(case, "amq.topic", "own.typed", "queue");
        if random.chance(50) {
            list(&mut case.unmanaged, "int32").push(json!({"source": "amq.topic", "destination": "own.typed"}));
        }
    }
    if random.chance(15) {
        list(&mut case.unmanaged, "exchanges").push(json!({"name": "far.src", "type": "topic"}));
        table(&mut case.second, "exchanges").insert("far.src".to_owned(), json!({"external": true}));
        both(case, "queues", "own.in", classic(), json!({"type": "classic", "maxLength": 7}));
        let binding =
            json!({"source": "far.src", "destination": "own.in", "destinationType": "queue", "routingKey": "k"});
        list(&mut case.second, "bindings").push(binding);
        bind_unmanaged(case, "far.src", "own.in", "queue");
    }
    if possible.streams && random.chance(8) {
        both(case, "queues", "own.log", json!({"type": "stream"}), json!({"type": "stream", "maxAge": "7D"}));
        case.unmanaged["messages"]["own.log"] = 2.into();
    }
}
