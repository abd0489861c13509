//! Tests each format of `topo graph` with the real binary.

use super::expect_file;
use crate::support::{Output, Topo};

const SPEC: &str = "\
version: 1
vhost: shop
exchanges:
  orders: {type: topic, alternateExchange: unrouted}
  unrouted: {type: fanout}
  legacy: {external: true}
queues:
  orders.work:
    type: quorum
    retry: {delays: [5s, 30s, 5m]}
    deadLetter: orders.dead
    bindings: [{exchange: orders, routingKey: order.created}, {exchange: orders, routingKey: \"order.#\"}]
  orders.mail: {type: quorum, maxRetries: 2, deadLetter: orders.dead, bindings: [{exchange: orders, routingKey: mail}]}
  orders.log: {type: stream, bindings: [{exchange: amq.topic, routingKey: \"#\"}]}
  rest: {type: classic, messageTtl: 1h, deadLetter: {exchange: legacy, routingKey: old}, bindings: [{exchange: unrouted}]}
  waits: {type: classic, messageTtl: 1m, deadLetter: {exchange: '', routingKey: rest}}
deadLetterQueues:
  orders.dead: {type: quorum}
";

/// A broker on which a tier is missing and another tier is obsolete. One queue has a different type, and one queue is
/// no longer declared.
const LIVE: &str = r##"{
  "vhosts": [{"name": "shop"}], "policies": [],
  "exchanges": [
    {"name": "orders", "vhost": "shop", "type": "topic", "durable": true, "auto_delete": false, "internal": false,
     "arguments": {"alternate-exchange": "unrouted"}},
    {"name": "unrouted", "vhost": "shop", "type": "fanout", "durable": true, "auto_delete": false, "internal": false,
     "arguments": {}}
  ],
  "bindings": [
    {"source": "orders", "vhost": "shop", "destination": "rest", "destination_type": "queue", "routing_key": "*",
     "arguments": {}},
    {"source": "orders", "vhost": "shop", "destination": "orders.old", "destination_type": "queue", "routing_key": "old.*",
     "arguments": {}},
    {"source": "unrouted", "vhost": "shop", "destination": "rest", "destination_type": "queue", "routing_key": "",
     "arguments": {}}
  ],
  "queues": [
    {"name": "rest", "vhost": "shop", "durable": true, "auto_delete": false,
     "arguments": {"x-queue-type": "classic", "x-message-ttl": 60000, "x-dead-letter-exchange": "legacy",
                   "x-dead-letter-routing-key": "old"}},
    {"name": "orders.work.retry.2.10s", "vhost": "shop", "durable": true, "auto_delete": false,
     "arguments": {"x-queue-type": "quorum", "x-message-ttl": 10000, "x-dead-letter-exchange": "orders.work.return",
                   "x-dead-letter-routing-key": "orders.work.retry.2"}},
    {"name": "orders.old", "vhost": "shop", "durable": true, "auto_delete": false,
     "arguments": {"x-queue-type": "quorum", "x-dead-letter-exchange": "orders.dead.dlx"}}
  ]
}"##;

fn topo() -> Topo {
    Topo::offline().spec(SPEC)
}

fn run(arguments: &[&str]) -> Output {
    topo().run(["graph"].into_iter().chain(arguments.iter().copied()))
}

/// Returns a folder with a saved plan.
fn planned() -> Topo {
    let spec = SPEC.replacen("exchanges:", "removed: {queues: [orders.old]}\nexchanges:", 1);
    let topo = Topo::offline().spec(&spec).file("live.json", LIVE);
    topo.run(["plan", "--against", "live.json", "--broker-version", "4.0", "--out", "plan.json"]).expect_code(0);
    topo
}

#[test]
fn formats_match_the_expected_files() {
    let plain = run(&[]).expect_code(0);
    assert_eq!(plain.stderr, "");
    expect_file(&plain, "graph.mmd");
    assert_eq!(run(&["--format", "mermaid"]).stdout, plain.stdout);
    expect_file(&run(&["--format", "dot"]).expect_code(0), "graph.dot");
    expect_file(&run(&["--format", "svg"]).expect_code(0), "graph.svg");
    expect_file(&run(&["--show", "all"]).expect_code(0), "graph-show-all.mmd");
}

#[test]
fn saved_plan_is_drawn_with_its_marks() {
    let topo = planned();
    expect_file(&topo.run(["graph", "--plan", "plan.json"]).expect_code(0), "graph-plan.mmd");
    let svg = topo.run(["graph", "--plan", "plan.json", "--format", "svg"]).expect_code(0);
    expect_file(&svg, "graph-plan.svg");
    for text in [
        ">+ orders.work</text>",
        ">- orders.old</text>",
        ">! rest</text>",
        ">- 10s</text>",
        ">+ order.created</text>",
        ">- old.*</text>",
    ] {
        assert!(svg.stdout.contains(text), "{text}: {svg}");
    }
    // Unchanged objects have no mark.
    assert!(svg.stdout.contains(">unrouted</text>"), "{svg}");
    // A plan without a broker can be drawn, although it cannot be applied. `--plan` excludes a spec, which topo would
    // not read.
    topo.run(["graph", "topology.yaml", "--plan", "plan.json"]).expect_code(64).expect_no_result();
    let unread = topo.run(["graph", "--plan", "topology.yaml"]).expect_code(65).expect_no_result();
    unread.expect_error("topology.yaml is not a plan");
    let other = topo.run(["graph", "--plan", "plan.json", "--vhost", "other"]).expect_code(64).expect_no_result();
    other.expect_error("the plan does not contain vhost `other`").expect_text("the plan contains shop");
}

/// Without this note, a plan that changes only policies would seem to change nothing.
#[test]
fn note_lists_policies_that_are_not_drawn() {
    let policy =
        |name: &str| format!("  {name}: {{pattern: '^orders', applyTo: queues, definition: {{maxLength: 9}}}}\n");
    let drawn = |policies: &str| {
        let topo = Topo::offline().spec(&format!("{SPEC}policies:\n{policies}")).file("live.json", LIVE);
        topo.run(["plan", "--against", "live.json", "--broker-version", "4.0", "--out", "plan.json"]).expect_code(0);
        topo.run(["graph", "--plan", "plan.json"]).expect_code(0).stderr
    };
    assert_eq!(
        drawn(&policy("a")),
        "1 policy changes; policies are not drawn, but the settings that it changes are marked\n"
    );
    assert_eq!(
        drawn(&(policy("a") + &policy("b"))),
        "2 policies change; policies are not drawn, but the settings that they change are marked\n"
    );
}

#[test]
fn near_selects_the_neighbors_of_a_queue() {
    let names = |arguments: &[&str]| -> Vec<&str> {
        let output = run(arguments).expect_code(0).stdout;
        let all =
            ["orders.work<", "orders.mail<", "orders<", "orders.dead<", "unrouted<", "rest<", "legacy<", "waits<"];
        all.into_iter().filter(|name| output.contains(&format!("\"{name}"))).collect()
    };
    assert_eq!(names(&["--focus", "orders.work", "--depth", "0"]), ["orders.work<"]);
    let near = ["orders.work<", "orders<", "orders.dead<"];
    assert_eq!(names(&["--focus", "orders.work"]), near);
    assert_eq!(names(&["--focus", "orders.work.retry.2.30s"]), near, "a queue and its tiers are one");
    let nearer = ["orders.work<", "orders.mail<", "orders<", "orders.dead<", "unrouted<"];
    assert_eq!(names(&["--focus", "orders.work", "--depth", "2"]), nearer);
    assert_eq!(names(&["--focus", "waits", "--depth", "9"]).len(), 8);
    // With `--show all`, a queue and its tiers still count as one step.
    let all = run(&["--focus", "orders.work", "--depth", "0", "--show", "all"]).expect_code(0);
    all.expect_text("orders.work.retry.over<br/>").expect_no_text("\"orders<br/>");
    let unknown = run(&["--focus", "orders.wrok"]).expect_code(64).expect_no_result();
    unknown.expect_error("no queue or exchange `orders.wrok`").expect_text("did you mean `orders.work`?");
    let part = run(&["--focus", "ders."]).expect_code(64).expect_no_result();
    part.expect_text(
        "did you mean one of `orders.dead`, `orders.dead.dlx`, `orders.log`, `orders.mail`, `orders.work`?",
    );
    let one = run(&["--focus", "ail"]).expect_code(64).expect_no_result();
    one.expect_text("did you mean `orders.mail`?");
    // topo does not suggest generated names.
    let tier = run(&["--focus", "orders.work.retry"]).expect_code(0).stdout;
    assert!(tier.contains("\"orders.work<"), "{tier}");
    let tier = run(&["--focus", "retry"]).expect_code(64).expect_no_result();
    tier.expect_error("no queue or exchange `retry`").expect_no_text("did you mean");
    // `--focus` also accepts exchanges.
    let of_exchange = ["orders.work<", "orders.mail<", "orders<", "unrouted<"];
    assert_eq!(names(&["--focus", "orders"]), of_exchange);
    assert_eq!(names(&["--focus", "legacy"]), ["rest<", "legacy<"]);
    run(&["--depth", "2"]).expect_code(64).expect_no_result();
    let far = run(&["--focus", "orders", "--depth", "x"]).expect_code(64).expect_no_result();
    far.expect_text("not a whole number; use a number such as 2");
}

#[test]
fn format_follows_the_file_name() {
    let topo = topo();
    let to = |name: &str| {
        let output = topo.run(["graph", "--out", name]).expect_code(0);
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output}");
        topo.read(name)
    };
    assert!(to("a.svg").starts_with("<svg xmlns="));
    assert!(to("a.dot").starts_with("digraph topology {"));
    assert!(to("a.mmd").starts_with("flowchart LR\n"));
    let markdown = to("a.md");
    assert!(markdown.starts_with("```mermaid\nflowchart LR\n") && markdown.ends_with("\n```\n"), "{markdown}");
    topo.run(["graph", "--out", "b.svg", "--format", "dot"]).expect_code(0);
    assert!(topo.read("b.svg").starts_with("digraph"));
    // topo refuses a file name that contradicts the format.
    for (name, hint) in
        [("c.png", "rsvg-convert -f png"), ("c.PDF", "rsvg-convert -f pdf"), ("c.txt", "use the extension .svg, .dot")]
    {
        let refused = topo.run(["graph", "--out", name]).expect_code(64).expect_no_result();
        refused.expect_error("topo graph cannot write .").expect_text(hint);
        assert!(!topo.path(name).exists(), "{name}");
    }
    topo.run(["graph", "--out", "c.txt", "--format", "dot"]).expect_code(0);
    topo.run(["graph", "--out", "c"]).expect_code(0);
    assert!(topo.read("c").starts_with("flowchart LR\n"));
}

/// topo replaces a graph file without `--force`, but not a spec, which a typing error may select.
#[test]
fn only_a_graph_file_is_replaced_without_force() {
    let topo = topo();
    for name in ["a.svg", "a.dot", "a.mmd", "a.md"] {
        topo.run(["graph", "--out", name]).expect_code(0);
        let drawn = topo.read(name);
        topo.run(["graph", "--focus", "orders.mail", "--out", name]).expect_code(0);
        assert_ne!(topo.read(name), drawn, "{name} is drawn again");
    }
    topo.write("page.md", "# Ours\n\n```mermaid\nflowchart LR\n```\n");
    for name in ["topology.yaml", "page.md"] {
        let before = topo.read(name);
        let refused = topo.run(["graph", "topology.yaml", "--out", name]).expect_code(64).expect_no_result();
        refused.expect_error("already exists and was not written by topo graph").expect_text("--force");
        assert_eq!(topo.read(name), before);
    }
    topo.run(["graph", "--out", "page.md", "--force"]).expect_code(0);
    assert!(topo.read("page.md").starts_with("```mermaid\n"));
}

#[test]
fn vhosts_are_drawn_separately() {
    let other = SPEC.replacen("vhost: shop", "vhost: other", 1);
    let topo = Topo::offline().file("topology/a.yaml", SPEC).file("topology/b.yaml", &other);
    let mermaid = topo.run(["graph"]).expect_code(0);
    assert_eq!(mermaid.stdout.matches("  subgraph ").count(), 2, "{mermaid}");
    let mermaid = mermaid.expect_text("vhost other: 2 exchanges, 6 queues");
    mermaid.expect_text("vhost shop: 2 exchanges, 6 queues");
    let one = topo.run(["graph", "--vhost", "other", "--format", "dot"]).expect_code(0);
    one.expect_text("vhost other").expect_no_text("vhost shop");
}

#[test]
fn long_name_is_not_a_directive_in_a_comment() {
    for signs in 1..=5 {
        let name = format!("{}{{init: {{\"theme\": \"dark\"}}}}%% {}", "%".repeat(signs), "x".repeat(60));
        let name = serde_json::json!(name);
        let topo = Topo::offline().spec(&format!("queues: {{{name}: {{type: classic}}}}\n"));
        let drawing = topo.run(["graph", "--format", "mermaid"]).expect_code(0).stdout;
        assert!(drawing.lines().any(|line| line.trim_start().starts_with("%% n")), "{drawing}");
        assert!(!drawing.contains("%{"), "{drawing}");
    }
}

/// Names that contain syntax of the output formats.
const ODD: &str = r##"version: 1
vhost: '"</svg>]'
exchanges: {'end': {type: topic}, 'a"b<c>&amp;`d`%%': {type: direct}}
queues:
  '"]; click n1 call()': {type: classic, bindings: [{exchange: end, routingKey: '#'}, {exchange: end, routingKey: '*._x_.*'}]}
  "tab\t\u202e\\N\\": {type: classic, bindings: [{exchange: 'a"b<c>&amp;`d`%%', routingKey: '"#quot;<br/>'}]}
  '<script>': {type: quorum, retry: {delays: [1s]}, deadLetter: '日本 🐇'}
deadLetterQueues: {'日本 🐇': {type: quorum}}
"##;

#[test]
fn unusual_names_are_escaped() {
    let long = "x".repeat(255);
    let spec = ODD.replacen("queues:\n", &format!("queues:\n  {long}: {{type: classic}}\n"), 1);
    let draw = |format: &str| Topo::offline().spec(&spec).run(["graph", "--format", format]).expect_code(0).stdout;

    let svg = draw("svg");
    let document = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let text = |tag: &str| -> Vec<String> {
        let all = document.descendants().filter(|node| node.has_tag_name(tag)).filter_map(|node| node.text());
        all.flat_map(str::lines).map(str::to_owned).collect()
    };
    let (written, told) = (text("text"), text("title"));
    for name in
        ["\"]; click n1 call()", "tab\\u{9}\\u{202e}\\N\\", "<script>", "日本 🐇", "a\"b<c>&amp;`d`%%", "*._x_.*"]
    {
        assert!(written.contains(&name.to_owned()), "{name}: {written:?}");
    }
    assert!(told.contains(&long) && !written.contains(&long));
    assert!(!svg.contains("<script"));

    let mermaid = draw("mermaid");
    for line in mermaid.lines().filter(|line| line.contains('"')) {
        let label = line.split('"').nth(1).unwrap();
        assert_eq!(line.matches('"').count(), 2, "{line}");
        let raw = label.replace("<br/>", "");
        assert!(!raw.contains(['<', '>', '`', '%', '*', '_', '\\', '[', ']', '{']), "{line}");
    }
    for label in [
        "&quot;&rsqb;&semi; click n1 call&lpar;&rpar;<br/>",
        "&quot;#quot&semi;&lt;br/&gt;",
        "tab&bsol;&ZeroWidthSpace;u&lcub;9&rcub;",
        "&num;",
        "&amp;amp&semi;",
    ] {
        assert!(mermaid.contains(label), "{label}: {mermaid}");
    }
    assert!(mermaid.contains(&format!(": {long}\n")), "in a comment: {mermaid}");

    let dot = draw("dot");
    for line in dot.lines() {
        // After escaped quotes are removed, the remaining quotes are balanced.
        assert_eq!(line.replace("\\\\", "").replace("\\\"", "").matches('"').count() % 2, 0, "{line}");
    }
    for label in
        [r#"label="\"]; click n1 call()\nclassic queue""#, r"tab\\u{9}\\u{202e}\\N\\\n", "&amp;amp;`d`%%", &long]
    {
        assert!(dot.contains(label), "{label}: {dot}");
    }
}

const EMPTY_KEY: &str = "\
version: 1
vhost: v
exchanges: {x: {type: fanout}, h: {type: headers}}
queues:
  a:
    type: classic
    deadLetter: {exchange: x, routingKey: ''}
    bindings: [{exchange: h}, {exchange: h, arguments: {x-match: all, f: zip}}]
  b: {type: classic, bindings: [{exchange: x}]}
";

/// Mermaid cannot parse an edge with an empty label.
#[test]
fn empty_key_is_labeled_in_every_format() {
    for (format, empty, reported) in [
        ("mermaid", "|\"\"|", "-.->|\"&quot;&quot;\"|"),
        ("dot", "label=\"\"", r#"label="\"\"""#),
        ("svg", "\"></text>", ">\"\"</text>"),
    ] {
        let drawn = Topo::offline().spec(EMPTY_KEY).run(["graph", "--format", format]).expect_code(0).stdout;
        assert!(drawn.contains(reported) && !drawn.contains(empty), "{format}: {drawn}");
        assert!(drawn.contains("every message"), "{format}: {drawn}");
    }
}

#[test]
fn limit_of_github_is_reported() {
    let mut spec = "version: 1\nvhost: v\nexchanges: {in: {type: topic}}\nqueues:\n".to_owned();
    for queue in 0..600 {
        spec += &format!(
            "  q{queue}: {{type: classic, messageTtl: {}ms, bindings: [{{exchange: in, routingKey: a}}]}}\n",
            queue + 1
        );
    }
    let topo = Topo::offline().spec(&spec);
    let output = topo.run(["graph"]).expect_code(0);
    assert!(output.stderr.contains("GitHub renders at most 500"), "{output}");
    let svg = topo.run(["graph", "--format", "svg"]).expect_code(0);
    assert_eq!(svg.stderr, "");
}

/// Returns the graph of a plan of this spec as DOT, against a broker with these queues. The exchange `dead.dlx` exists
/// and is bound to `dead`.
fn dot_of(spec: &str, queues: &str) -> Output {
    let exchange = "{\"name\": \"dead.dlx\", \"vhost\": \"shop\", \"type\": \"fanout\", \"durable\": true, \"auto_delete\": false, \
                    \"internal\": false, \"arguments\": {}}";
    let binding = "{\"source\": \"dead.dlx\", \"vhost\": \"shop\", \"destination\": \"dead\", \"destination_type\": \"queue\", \
                   \"routing_key\": \"\", \"arguments\": {}}";
    let live = format!(
        "{{\"vhosts\": [{{\"name\": \"shop\"}}], \"policies\": [], \"exchanges\": [{exchange}], \"bindings\": [{binding}], \
         \"queues\": [{queues}]}}"
    );
    let topo = Topo::offline().spec(&format!("version: 1\nvhost: shop\n{spec}")).file("live.json", &live);
    topo.run(["plan", "--against", "live.json", "--broker-version", "4.0", "--out", "plan.json"]).expect_code(0);
    topo.run(["graph", "--plan", "plan.json", "--format", "dot"]).expect_code(0)
}

/// Returns a queue of the management API with this name and additional arguments.
fn live(name: &str, arguments: &str) -> String {
    format!(
        "{{\"name\": \"{name}\", \"vhost\": \"shop\", \"durable\": true, \"auto_delete\": false, \
         \"arguments\": {{\"x-queue-type\": \"classic\"{arguments}}}}}"
    )
}

#[test]
fn queues_with_a_changed_policy_are_marked() {
    let spec = "queues: {a: {type: classic}, b: {type: classic, messageTtl: 1s}, c: {type: classic}}
policies: {p: {pattern: '^[ab]$', applyTo: queues, definition: {messageTtl: 9s}}}\n";
    let queues = [live("a", ""), live("b", ", \"x-message-ttl\": 1000"), live("c", "")].join(", ");
    let output = dot_of(spec, &queues);
    let output = output.expect_text("label=\"~ a\\nclassic queue · ttl 9s\"").expect_text("\\nchanged\\n");
    // The effective TTL of `b` is its own, which is shorter. The policy does not match `c`.
    output.expect_text("label=\"b\\nclassic queue · ttl 1s\"").expect_text("label=\"c\\nclassic queue\"");
    // The change does not make topo draw the exchange of a dead-letter queue separately.
    let spec = "queues: {a: {type: classic, deadLetter: dead}}\ndeadLetterQueues: {dead: {type: classic}}
policies: {p: {pattern: '^dead$', applyTo: queues, definition: {maxLength: 9}}}\n";
    let queues = [live("a", ", \"x-dead-letter-exchange\": \"dead.dlx\""), live("dead", "")].join(", ");
    dot_of(spec, &queues).expect_text("label=\"~ dead\\nclassic dead-letter queue\"").expect_no_text("dead.dlx");
}

#[test]
fn manual_retries_are_drawn_in_a_plan() {
    let dead_messages =
        |to: &str| format!(", \"x-dead-letter-exchange\": \"\", \"x-dead-letter-routing-key\": \"{to}\"");
    let work = "work: {type: classic, deadLetter: {exchange: '', routingKey: wait}}";
    let wait = "wait: {type: classic, messageTtl: 5s, deadLetter: {exchange: '', routingKey: work}}";
    let (live_work, live_wait) = (
        live("work", &dead_messages("wait")),
        live("wait", &format!(", \"x-message-ttl\": 5000{}", dead_messages("work"))),
    );
    let made = dot_of(&format!("queues: {{{work}, {wait}}}\n"), &live_work);
    let made = made.expect_text("label=\"+ wait\\nclassic queue · ttl 5s\"");
    let made = made.expect_text("tooltip=\"wait → work\\nretry (round trip)\\ncreated\"");
    // Before the plan, the broker drops rejected messages, so this arrow is new, too.
    made.expect_text("tooltip=\"work → wait\\nretry (round trip)\\ncreated\"");
    let gone =
        dot_of(&format!("queues: {{{work}}}\nremoved: {{queues: [wait]}}\n"), &[live_work, live_wait].join(", "));
    let gone = gone.expect_text("label=\"- wait\\nclassic queue · ttl 5s\"");
    let gone = gone.expect_text("tooltip=\"wait → work\\nretry (round trip)\\ndeleted\"");
    // After the plan, the broker drops rejected messages, because the queue with this name is deleted.
    gone.expect_text("label=\"work\\nclassic queue · dead-lettered messages are unroutable\"");
}
