//! Tests that comments on exported objects describe the broker, and not only the spec.

use crate::export::tests::{apply_spec, export_definitions, export_topology, profile};
use crate::model::{ArgumentValue, Arguments, Binding, Destination, Queue, Topology};

const VERSION: &str = "3.10.8";

/// Returns the comments in a text, except the header, each on one line.
fn comments(text: &str) -> String {
    let body = text.split_once("version: 1\n").map_or(text, |(_, body)| body);
    let lines = body.lines().map(str::trim).filter_map(|line| line.strip_prefix('#'));
    lines.map(|line| if line.starts_with("   ") { line.trim().to_owned() } else { format!("\n{}", line.trim()) }).fold(
        String::new(),
        |text, line| match line.strip_prefix('\n') {
            Some(_) => text + &line,
            None => text + " " + &line,
        },
    ) + "\n"
}

fn comments_on(topology: &Topology, globs: &[&str]) -> String {
    comments(&export_topology(topology, &profile(VERSION), globs).text)
}

fn bind_temporary_queue(topology: &mut Topology, queue: &str, source: &str, key: &str) {
    let it = Queue { durable: true, exclusive: false, auto_delete: true, arguments: Arguments::new() };
    topology.queues.insert(queue.into(), it);
    bind(topology, source, queue, key, Arguments::new());
}

fn bind(topology: &mut Topology, source: &str, queue: &str, routing_key: &str, arguments: Arguments) {
    let (source, destination) = (source.into(), Destination::Queue(queue.into()));
    topology.bindings.insert(Binding { source, destination, routing_key: routing_key.to_owned(), arguments });
}

#[test]
fn temporary_queues_are_destinations() {
    let spec = "
exchanges: {events: {type: fanout}, e: {type: topic, alternateExchange: rest}, rest: {type: fanout}, dlx: {type: direct}}
queues:
  w: {type: classic, bindings: [{exchange: e, routingKey: k}], deadLetter: {exchange: dlx, routingKey: x}}
";
    let mut topology = apply_spec(spec, &profile(VERSION));
    let found = comments_on(&topology, &[]);
    for rule in ["unbound-exchange", "dangling-alternate-exchange", "dead-letters-reach-nothing"] {
        assert_eq!(found.matches(&format!("\n{rule}: ")).count(), 1, "{rule}{found}");
    }
    bind_temporary_queue(&mut topology, "a", "events", "");
    bind_temporary_queue(&mut topology, "b", "rest", "");
    bind_temporary_queue(&mut topology, "c", "dlx", "x");
    assert_eq!(comments_on(&topology, &[]), "\n");
    // A binding with a different key does not match.
    topology.bindings.retain(|binding| binding.source != "dlx".into());
    bind(&mut topology, "dlx", "c", "y", Arguments::new());
    assert!(comments_on(&topology, &[]).starts_with("\ndead-letters-reach-nothing: "));
}

#[test]
fn objects_outside_of_the_filter_affect_comments() {
    let spec = "
exchanges: {app: {type: topic}, dlx: {type: fanout}}
queues:
  orders: {type: classic, bindings: [{exchange: app, routingKey: o}], deadLetter: {exchange: dlx}}
  orders.dead: {type: classic, bindings: [{exchange: dlx}]}
";
    let mut topology = apply_spec(spec, &profile(VERSION));
    let globs = ["app", "dlx", "orders"];
    assert_eq!(comments_on(&topology, &globs), "\n");
    topology.queues.remove(&"orders.dead".into());
    topology.bindings.retain(|binding| binding.source != "dlx".into());
    assert!(comments_on(&topology, &globs).starts_with("\ndead-letters-reach-nothing: "));
}

#[test]
fn binding_that_cannot_be_represented_affects_comments() {
    let spec = "
exchanges: {e: {type: headers}, f: {type: fanout}}
queues: {q: {type: classic}, r: {type: classic, bindings: [{exchange: f}]}}
";
    let mut topology = apply_spec(spec, &profile(VERSION));
    let found = comments_on(&topology, &[]);
    assert!(found.contains("\nunbound-exchange: ") && found.contains("\nunbound-queue: "), "{found}");
    bind(&mut topology, "e", "q", "", Arguments::from([("a".to_owned(), ArgumentValue::Null)]));
    let export = export_topology(&topology, &profile(VERSION), &[]);
    assert!(
        export.left_out.lines().join("\n").contains("1 binding that cannot be represented in a spec"),
        "{:?}",
        export.left_out
    );
    assert_eq!(comments(&export.text), "\n");
}

