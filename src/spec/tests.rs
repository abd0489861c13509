//! Whole specs: what is taken, what is refused, in which words and where.

use super::*;
use crate::model::{ArgumentValue, Destination, QueueName};

fn file(text: &str) -> SourceFile {
    SourceFile { name: "topology.yaml".to_owned(), text: text.to_owned() }
}

fn parse_one(text: &str) -> Result<Spec, Diagnostics> {
    let mut specs = parse(&[file(text)], &Variables::new())?;
    assert_eq!(specs.len(), 1);
    Ok(specs.remove(0))
}

/// With the two keys that every spec has.
fn spec(text: &str) -> Spec {
    match parse_one(&format!("version: 1\nvhost: shop\n{text}")) {
        Ok(spec) => spec,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn errors(text: &str) -> String {
    parse_one(&format!("version: 1\nvhost: shop\n{text}")).expect_err("this spec is wrong").to_string()
}

/// The errors of a spec with the hints, without the places.
fn hints(text: &str) -> Vec<String> {
    let diagnostics = parse_one(&format!("version: 1\nvhost: shop\n{text}")).expect_err("this spec is wrong");
    diagnostics.iter().map(|it| it.hint.clone().unwrap_or_default()).collect()
}

/// The example of the design, without retries.
pub(crate) const BIG: &str = r##"
# yaml-language-server: $schema=../schema/topology.schema.json
version: 1
vhost: {name: shop, description: The shop}
x-worker: &worker {type: quorum, deliveryLimit: 5}
owns: ["orders.*"]
protect: ["orders.audit"]
ignore:  ["orders.tmp.*"]
removed: {queues: [orders.old]}
defaults:
  queue: {type: quorum}
  deadLetter: orders.dead
exchanges:
  orders:   {type: topic, alternateExchange: unrouted}
  unrouted: {type: fanout}
  legacy:   {external: true}
  corp.dlx: {external: true}
  clicks:   {type: x-consistent-hash, arguments: {hash-header: user}}
queues:
  orders.work:
    <<: *worker
    bindings:
      - {exchange: orders, routingKey: "order.#"}
    maxLength: 100000
    messageTtl: 1h30m
    deadLetter: {queue: orders.dead, wiring: policy}
    onConflict: migrate
  orders.audit:
    type: stream
    maxAge: 7d
    bindings: [{exchange: orders, routingKey: "#"}]
  orders.legacy:
    type: classic
    deadLetter: none
    bindings:
      - {exchange: legacy, arguments: {x-match: all, region: eu, tier: 2}}
  orders.billing:
    deadLetter: {exchange: corp.dlx, routingKey: billing}
  billing.in: {external: true, bindings: [{exchange: orders, routingKey: billing}]}
deadLetterQueues:
  orders.dead:
    type: quorum
    maxLengthBytes: 1GiB
bindings:
  - {source: orders, destination: clicks, destinationType: exchange, routingKey: "click.#"}
policies:
  orders-limits:
    pattern: '^orders\.work$'
    applyTo: queues
    priority: 10
    definition: {maxLengthBytes: 1GiB, message-ttl: 30s, ha-mode: all}
"##;

#[test]
fn the_example_of_the_design_is_read() {
    let spec = parse_one(BIG).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    assert_eq!(spec.description.as_ref().map(|it| it.value.as_str()), Some("The shop"));
    let work = &spec.queues[&QueueName::new("orders.work")];
    assert_eq!(work.arguments["x-message-ttl"].value, ArgumentValue::Integer(5_400_000));
    assert_eq!(work.arguments["x-delivery-limit"].value, ArgumentValue::Integer(5));
    assert_eq!(work.queue_type.as_ref().map(|it| (it.value, it.said_by)), Some((QueueType::Quorum, SaidBy::Itself)));
    let audit = &spec.queues[&QueueName::new("orders.audit")];
    assert_eq!(audit.arguments["x-max-age"].value, ArgumentValue::Text("7D".to_owned()));
    assert_eq!(audit.dead_letter, None, "a stream takes no default dead letter");
    assert_eq!(spec.bindings.len(), 5);
    let definition = &spec.policies[&"orders-limits".into()].definition;
    assert_eq!(definition.keys().collect::<Vec<_>>(), ["ha-mode", "max-length-bytes", "message-ttl"]);
    assert_eq!(definition["max-length-bytes"].value, ArgumentValue::Integer(1 << 30));
    assert_eq!(definition["message-ttl"].value, ArgumentValue::Integer(30_000));
}

#[test]
fn ten_errors_of_one_file_are_all_reported() {
    let text = r##"version: 1
vhost: shop
exchanges:
  orders: {type: topik}
  audit: {type: fanout, durabel: true}
queues:
  amq.mine: {type: quorum}
  work:
    type: quorum
    bindings: [{exchange: orders, routingKey: "a"}, {exchange: ordres}]
    maxLength: "5"
    messageTtl: 30sec
    maxPriority: 3
    deadLetter: dead
    retry: standard
  idle: {}
policies:
  p: {pattern: x, definition: {maxLenght: 5}}
"##;
    let found = parse_one(text).expect_err("ten errors").to_string();
    let expected = "\
4:18: error[wrong-value]: there are no exchanges of type `topik`
5:25: error[unknown-key]: an exchange has no key `durabel`
7:3: error[name]: \"amq.mine\" cannot be the name of an object: names that start with `amq.` are the broker's own
10:64: error[undeclared]: the source of this binding is exchange `ordres`, which is neither declared nor external
11:16: error[number-as-text]: `maxLength` is text that holds a number
12:17: error[wrong-type]: `messageTtl` wants a duration such as `30s`, but there is the text \"30sec\"
13:5: error[wrong-queue-type]: queue `work` is a quorum queue, which takes no `maxPriority`
14:17: error[undeclared]: `dead` is no entry of `deadLetterQueues`
15:5: error[not-yet]: `retry` is not supported yet
16:3: error[missing-key]: queue `idle` has no `type`
18:32: error[unknown-key]: a policy has no key `maxLenght`
";
    assert_eq!(found, expected);
}

#[test]
fn what_every_document_needs() {
    let says = |text: &str| parse_one(text).expect_err("wrong").to_string();
    assert_eq!(says(""), "1:1: error[empty]: `topology.yaml` says nothing\n");
    assert_eq!(says("# nothing\n"), "1:1: error[empty]: `topology.yaml` says nothing\n");
    assert_eq!(says("vhost: /\n"), "1:1: error[missing-key]: this document has no `version`\n");
    assert_eq!(says("version: 1\n"), "1:1: error[missing-key]: this document has no `vhost`\n");
    assert_eq!(says("version: 2\nvhost: /\n"), "1:10: error[version]: version 2 of the format is not known\n");
    assert_eq!(
        says("version: \"1\"\nvhost: /\n"),
        "1:10: error[wrong-type]: `version` wants the number 1, but there is the text \"1\"\n"
    );
    assert_eq!(says("- a\n"), "1:1: error[wrong-type]: this document wants a table, but there is a list\n");
    assert_eq!(
        says("vresion: 1\nvhost: /\n"),
        "1:1: error[unknown-key]: a spec has no key `vresion`\n",
        "the missing key is the misspelt one"
    );
}

#[test]
fn yaml_that_is_none_has_a_position_and_a_hint() {
    assert_eq!(errors("queues:\n\ta: {}\n"), "4:2: error[syntax]: a tab cannot indent YAML\n");
    let star = "bindings:\n  - {source: amq.topic, destination: q, routingKey: *.x}\n";
    assert_eq!(errors(star), "4:53: error[syntax]: this alias has no anchor\n");
    assert!(hints(star)[0].contains("put a routing key such as \"*.orders\" in quotes"));
    let hash = "queues:\n  q:\n    type: quorum\n    bindings:\n      - exchange: amq.topic\n        routingKey: #.x\n";
    assert_eq!(errors(hash), "8:9: error[wrong-type]: `routingKey` wants text, but there is nothing\n");
    assert_eq!(hints(hash), ["`#` starts a comment in YAML: put the value in quotes"]);
    assert!(errors("queues: {q: ${X}}\n").starts_with("3:14: error[syntax]:"), "{}", errors("queues: {q: ${X}}\n"));
    assert!(hints("queues: {q: ${X}}\n")[0].contains("in quotes inside"), "{:?}", hints("queues: {q: ${X}}\n"));
    let twice = "queues:\n  q: {type: quorum}\n  q: {type: classic}\n";
    assert_eq!(errors(twice), "5:3: error[duplicate-key]: `q` is said twice in one table\n");
    let diagnostics = parse_one(&format!("version: 1\nvhost: shop\n{twice}")).expect_err("twice");
    assert_eq!(diagnostics.iter().next().map(|it| it.secondary[0].0.line), Some(4));
}

#[test]
fn bombs_are_refused_quickly() {
    let mut bomb = String::from("x-a: &a [1,1,1,1,1,1,1,1,1,1]\n");
    for (previous, next) in ('a'..'k').zip('b'..='k') {
        let aliases = vec![format!("*{previous}"); 10].join(",");
        bomb.push_str(&format!("x-{next}: &{next} [{aliases}]\n"));
    }
    let start = std::time::Instant::now();
    assert!(errors(&bomb).contains("error[too-large]"), "{}", errors(&bomb));
    let deep = format!("x-a: {}{}\n", "[".repeat(5000), "]".repeat(5000));
    assert!(errors(&deep).contains("error[too-large]"), "{}", errors(&deep));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn one_anchor_may_serve_many_queues() {
    let mut text = String::from("x-q: &q {type: quorum, maxLength: 5}\nqueues:\n");
    (0..300).for_each(|n| text.push_str(&format!("  q{n}: {{<<: *q, maxLength: {n}}}\n")));
    let spec = spec(&text);
    assert_eq!(spec.queues.len(), 300);
    assert_eq!(spec.queues[&"q7".into()].arguments["x-max-length"].value, ArgumentValue::Integer(7));
}

#[test]
fn a_mistake_in_an_anchor_is_one_error_where_it_stands() {
    let text = "x-q: &q {type: quorum, maxLength: many}\nqueues:\n  a: *q\n  b: *q\n";
    assert_eq!(errors(text), "3:35: error[wrong-type]: `maxLength` wants a count, but there is the text \"many\"\n");
}

#[test]
fn variables_take_the_type_of_their_place() {
    let text = "version: 1\nvhost: ${VHOST}\nqueues:\n  ${PREFIX:-a}.q:\n    type: ${TYPE}\n    maxLength: \"${MAX}\"\n    \
                messageTtl: ${TTL}\n    singleActiveConsumer: ${SAC}\n    arguments: {x-note: \"$${X}\", x-max: \"${MAX}\"}\n";
    let pairs = [("VHOST", "/"), ("TYPE", "quorum"), ("MAX", "5"), ("TTL", "30s"), ("SAC", "true")];
    let variables = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let specs = parse(&[file(text)], &variables).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    let queue = &specs[0].queues[&"a.q".into()];
    let value = |name: &str| queue.arguments[name].value.clone();
    assert_eq!(value("x-max-length"), 5.into());
    assert_eq!(value("x-message-ttl"), 30_000.into());
    assert_eq!(value("x-single-active-consumer"), true.into());
    assert_eq!(value("x-note"), "${X}".into());
    assert_eq!(value("x-max"), "5".into());
    assert_eq!(errors("owns: [\"${NOPE}\"]\n"), "3:8: error[variable]: the variable `NOPE` is not set\n");
}

#[test]
fn several_documents_and_files_are_merged() {
    let files = [
        file(
            "version: 1\nvhost: {name: a, defaultQueueType: quorum}\nexchanges: {e: {type: topic}}\n---\nversion: 1\nvhost: b\n",
        ),
        file("version: 1\nvhost: a\nqueues: {q: {bindings: [{exchange: e}]}}\n"),
    ];
    let specs = parse(&files, &Variables::new()).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    assert_eq!(specs.iter().map(|spec| spec.vhost.value.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let queue_type = specs[0].queues[&"q".into()].queue_type.clone();
    assert_eq!(queue_type.map(|it| (it.value, it.said_by)), Some((QueueType::Quorum, SaidBy::Vhost)));
}

#[test]
fn what_is_declared_twice_shows_both_places() {
    let one = "version: 1\nvhost: a\nqueues: {q: {type: quorum}}\n";
    let diagnostics = parse(&[file(one), file(one)], &Variables::new()).expect_err("twice");
    let found: Vec<_> =
        diagnostics.iter().map(|it| (it.message.as_str(), it.primary.file, it.secondary[0].0.file)).collect();
    assert_eq!(found, [("queue `q` is declared twice", 1, 0)]);
    assert_eq!(
        errors("queues: {q: {type: quorum}}\ndeadLetterQueues: {q: {type: quorum}}\n"),
        "4:20: error[declared-twice]: queue `q` is declared twice\n"
    );
    let bound = "queues: {q: {type: quorum, bindings: [{exchange: amq.topic}]}}\nbindings: [{source: amq.topic, destination: q}]\n";
    assert!(errors(bound).contains("is declared twice"));
    let external = "version: 1\nvhost: a\nqueues: {q: {external: true}}\n";
    assert!(parse(&[file(external), file(external)], &Variables::new()).is_ok(), "two may lean on one");
}

#[test]
fn a_key_and_its_argument_are_one_thing() {
    let queue = |keys: &str| format!("queues: {{q: {{type: quorum, {keys}}}}}\n");
    let read = spec(&queue("arguments: {x-message-ttl: 30s, x-other: [1, a]}"));
    assert_eq!(read.queues[&"q".into()].arguments["x-message-ttl"].value, 30_000.into());
    assert_eq!(
        errors(&queue("messageTtl: 1s, arguments: {x-message-ttl: 1000}")),
        "3:56: error[said-twice]: `messageTtl` is said twice: as a key and as the argument `x-message-ttl`\n"
    );
    assert!(errors(&queue("arguments: {x-queue-type: quorum}")).contains("`type` is said twice"));
    assert!(errors(&queue("arguments: {messageTtl: 5}")).contains("`messageTtl` is a key of the queue"));
    assert!(errors(&queue("arguments: {x-dead-letter-routing-key: a}")).contains("without `x-dead-letter-exchange`"));
    assert!(errors(&queue("arguments: {x-a: ~}")).contains("`x-a` wants a value, but there is nothing"));
    assert_eq!(hints(&queue("x-message-ttl: 5")), ["did you mean `messageTtl`?"]);
    assert!(errors("policies: {p: {pattern: a, definition: {maxLength: 1, max-length: 2}}}\n").contains("said twice"));
    assert!(errors("policies: {p: {pattern: a, definition: {maxPriority: 1}}}\n").contains("a policy cannot set"));
}

#[test]
fn defaults_hold_where_the_type_carries_them() {
    let read = spec(
        "defaults: {queue: {type: quorum, deliveryLimit: 3, durable: true, onConflict: ifEmpty}, deadLetter: dead}\n\
         queues: {a: {}, b: {type: classic, deadLetter: none}, c: {type: stream}, d: {deliveryLimit: 9}}\n\
         deadLetterQueues: {dead: {}}\n",
    );
    let limit = |name: &str| {
        read.queues[&name.into()].arguments.get("x-delivery-limit").map(|it| (it.value.clone(), it.said_by))
    };
    assert_eq!(limit("a"), Some((3.into(), SaidBy::Defaults)));
    assert_eq!((limit("b"), limit("c")), (None, None));
    assert_eq!(limit("d"), Some((9.into(), SaidBy::Itself)));
    assert_eq!(read.queues[&"b".into()].dead_letter.as_ref().map(|it| &it.value), Some(&DeadLetter::Nowhere));
    assert_eq!(read.dead_letter_queues[&"dead".into()].queue.dead_letter, None);
    let durable = errors("queues: {q: {type: quorum, durable: false, autoDelete: true}}\n");
    assert!(durable.contains("which must be durable") && durable.contains("cannot be deleted automatically"));
}

#[test]
fn external_objects_say_nothing_else() {
    assert_eq!(
        errors("exchanges: {e: {external: true, type: topic, bindings: [{exchange: amq.topic}]}}\n"),
        "3:33: error[external]: exchange `e` is external, so `type` cannot be said of it\n"
    );
    let read = spec("queues: {amq.gen-x: {external: true, bindings: [{exchange: amq.topic}]}}\n");
    let destinations: Vec<_> = read.bindings.keys().map(|binding| &binding.destination).collect();
    assert_eq!(destinations, [&Destination::Queue("amq.gen-x".into())]);
}

#[test]
fn names_and_keys_have_limits() {
    let long = "a".repeat(256);
    assert!(errors(&format!("exchanges: {{{long}: {{type: topic}}}}\n")).contains("it has 256 bytes"));
    assert!(errors("exchanges: {topo.lock: {type: topic}}\n").contains("are what topo gives to its own objects"));
    assert!(errors("exchanges: {\"a\\nb\": {type: topic}}\n").contains("it holds a line break or a NUL"));
    assert!(errors("exchanges: {\"\": {type: topic}}\n").contains("it is empty"));
    for key in ["\"null\"", "undefined"] {
        let found = errors(&format!(
            "bindings: [{{source: amq.topic, destination: amq.fanout, destinationType: exchange, routingKey: {key}}}]\n"
        ));
        assert!(found.contains("the routing key cannot be"), "{found}");
    }
    let key = format!(
        "bindings: [{{source: amq.topic, destination: amq.fanout, destinationType: exchange, routingKey: {long}}}]\n"
    );
    assert!(errors(&key).contains("this routing key has 256 bytes"));
    spec("exchanges: {\"a/b %~é\": {type: topic}}\n");
}

#[test]
fn references_need_a_declaration() {
    assert!(
        errors("exchanges: {e: {type: topic, alternateExchange: unruoted}, unrouted: {type: fanout}}\n")
            .contains("the alternate exchange of `e`")
    );
    assert!(
        errors("queues: {q: {type: quorum, deadLetter: {exchange: dlx}}}\n")
            .contains("the dead-letter exchange of queue `q` is exchange `dlx`")
    );
    assert!(
        hints("queues: {q: {type: quorum, deadLetter: w}, w: {type: quorum}}\n")[0]
            .starts_with("it is an ordinary queue")
    );
    assert_eq!(
        hints("exchanges: {orders: {type: topic}}\nqueues: {q: {type: quorum, bindings: [{exchange: ordres}]}}\n"),
        ["did you mean `orders`? Otherwise declare it under `exchanges:`, or mark it there with `external: true`"]
    );
    assert!(
        errors("policies: {p: {pattern: a, definition: {deadLetterExchange: dlx}}}\n")
            .contains("the dead-letter-exchange of policy `p`")
    );
    spec(
        "queues: {q: {type: quorum, deadLetter: {exchange: \"\", routingKey: q}, bindings: [{exchange: amq.direct}]}}\n",
    );
    spec(
        "deadLetterQueues: {d: {type: quorum}}\nbindings: [{source: amq.topic, destination: d.dlx, destinationType: exchange}]\n",
    );
}

#[test]
fn removed_and_ignored_objects_are_not_declared() {
    let removed = errors(
        "removed: {queues: [q], bindings: [{source: gone, destination: q2}], exchanges: [gone]}\nqueues: {q: {type: quorum}, q2: {type: quorum}}\n",
    );
    assert_eq!(removed, "3:20: error[removed-and-declared]: queue `q` is both declared and to be removed\n");
    let ignored = errors("ignore: [\"tmp.*\"]\nqueues: {tmp.q: {type: quorum}, tmp.x: {external: true}}\n");
    assert_eq!(ignored, "4:10: error[ignored-and-declared]: queue `tmp.q` is declared, and `ignore` matches it\n");
}

#[test]
fn what_comes_later_is_refused() {
    let text = "defaults: {retry: {delays: [5s]}}\nretryPolicies: {p: {}}\nqueues: {q: {type: quorum, retry: p, maxRetries: 5}}\n";
    let found = errors(text);
    assert_eq!(found.matches("is not supported yet").count(), 4, "{found}");
    assert_eq!(found.lines().count(), 4);
}

#[test]
fn values_of_the_wrong_kind_say_what_is_wanted() {
    let queue = |keys: &str| errors(&format!("queues: {{q: {{type: classic, {keys}}}}}\n"));
    assert!(queue("durable: yes").contains("`durable` wants `true` or `false`, but there is the text \"yes\""));
    assert!(queue("maxLength: 1_000").contains("`maxLength` wants a count, but there is the text \"1_000\""));
    assert!(queue("maxPriority: 256").contains("`maxPriority` cannot be 256"));
    assert!(queue("expires: 0").contains("`expires` cannot be 0 milliseconds"));
    assert!(queue("messageTtl: 1.5").contains("wants a duration"));
    assert!(queue("maxLengthBytes: 1G").contains("wants a size such as `64KiB`"));
    assert!(queue("overflow: drop").contains("`overflow` cannot be `drop`"));
    assert!(queue("bindings: {exchange: a}").contains("`bindings` wants a list, but there is a table"));
    assert!(queue("deadLetter: {queue: a, exchange: b}").contains("says more than one of `queue` or `exchange`"));
    assert!(queue("deadLetter: {wiring: policy}").contains("says neither `queue` nor `exchange`"));
    assert!(queue("deadLetterStrategy: at-least-once").contains("is a classic queue, which takes no"));
    assert!(queue("maxLength: 99999999999999999999").contains("is too large"));
    let octal = spec("queues: {q: {type: classic, maxLength: 010}}\n");
    assert_eq!(octal.queues[&"q".into()].arguments["x-max-length"].value, 10.into());
}

/// The schema and the parser say the same of each.
#[test]
fn the_schema_agrees_with_the_parser() {
    let schema = schema::schema();
    let validator = jsonschema::draft7::new(&schema).unwrap_or_else(|error| panic!("{error}"));
    let good = [
        BIG,
        "{version: 1, vhost: a, queues: {q: {type: quorum, maxLength: \"${MAX:-5}\", durable: true}}}",
        "{version: 1, vhost: a, queues: {q: {external: true, bindings: [{exchange: amq.topic}]}}}",
        "{version: 1, vhost: a, queues: {q: {type: stream, maxAge: 7d, maxLengthBytes: 10MB}}}",
        "{version: 1, vhost: a, x-b: 5, exchanges: {e: {type: x-random}}}",
        "{version: 1, vhost: a, defaults: {queue: {type: classic, maxPriority: 5}}, queues: {q: {}}}",
        "{version: 1, vhost: a, queues: {q: {arguments: {x-queue-type: classic, x-max-priority: 3}}}}",
        "{version: 1, vhost: a, deadLetterQueues: {d: {type: quorum, exchange: {type: topic, internal: true}}}}",
        "{version: 1, vhost: a, policies: {p: {pattern: x, priority: 1.5, definition: {ha-mode: all, expires: 5}}}}",
    ];
    let bad = [
        "{vhost: a}",
        "{version: 2, vhost: a}",
        "{version: 1, vhost: a, colour: red}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, maxPriority: 5}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, durable: false}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, retry: x}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, maxLength: \"5\"}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, messageTtl: 30sec}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, durable: yes}}}",
        "{version: 1, vhost: a, queues: {q: {external: true, type: quorum}}}",
        "{version: 1, vhost: a, queues: {amq.q: {type: quorum}}}",
        "{version: 1, vhost: a, queues: {q: ~}}",
        "{version: 1, vhost: a, queues: {q: {type: classic, arguments: {messageTtl: 5}}}}",
        "{version: 1, vhost: a, exchanges: {e: {}}}",
        "{version: 1, vhost: a, exchanges: {e: {type: topik}}}",
        "{version: 1, vhost: a, bindings: [{source: amq.topic, destination: amq.fanout, destinationType: exchange, routingKey: \"null\"}]}",
        "{version: 1, vhost: a, policies: {p: {pattern: x, definition: {}}}}",
        "{version: 1, vhost: a, policies: {p: {pattern: x, definition: {maxPriority: 5}}}}",
        "{version: 1, vhost: a, policies: {p: {pattern: x, definition: {maxLenght: 5}}}}",
        "{version: 1, vhost: a, deadLetterQueues: {d: {type: quorum, exchange: {type: x-random}}}}",
    ];
    for (texts, expected) in [(&good[..], true), (&bad[..], false)] {
        for text in texts {
            let strict = serde_yaml::options! { strict_booleans: true };
            let value: serde_json::Value =
                serde_yaml::from_str_with_options(text, strict).unwrap_or_else(|error| panic!("{text}: {error}"));
            let complaints: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert_eq!(complaints.is_empty(), expected, "the schema on {text}: {complaints:?}");
            let parsed = parse_one(text);
            assert_eq!(parsed.is_ok(), expected, "the parser on {text}: {:?}", parsed.err().map(|it| it.to_string()));
        }
    }
}
