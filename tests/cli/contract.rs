//! Tests each format of `topo contract` with the real binary.

use std::path::Path;

use serde_json::Value;

use super::expect_file;
use crate::support::{Output, Topo, valid_contract};

const SPEC: &str = "\
version: 1
vhost: shop
exchanges: {orders: {type: topic}, legacy: {external: true}}
queues:
  orders.work:
    type: quorum
    retry: {delays: [5s, 30s]}
    deadLetter: orders.dead
    bindings: [{exchange: orders, routingKey: \"order.#\"}]
  mail's: {type: classic, maxRetries: 2, retry: {strategy: republish}, deadLetter: {exchange: legacy}}
  plain: {type: classic}
  log: {type: stream}
  theirs: {external: true}
deadLetterQueues:
  orders.dead: {type: quorum}
";

fn topo() -> Topo {
    Topo::offline().spec(SPEC)
}

fn run(arguments: &[&str]) -> Output {
    topo().run(["contract"].into_iter().chain(arguments.iter().copied()))
}

#[test]
fn contract_table_fits_80_columns() {
    let output = topo().env("COLUMNS", "80").run(["contract"]).expect_code(0);
    assert_eq!(output.stderr, "");
    expect_file(&output, "contract-80.txt");
}

#[test]
fn contract_table_fits_120_columns() {
    let output = topo().env("COLUMNS", "120").run(["contract", "--queue", "orders.work"]).expect_code(0);
    expect_file(&output, "contract-120.txt");
}

#[test]
fn yaml_equals_json() {
    let json = run(&["--format", "json"]).expect_code(0).json();
    valid_contract(&json);
    assert_eq!(json["formatVersion"], 1);
    assert_eq!(json["brokerVersion"], "4.3.6");
    let queues = json["vhosts"]["shop"]["queues"].as_object().unwrap();
    assert_eq!(queues.keys().collect::<Vec<_>>(), ["mail's", "orders.work"]);
    assert_eq!(queues["orders.work"]["maxRetries"], 2);
    let yaml = run(&["--format", "yaml"]).expect_code(0).stdout;
    let read: Value = serde_yaml::from_str(&yaml).unwrap();
    assert_eq!(read, json);
    assert!(yaml.starts_with("formatVersion: 1\nbrokerVersion: \"4.3.6\"\nvhosts:\n  shop:\n"), "{yaml}");
    assert_eq!(run(&["--format", "json", "--broker-version", "3.8"]).json()["brokerVersion"], "3.8.35");
}

#[test]
fn shell_reads_the_variables() {
    let script = format!(
        "set -e; set -a; eval \"$({} contract --format env)\"; \
         echo \"$ORDERS_WORK_MAX_RETRIES $ORDERS_WORK_DELAYS_MS $MAIL_S_QUEUE <$MAIL_S_ON_FAILURE_EXCHANGE>\"",
        env!("CARGO_BIN_EXE_topo")
    );
    let output = Topo::of(Path::new("/bin/bash")).spec(SPEC).run(["-c", &script]).expect_code(0);
    assert_eq!(output.stdout, "2 5000,30000 mail's <>\n");
    let lines = run(&["--format", "env", "--queue", "orders.work"]).expect_code(0).stdout;
    assert!(
        lines.starts_with("ORDERS_WORK_QUEUE=orders.work\nORDERS_WORK_STRATEGY=ladder\nORDERS_WORK_MAX_RETRIES=2\n")
    );
    let met = Topo::offline()
        .spec("queues: {a.b: {type: quorum, maxRetries: 1}, a-b: {type: quorum, maxRetries: 1}}\n")
        .run(["contract", "--format", "env"]);
    let met =
        met.expect_code(1).expect_no_result().expect_error("A_B_QUEUE would be set by two queues: `a-b` and `a.b`");
    met.expect_text("print them separately: --queue a-b or --queue a.b");
    // A worker in a shell publishes the copy first, and then acknowledges the message.
    let obeyed = run(&["--format", "env", "--queue", "mail's"]).expect_code(0);
    obeyed.expect_text("\nMAIL_S_ON_FAILURE=publish\n").expect_text("\nMAIL_S_ON_FAILURE_THEN=basic.ack\n");
}

#[test]
fn queue_option_selects_queues() {
    // `--queue` also selects queues without retries.
    let plain = run(&["--queue", "plain"]).expect_code(0);
    plain.expect_text("dead-letter none: messages are dropped when the worker gives up");
    let both = run(&["--queue", "plain", "--queue", "orders.work", "--format", "json"]).expect_code(0).json();
    assert_eq!(both["vhosts"]["shop"]["queues"].as_object().unwrap().len(), 2);
    run(&["--queue", "log"]).expect_code(64).expect_no_result().expect_error("`log` is a stream");
    run(&["--queue", "theirs"]).expect_code(64).expect_no_result().expect_error("`theirs` is external");
    let unknown = run(&["--queue", "orders.wrok"]).expect_code(64).expect_no_result();
    unknown.expect_error("no queue `orders.wrok`").expect_text("did you mean `orders.work`?");
    let none = Topo::offline().spec("queues: {plain: {type: classic}}\n").run(["contract"]).expect_code(0);
    let hint = "No queue retries or dead-letters messages.\nTo print how an application must declare a queue, add --queue NAME.\n";
    assert!(none.stdout.ends_with(hint), "{none}");
}

#[test]
fn dead_letter_none_is_listed() {
    let spec = "queues:\n  clicks: {type: classic, messageTtl: 1m, deadLetter: none}\n  plain: {type: classic}\n";
    let output = Topo::offline().spec(spec).run(["contract"]).expect_code(0);
    let output = output.expect_text("dead-letter none (`deadLetter: none`)");
    output.expect_text("a message that is given up and a message that expires are dropped").expect_no_text("plain");
}

#[test]
fn first_line_names_the_version_and_its_origin() {
    let first = |output: Output| output.expect_code(0).stdout.lines().next().unwrap_or_default().to_owned();
    let assumed = first(run(&[]));
    assert!(assumed.contains("RabbitMQ 4.3 (the newest known; override with --broker-version)"), "{assumed}");
    let reported = first(run(&["--broker-version", "4.0"]));
    assert!(reported.contains("RabbitMQ 4.0 (set by --broker-version)"), "{reported}");
}

#[test]
fn schema_is_printed() {
    let schema = Topo::offline().run(["schema", "--kind", "contract"]).expect_code(0);
    assert_eq!(schema.json()["title"], "topo contract");
}

/// The dead-letter exchange routes by the message's own key, and its only binding has a different key.
const NOWHERE: &str = "\
version: 1
vhost: shop
exchanges: {orders.ex: {type: topic}}
queues:
  orders:
    type: classic
    deadLetter: {exchange: orders.dlx}
    bindings: [{exchange: orders.ex, routingKey: order.created}]
  bills:
    type: classic
    deadLetter: {exchange: orders.dlx}
    bindings: [{exchange: orders.ex, routingKey: bill}]
deadLetterQueues:
  orders.dlq: {type: classic, exchange: {name: orders.dlx, type: direct, routingKey: bill}}
";

#[test]
fn contract_explain_and_graph_show_no_arrival_where_the_broker_drops() {
    let topo = Topo::offline().spec(NOWHERE);
    let json = |line: &[&str]| topo.run(line.iter().copied().chain(["--format", "json"])).expect_code(0).json();
    let contracts = json(&["contract"]);
    valid_contract(&contracts);
    let [dropped, kept] = ["orders", "bills"].map(|queue| &contracts["vhosts"]["shop"]["queues"][queue]);
    assert_eq!(dropped["deadLetters"]["reach"], "never");
    assert_eq!(dropped["deadLetters"]["queue"], Value::Null);
    assert_eq!(dropped["deadLetters"]["droppedKeys"], serde_json::json!(["order.created"]));
    assert_eq!(dropped["deadLetteredMessage"], Value::Null);
    let text = "a message that is given up is dropped: exchange orders.dlx routes dead-lettered messages to no queue";
    assert!(dropped["warnings"].as_array().unwrap().contains(&text.into()), "{dropped}");
    assert_eq!(kept["deadLetters"]["reach"], "always");
    assert_eq!(kept["deadLetters"]["queue"], "orders.dlq");
    // The dead-letter exchange would drop a message with the queue's name as its key, so the contract contains the
    // dead-letter queue instead of the exchange.
    assert_eq!(
        kept["deadLetteredMessage"]["publish"],
        serde_json::json!({"exchange": "", "routingKeys": ["orders.dlq"]})
    );
    let explanation = &json(&["explain", "orders"])["explanations"][0];
    assert_eq!(explanation["steps"].as_array().unwrap().last().unwrap()["state"]["name"], "dropped");
    assert_eq!(json(&["explain", "orders.dlq"])["explanations"][0]["deadLettersFrom"], serde_json::json!(["bills"]));
    let graph = &json(&["graph"])["vhosts"][0];
    let nodes = graph["nodes"].as_array().unwrap();
    let place = |name: &str| nodes.iter().position(|node| node["name"] == name).unwrap();
    let dead: Vec<_> = graph["arrows"].as_array().unwrap().iter().filter(|it| it["kind"] == "deadLetter").collect();
    assert_eq!(dead.len(), 1, "{graph}");
    assert_eq!((&dead[0]["from"], &dead[0]["to"]), (&place("bills").into(), &place("orders.dlq").into()));
    assert_eq!(nodes[place("orders")]["notes"], serde_json::json!(["dead-lettered messages are unroutable"]));
}

/// The spec binds one external dead-letter queue to an external exchange, and another to an exchange of the spec.
const EXTERNAL_BINDINGS: &str = "\
version: 1
vhost: shop
exchanges: {own: {type: direct}}
queues:
  mail: {type: classic, deadLetter: {exchange: corp.dlx}}
  work: {type: classic, deadLetter: {exchange: own}}
deadLetterQueues:
  corp.dead: {external: true, exchange: {name: corp.dlx}}
  own.dead: {external: true, exchange: {name: own}}
";

#[test]
fn external_dead_letter_queues_are_possible_in_contract_explain_and_graph() {
    let topo = Topo::offline().spec(EXTERNAL_BINDINGS);
    let json = |line: &[&str]| topo.run(line.iter().copied().chain(["--format", "json"])).expect_code(0).json();
    let contracts = json(&["contract"]);
    let graph = &json(&["graph"])["vhosts"][0];
    let nodes = graph["nodes"].as_array().unwrap();
    let place = |name: &str| nodes.iter().position(|node| node["name"] == name).unwrap();
    for (queue, exchange, dead) in [("mail", "corp.dlx", "corp.dead"), ("work", "own", "own.dead")] {
        let contract = &contracts["vhosts"]["shop"]["queues"][queue]["deadLetters"];
        let explanation = &json(&["explain", queue])["explanations"][0]["contract"]["deadLetters"];
        for claim in [contract, explanation, &nodes[place(queue)]["deadLetters"]] {
            assert_eq!((&claim["reach"], &claim["possibleQueues"]), (&"maybe".into(), &serde_json::json!([dead])));
        }
        let leads = |from: &str, to: &str| {
            let ends = (Value::from(place(from)), Value::from(place(to)));
            graph["arrows"].as_array().unwrap().iter().any(|it| it["from"] == ends.0 && it["to"] == ends.1)
        };
        assert!(leads(queue, exchange) && leads(exchange, dead), "{graph}");
    }
}

/// Queue `b` dead-letters with the literal key `#.b`, which the exchange `e2` drops. `e2` routes messages with other
/// keys that the pattern `#.b` would match.
#[test]
fn literal_key_that_looks_like_a_pattern_is_not_listed_as_dropped() {
    let spec = "exchanges: {e2: {type: topic, alternateExchange: e4}, e4: {type: topic}}\n\
                queues:\n  b: {type: classic, deadLetter: order.dead}\n  \
                a: {type: classic, deadLetter: {exchange: order.dead.x}, bindings: [{exchange: e4, routingKey: 'order.#'}]}\n\
                deadLetterQueues:\n  order.dead:\n    type: quorum\n    \
                exchange: {type: topic, name: order.dead.x, routingKey: '#.b', internal: true}\n    deadLetter: {exchange: e2}\n";
    let contracts = Topo::offline().spec(spec).run(["contract", "--format=json"]).expect_code(0).json();
    let queues = contracts["vhosts"].as_object().unwrap().values().next().unwrap()["queues"].clone();
    let dead_letters = &queues["order.dead"]["deadLetters"];
    assert_eq!((&dead_letters["reach"], &dead_letters["possibleQueues"]), (&"maybe".into(), &serde_json::json!(["a"])));
    assert_eq!(dead_letters["droppedKeys"], serde_json::json!([]));
}

/// Exchange `e2` routes some keys that match `b.*`, but only to the queue itself. The broker drops a message in a
/// dead-letter cycle without a rejection.
#[test]
fn dead_letter_cycle_without_a_rejection_drops_the_message() {
    let spec = "exchanges: {e2: {type: topic}, e3: {type: topic}}\n\
                queues:\n  b:\n    type: classic\n    deadLetter: {exchange: e2}\n    retry: {strategy: ladder, delays: [20ms]}\n    \
                bindings: [{exchange: e2, routingKey: b.order}, {exchange: e3, routingKey: 'b.*'}]\n";
    let contracts = Topo::offline().spec(spec).run(["contract", "--format=json"]).expect_code(0).json();
    let queues = contracts["vhosts"].as_object().unwrap().values().next().unwrap()["queues"].clone();
    let dead_letters = &queues["b"]["deadLetters"];
    assert_eq!((&dead_letters["reach"], &dead_letters["possibleQueues"]), (&"never".into(), &serde_json::json!([])));
}

/// The bindings of the generated retry exchanges are not bindings of the queue itself, which receives its messages
/// through the default exchange.
#[test]
fn messages_of_the_default_exchange_keep_the_name_of_a_queue_with_retries_as_their_key() {
    let spec = "exchanges: {e1: {type: topic, alternateExchange: e3}, e3: {type: fanout}, e4: {type: topic}}\nqueues:\n  \
                order.a: {type: quorum, deadLetter: {exchange: e1}, retry: {delays: [20ms]}, maxLength: 100}\n  \
                work: {type: quorum, deadLetter: {exchange: e4}, retry: {strategy: republish, delays: [20ms]}}\n  \
                b: {type: classic, bindings: [{exchange: e3}]}\n  \
                c: {type: classic, bindings: [{exchange: e1, routingKey: '#.a'}, {exchange: e4, routingKey: '*'}]}\n";
    let contracts = Topo::offline().spec(spec).run(["contract", "--format=json"]).expect_code(0).json();
    let queues = contracts["vhosts"].as_object().unwrap().values().next().unwrap()["queues"].clone();
    let reached = |queue: &str| {
        let dead_letters = &queues[queue]["deadLetters"];
        (dead_letters["reach"].clone(), dead_letters["queues"].clone(), dead_letters["possibleQueues"].clone())
    };
    // A rejected message has the key of its retry; a message that exceeds `maxLength` keeps its own key.
    assert_eq!(reached("order.a"), ("always".into(), serde_json::json!([]), serde_json::json!(["b", "c"])));
    assert_eq!(reached("work"), ("maybe".into(), serde_json::json!([]), serde_json::json!(["c"])));
}

#[test]
fn policy_cannot_replace_the_keys_of_a_ladder() {
    let spec = "queues: {work: {type: classic, deadLetter: dead, retry: {delays: [5s]}}}\n\
                deadLetterQueues: {dead: {type: classic}}\n\
                policies: {p: {pattern: '^work$', definition: {deadLetterRoutingKey: failed}}}\n";
    let output = Topo::offline().spec(spec).run(["validate"]).expect_code(65);
    assert!(
        output.stderr.contains("error[retry-strategy]: a dead-letter routing key replaces the routing keys"),
        "{output}"
    );
}

/// The queues of the configurations: odd names, a ladder, counted deliveries, retries that the worker publishes, and a
/// queue without retries.
const CLIENTS: &str = "\
version: 1
vhost: shop
exchanges: {orders: {type: topic}}
queues:
  orders.work:
    type: quorum
    retry: {delays: [5s, 30s]}
    deadLetter: orders.dead
    bindings: [{exchange: orders, routingKey: order.created}]
  counted: {type: quorum, maxRetries: 3, deadLetter: orders.dead}
  published: {type: classic, maxRetries: 2, retry: {strategy: republish}, deadLetter: orders.dead}
  \"it's 100% \\\"$x\\\" \\\\é\": {type: classic, maxPriority: 5, messageTtl: 1m}
  log: {type: stream}
deadLetterQueues:
  orders.dead: {type: quorum}
";

#[test]
fn configuration_of_each_framework() {
    for framework in ["celery", "dramatiq", "faststream", "rascal", "nestjs", "symfony", "spring"] {
        let output = Topo::offline().spec(CLIENTS).run(["contract", "--for", framework]).expect_code(0);
        assert!(framework == "rascal" || output.stderr.is_empty(), "{output}");
        expect_file(&output, &format!("contract-{framework}.txt"));
    }
    let rascal = Topo::offline().spec(CLIENTS).run(["contract", "--for", "rascal"]).expect_code(0);
    let queue = &rascal.json()["vhosts"]["shop"]["queues"]["orders.work"];
    assert_eq!(queue["options"]["arguments"]["x-queue-type"], "quorum");
    rascal.expect_text("note: rascal only checks that the queues exist");
}

#[test]
fn configuration_contains_the_selected_queues() {
    // A worker does not consume from a dead-letter queue, unless it is selected.
    let all = run(&["--for", "celery"]).expect_code(0);
    all.expect_text("\"plain\"").expect_text("\"mail's\"").expect_no_text("\"orders.dead\"").expect_no_text("theirs");
    let dead = run(&["--for", "celery", "--queue", "orders.dead"]).expect_code(0);
    dead.expect_text("task_default_queue = \"orders.dead\"").expect_no_text("\"plain\"");
    run(&["--for", "celery", "--queue", "log"]).expect_code(64).expect_no_result().expect_error("`log` is a stream");
    run(&["--for", "celery", "--queue", "theirs"]).expect_code(64).expect_error("`theirs` is external");
    run(&["--for", "celery", "--queue", "plian"]).expect_code(64).expect_text("did you mean `plain`?");
    let streams = Topo::offline().spec("queues: {log: {type: stream}}\n").run(["contract", "--for", "spring"]);
    streams.expect_code(1).expect_no_result().expect_error("the spec declares no classic or quorum queue");
    run(&["--for", "celery", "--format", "json"]).expect_code(64).expect_error("cannot be used with");
    let flag = topo().env("TOPO_FORMAT", "json").run(["contract", "--for", "celery"]).expect_code(0);
    flag.expect_text("app.conf.task_queues = [");
    let flag = topo().env("TOPO_FOR", "celery").run(["contract", "--format", "json"]).expect_code(0);
    valid_contract(&flag.json());
}