#[test]
fn comment_mentions_that_a_definitions_file_lacks_temporary_queues() {
    let topology = apply_spec("exchanges: {e: {type: fanout}}\nqueues: {q: {type: classic}}", &profile(VERSION));
    let found = comments(&export_definitions(&topology, &profile(VERSION)).text);
    let but =
        "messages published to it are dropped (a definitions file does not contain exclusive or transient queues)\n";
    assert!(found.contains(but), "{found}");
}

#[test]
fn equal_findings_are_one_comment() {
    let spec = "
exchanges: {e: {type: topic}}
queues:
  q:
    type: classic
    bindings:
      - {exchange: e, routingKey: '#'}
      - {exchange: e, routingKey: a}
      - {exchange: e, routingKey: b}
      - {exchange: e, routingKey: c}
      - {exchange: e, routingKey: d}
policies:
  ha: {pattern: '^q', definition: {ha-mode: all, ha-sync-mode: automatic}}
";
    let topology = apply_spec(spec, &profile(VERSION));
    let found = comments_on(&topology, &[]);
    let shadowed = "\ntopic-binding-shadowed: `a`, `b`, `c` and 1 more: it has no effect: the queue already receives";
    assert!(found.contains(shadowed) && found.matches("topic-binding-shadowed").count() == 1, "{found}");
    let mirrored =
        "\nmirrored-queue-policy: mirrored queues are deprecated, and RabbitMQ 4.0 refuses `ha-mode`, `ha-sync-mode`";
    assert!(found.contains(mirrored) && found.matches("mirrored-queue-policy").count() == 1, "{found}");
    // Refused keys do not cause a second finding.
    let refused = comments(&export_topology(&topology, &profile("4.0.5"), &[]).text);
    assert!(refused.contains("refused") && !refused.contains("refused-by-broker"), "{refused}");
}

fn waits(queues: &str) -> Vec<String> {
    let found = comments_on(&apply_spec(queues, &profile(VERSION)), &[]);
    let is_of_waiting = |line: &&str| {
        ["a manual retry", "manual retries", "messages wait here", "messages that are not"]
            .iter()
            .any(|it| line.starts_with(it))
    };
    found.lines().filter(is_of_waiting).map(str::to_owned).collect()
}

#[test]
fn manual_retry_receives_rejected_messages_and_returns_them() {
    // The worker selects the tier; rejected messages reach no tier.
    let ladder = "
exchanges: {e: {type: topic}, orders.retry: {type: direct}}
queues:
  orders: {type: classic, bindings: [{exchange: e, routingKey: o}], deadLetter: {exchange: orders.retry}}
  orders.5s: {type: classic, messageTtl: 5s, deadLetter: {exchange: '', routingKey: orders}, bindings: [{exchange: orders.retry, routingKey: 5s}]}
  orders.30s: {type: classic, messageTtl: 30s, deadLetter: {exchange: '', routingKey: orders}, bindings: [{exchange: orders.retry, routingKey: 30s}]}
";
    let on = |wait: &str| format!("messages wait here for {wait}, and then go to queue `orders`");
    let whole = "manual retries: messages that waited in `orders.5s`, `orders.30s` return here; `retry: {delays: [5s, 30s]}` has the same effect and counts attempts";
    assert_eq!(waits(ladder), [whole, &on("5s"), &on("30s")]);
    let by_key = ladder.replace("routingKey: 5s", "routingKey: o");
    let manual_retries = "a manual retry: messages that the worker of `orders` rejects wait here for 5s and then return, without limit unless the worker counts attempts";
    assert_eq!(waits(&by_key), [whole, manual_retries, &on("30s")]);
}

#[test]
fn queue_is_not_its_own_retry() {
    let queues = "queues: {loop: {type: classic, messageTtl: 1s, deadLetter: {exchange: '', routingKey: loop}}}";
    assert_eq!(waits(queues), [""; 0]);
    // If two queues dead-letter to each other, the queue with the shorter TTL is the waiting queue.
    let queues = "
exchanges: {e: {type: fanout}}
queues:
  work: {type: classic, messageTtl: 1d, bindings: [{exchange: e}], deadLetter: {exchange: '', routingKey: later}}
  later: {type: classic, messageTtl: 5s, deadLetter: {exchange: '', routingKey: work}}
";
    let found = waits(queues);
    let manual_retry = "a manual retry: messages that the worker of `work` rejects wait here for 5s";
    assert!(found[0].starts_with(manual_retry), "{found:?}");
    assert_eq!(found[1], "messages that are not consumed within 1d go to queue `later`");
}

