//! Tests whole specs: valid specs, and the messages and positions of errors.

mod agreement;
mod plain_yaml;
mod retry;
mod text;
mod thresholds;

use super::*;
use crate::model::{ArgumentValue, Destination, QueueName};

fn file(text: &str) -> SourceFile {
    SourceFile { name: "topology.yaml".to_owned(), text: text.to_owned() }
}

fn parse_one(text: &str) -> Result<Spec, Diagnostics> {
    let mut specs = parse(&[file(text)], &Variables::new())?.vhosts;
    assert_eq!(specs.len(), 1);
    Ok(specs.remove(0))
}

/// Parses a spec after adding the two required keys.
fn spec(text: &str) -> Spec {
    match parse_one(&format!("version: 1\nvhost: shop\n{text}")) {
        Ok(spec) => spec,
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

fn errors(text: &str) -> String {
    parse_one(&format!("version: 1\nvhost: shop\n{text}")).expect_err("this spec is invalid").to_string()
}

/// Returns the hint of each error in a spec.
fn hints(text: &str) -> Vec<String> {
    let diagnostics = parse_one(&format!("version: 1\nvhost: shop\n{text}")).expect_err("this spec is invalid");
    diagnostics.iter().map(|it| it.hint.clone().unwrap_or_default()).collect()
}

/// A spec that uses most features.
const BIG: &str = r##"
# yaml-language-server: $schema=../schema/topology.schema.json
version: 1
vhost: {name: shop, description: The shop}
x-worker: &worker {type: quorum, maxRetries: 5}
owns: ["orders.*"]
protect: ["orders.audit"]
ignore:  ["orders.tmp.*"]
removed: {queues: [orders.old]}
defaults:
  queue: {type: quorum}
  retry: {delays: [5s, 30s, 5m]}
  deadLetter: orders.dead
retryPolicies:
  payments: {maxRetries: 5, strategy: ladder, backoff: {initial: 2s, factor: 2, max: 60s}}
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
    retry: payments
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
fn spec_with_most_features_is_parsed() {
    let spec = parse_one(BIG).unwrap_or_else(|diagnostics| panic!("{diagnostics}"));
    assert_eq!(spec.description.as_ref().map(|it| it.value.as_str()), Some("The shop"));
    let work = &spec.queues[&QueueName::new("orders.work")];
    assert_eq!(work.arguments["x-message-ttl"].value, ArgumentValue::Integer(5_400_000));
    let retry = work.retry.as_ref().unwrap();
    assert_eq!((retry.max_retries.value, retry.max_retries.set_by), (5, SetBy::Itself));
    assert_eq!(retry.delays(), [2000, 4000, 8000, 16_000, 32_000]);
    assert_eq!(work.queue_type.as_ref().map(|it| (it.value, it.set_by)), Some((QueueType::Quorum, SetBy::Itself)));
    let audit = &spec.queues[&QueueName::new("orders.audit")];
    assert_eq!(audit.arguments["x-max-age"].value, ArgumentValue::Text("7D".to_owned()));
    assert_eq!(audit.dead_letter, None, "a default dead-letter target does not apply to a stream");
    assert_eq!(audit.retry, None, "a default retry does not apply to a stream");
    assert_eq!(spec.bindings.len(), 5);
    let definition = &spec.policies[&"orders-limits".into()].definition;
    assert_eq!(definition.keys().collect::<Vec<_>>(), ["ha-mode", "max-length-bytes", "message-ttl"]);
    assert_eq!(definition["max-length-bytes"].value, ArgumentValue::Integer(1 << 30));
    assert_eq!(definition["message-ttl"].value, ArgumentValue::Integer(30_000));
}

#[test]
fn all_errors_of_a_file_are_reported() {
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
    let found = parse_one(text).expect_err("eleven errors").to_string();
    let expected = "\
4:18: error[wrong-value]: unknown exchange type `topik`
5:25: error[unknown-key]: unknown key `durabel` in an exchange
7:3: error[name]: invalid object name \"amq.mine\": names that start with `amq.` are reserved for the broker
10:64: error[undeclared]: the source of this binding, exchange `ordres`, is not declared
11:16: error[number-as-text]: expected a number for `maxLength`, found the string \"5\"
12:17: error[wrong-type]: expected a duration such as `30s` for `messageTtl`, found the string \"30sec\"
13:5: error[wrong-queue-type]: quorum queue `work` does not support `maxPriority`
14:17: error[undeclared]: dead-letter queue `dead` is not declared
15:12: error[undeclared]: retry policy `standard` is not declared
16:3: error[missing-key]: queue `idle` has no `type`
18:32: error[unknown-key]: unknown key `maxLenght` in a policy
";
    assert_eq!(found, expected);
}

#[test]
fn several_documents_and_files_are_merged() {
    let files = [
        file(
            "version: 1\nvhost: {name: a, defaultQueueType: quorum}\nexchanges: {e: {type: topic}}\n---\nversion: 1\nvhost: b\n",
        ),
        file("version: 1\nvhost: a\nqueues: {q: {bindings: [{exchange: e}]}}\n"),
    ];
    let specs = parse(&files, &Variables::new()).unwrap_or_else(|diagnostics| panic!("{diagnostics}")).vhosts;
    assert_eq!(specs.iter().map(|spec| spec.vhost.value.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let queue_type = specs[0].queues[&"q".into()].queue_type.clone();
    assert_eq!(queue_type.map(|it| (it.value, it.set_by)), Some((QueueType::Quorum, SetBy::Vhost)));
}

#[test]
fn duplicate_declaration_shows_both_positions() {
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
    assert!(
        parse(&[file(external), file(external)], &Variables::new()).is_ok(),
        "two documents can use one external queue"
    );
}

#[test]
fn key_and_its_argument_are_the_same_setting() {
    let queue = |keys: &str| format!("queues: {{q: {{type: quorum, {keys}}}}}\n");
    let read = spec(&queue("arguments: {x-message-ttl: 30s, x-other: [1, a]}"));
    assert_eq!(read.queues[&"q".into()].arguments["x-message-ttl"].value, 30_000.into());
    assert_eq!(
        errors(&queue("messageTtl: 1s, arguments: {x-message-ttl: 1000}")),
        "3:56: error[set-twice]: `messageTtl` is set twice: as a key and as the `x-message-ttl` argument\n"
    );
    assert!(errors(&queue("arguments: {x-queue-type: quorum}")).contains("`type` is set twice"));
    assert!(errors(&queue("arguments: {messageTtl: 5}")).contains("`messageTtl` is a key of the queue"));
    assert!(
        errors(&queue("arguments: {x-dead-letter-routing-key: a}"))
            .contains("refuses `x-dead-letter-routing-key` without")
    );
    assert!(errors(&queue("arguments: {x-a: ~}")).contains("expected a value for `x-a`, found nothing"));
    assert_eq!(hints(&queue("x-message-ttl: 5")), ["did you mean `messageTtl`?"]);
    assert!(errors("policies: {p: {pattern: a, definition: {maxLength: 1, max-length: 2}}}\n").contains("set twice"));
    assert!(errors("policies: {p: {pattern: a, definition: {maxPriority: 1}}}\n").contains("a policy cannot set"));
}

#[test]
fn defaults_apply_if_the_type_supports_them() {
    let read = spec(
        "defaults: {queue: {type: quorum, deliveryLimit: 3, durable: true, onConflict: ifEmpty}, deadLetter: dead}\n\
         queues: {a: {}, b: {type: classic, deadLetter: none}, c: {type: stream}, d: {deliveryLimit: 9}}\n\
         deadLetterQueues: {dead: {}}\n",
    );
    let limit = |name: &str| {
        read.queues[&name.into()].arguments.get("x-delivery-limit").map(|it| (it.value.clone(), it.set_by))
    };
    assert_eq!(limit("a"), Some((3.into(), SetBy::Defaults)));
    assert_eq!((limit("b"), limit("c")), (None, None));
    assert_eq!(limit("d"), Some((9.into(), SetBy::Itself)));
    assert_eq!(read.queues[&"b".into()].dead_letter.as_ref().map(|it| &it.value), Some(&DeadLetter::Nowhere));
    assert_eq!(read.dead_letter_queues[&"dead".into()].queue.dead_letter, None);
    let durable = errors("queues: {q: {type: quorum, durable: false, autoDelete: true}}\n");
    assert!(durable.contains("must be durable") && durable.contains("cannot be auto-delete"));
}

#[test]
fn external_objects_support_only_a_few_keys() {
    assert_eq!(
        errors("exchanges: {e: {external: true, type: topic, bindings: [{exchange: amq.topic}]}}\n"),
        "3:33: error[external]: exchange `e` is external, so `type` cannot be set\n"
    );
    let read = spec("queues: {amq.gen-x: {external: true, bindings: [{exchange: amq.topic}]}}\n");
    let destinations: Vec<_> = read.bindings.keys().map(|binding| &binding.destination).collect();
    assert_eq!(destinations, [&Destination::Queue("amq.gen-x".into())]);
}

#[test]
fn names_and_keys_have_limits() {
    let long = "a".repeat(256);
    assert!(errors(&format!("exchanges: {{{long}: {{type: topic}}}}\n")).contains("it is 256 bytes long"));
    assert!(errors("exchanges: {topo.lock: {type: topic}}\n").contains("are reserved for topo"));
    assert!(errors("exchanges: {\"a\\nb\": {type: topic}}\n").contains("it contains a line break or a NUL"));
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
    assert!(errors(&key).contains("this routing key is 256 bytes long"));
    spec("exchanges: {\"a/b %~é\": {type: topic}}\n");
}

#[test]
fn references_require_a_declaration() {
    assert!(
        errors("exchanges: {e: {type: topic, alternateExchange: unruoted}, unrouted: {type: fanout}}\n")
            .contains("the alternate exchange of `e`")
    );
    assert!(
        errors("queues: {q: {type: quorum, deadLetter: {exchange: dlx}}}\n")
            .contains("the dead-letter exchange of queue `q`, exchange `dlx`, is not declared")
    );
    assert!(
        hints("queues: {q: {type: quorum, deadLetter: w}, w: {type: quorum}}\n")[0]
            .starts_with("it is an ordinary queue")
    );
    assert_eq!(
        hints("exchanges: {orders: {type: topic}}\nqueues: {q: {type: quorum, bindings: [{exchange: ordres}]}}\n"),
        [
            "did you mean `orders`? Otherwise, declare it under `exchanges:`; add `external: true` there if it is managed elsewhere"
        ]
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
fn removed_and_ignored_objects_cannot_be_declared() {
    let removed = errors(
        "removed: {queues: [q], bindings: [{source: old, destination: q2}], exchanges: [old]}\nqueues: {q: {type: quorum}, q2: {type: quorum}}\n",
    );
    assert_eq!(removed, "3:20: error[removed-and-declared]: queue `q` is both declared and listed under `removed`\n");
    let ignored = errors("ignore: [\"tmp.*\"]\nqueues: {tmp.q: {type: quorum}, tmp.x: {external: true}}\n");
    assert_eq!(ignored, "4:10: error[ignored-and-declared]: queue `tmp.q` is declared, but `ignore` matches it\n");
}