#[test]
fn default_exchange_returns_messages_to_one_queue() {
    let queues = "
exchanges: {e: {type: fanout}, retry: {type: fanout}}
queues:
  a: {type: classic, bindings: [{exchange: e}], deadLetter: {exchange: retry}}
  b: {type: classic, bindings: [{exchange: e}], deadLetter: {exchange: retry}}
  wait: {type: classic, messageTtl: 5s, bindings: [{exchange: retry}], deadLetter: {exchange: '', routingKey: a}}
";
    let shared = "a manual retry that several queues share: messages that the workers of `a`, `b` reject wait here for 5s, and then";
    assert_eq!(waits(queues), [format!("{shared} all go to queue `a`")]);
    let queues = "
exchanges: {retry: {type: fanout}}
queues:
  a: {type: classic, deadLetter: {exchange: retry}}
  b: {type: classic, deadLetter: {exchange: retry}}
  wait: {type: classic, messageTtl: 5s, bindings: [{exchange: retry}], deadLetter: {exchange: ''}}
";
    assert_eq!(waits(queues), [format!("{shared} go to the queue named by their routing key")]);
}

#[test]
fn expired_work_is_not_a_retry() {
    let queues = "
exchanges: {e: {type: fanout}, old: {type: direct}}
queues:
  work: {type: classic, messageTtl: 1d, bindings: [{exchange: e}], deadLetter: {exchange: old, routingKey: work}}
  other: {type: classic, bindings: [{exchange: e}], deadLetter: {exchange: old, routingKey: other}}
  expired: {type: classic, bindings: [{exchange: old, routingKey: work}, {exchange: old, routingKey: other}]}
";
    assert_eq!(
        waits(queues),
        ["messages that are not consumed within 1d go to exchange `old` with routing key `work`"]
    );
    // The third queue receives only dead-lettered messages.
    let dead = queues.replace(
        "expired: {type: classic,",
        "expired: {type: classic, messageTtl: 7d, deadLetter: {exchange: '', routingKey: end},",
    );
    let found = waits(&format!("{dead}  end: {{type: classic}}\n"));
    assert!(found.contains(&"messages wait here for 7d, and then go to queue `end`".to_owned()), "{found:?}");
}

#[test]
fn waiting_queue_has_no_unbound_finding() {
    let queues = "
exchanges: {e: {type: topic}, old: {type: direct}}
queues:
  work: {type: classic, bindings: [{exchange: e, routingKey: w}]}
  more: {type: classic, bindings: [{exchange: e, routingKey: m}]}
  later: {type: classic, messageTtl: 1h, deadLetter: {exchange: e, routingKey: w}}
  odd: {type: classic, messageTtl: 1h, deadLetter: {exchange: e, routingKey: w}}
";
    let found = comments_on(&apply_spec(queues, &profile(VERSION)), &[]);
    let waits = "messages wait here for 1h, and then go to exchange `e` with routing key `w`";
    assert!(found.contains(&format!("\n{waits}\n")), "{found}");
    // The name of the other queue does not suggest waiting, so the queue may contain work that expires.
    assert!(found.contains("\nmessages that are not consumed within 1h"), "{found}");
    assert_eq!(found.matches("\nunbound-queue: ").count(), 1, "{found}");
}

#[test]
fn waiting_queue_without_a_destination_has_no_destination_comment() {
    let queues = "
exchanges: {e: {type: topic}, old: {type: direct}}
queues: {later: {type: classic, messageTtl: 1h, bindings: [{exchange: e, routingKey: w}], deadLetter: {exchange: old, routingKey: w}}}
";
    let topology = apply_spec(queues, &profile(VERSION));
    for queue in ["later", "work"] {
        let named = queues.replace("later", queue);
        let found = comments_on(&apply_spec(&named, &profile(VERSION)), &[]);
        assert!(found.contains("dead-letters-reach-nothing: ") && !found.contains("1h"), "{found}");
    }
    // A temporary queue, which no definitions file contains, may receive the messages.
    let found = comments(&export_definitions(&topology, &profile(VERSION)).text);
    assert!(found.contains("dead-letters-reach-nothing: ") && found.contains("messages wait here for 1h"), "{found}");
}

#[test]
fn missing_exchange_counts_its_other_senders() {
    for (queues, expected) in [
        (1, "the dead-lettered messages from `q1`;"),
        (2, "the dead-lettered messages from `q1`, and messages from 1 other source;"),
        (3, "the dead-lettered messages from `q1`, and messages from 2 other sources;"),
    ] {
        let queue = |number: u8| format!("  q{number}: {{type: classic, deadLetter: {{exchange: gone}}}}\n");
        let queues: String = (1..=queues).map(queue).collect();
        let spec = format!("exchanges:\n  gone: {{external: true, optional: true}}\nqueues:\n{queues}");
        let mut topology = apply_spec(&spec, &profile(VERSION));
        topology.exchanges.remove(&"gone".into());
        let found = comments_on(&topology, &[]);
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}
