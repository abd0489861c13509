//! Tests `topo validate --broker-version`, and the messages about unsupported and unknown versions.

use serde_json::json;

use crate::support::Topo;

/// Objects that are valid in some versions and invalid in others.
const SPEC: &str = "\
version: 1
vhost: shop
defaults: {queue: {type: quorum}, deadLetter: none}
exchanges:
  orders: {type: topic}
queues:
  orders.work:
    delayedRetryType: failed
    delayedRetryMin: 5s
    bindings: [{exchange: orders, routingKey: \"order.#\"}]
  orders.mail: {type: classic, queueMode: lazy, arguments: {x-mesage-ttl: 60000}}
  orders.tmp: {type: classic, durable: false}
  orders.local: {type: classic, queueMasterLocator: min-masters}
policies:
  ha-all: {pattern: '^orders', definition: {ha-mode: all}}
  limits: {pattern: '^orders', applyTo: quorum_queues, definition: {maxLength: 1000}}
";

fn topo() -> Topo {
    Topo::offline().spec(SPEC)
}

/// Returns one line per finding: rule and position.
fn found(version: &str) -> Vec<String> {
    let output = topo().run(["validate", "--format", "json", "--broker-version", version]);
    let document = output.json();
    assert_eq!(document["formatVersion"], 1);
    let has_errors = document["diagnostics"].as_array().unwrap().iter().any(|it| it["severity"] == "error");
    output.expect_code(if has_errors { 1 } else { 0 });
    let line = |it: &serde_json::Value| {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        format!("{}:{} {} {}", it["at"]["line"], it["at"]["column"], text(&it["severity"]), text(&it["code"]))
    };
    document["diagnostics"].as_array().unwrap().iter().map(line).collect()
}

#[test]
fn findings_depend_on_the_version() {
    let typing_error = "11:61 warning unknown-argument";
    assert_eq!(
        found("3.10"),
        [
            "8:5 warning no-effect-setting",
            "9:5 warning no-effect-setting",
            typing_error,
            "12:31 info transient-queue",
            "15:45 warning mirrored-queue-policy",
            "16:41 error refused-by-broker"
        ]
    );
    assert_eq!(
        found("3.13"),
        [
            "8:5 warning no-effect-setting",
            "9:5 warning no-effect-setting",
            "11:32 warning lazy-mode",
            typing_error,
            "12:31 warning transient-queue",
            "15:45 warning mirrored-queue-policy",
        ]
    );
    assert_eq!(
        found("4.3"),
        [
            "11:32 warning lazy-mode",
            typing_error,
            "12:31 error transient-queue",
            "13:33 error refused-by-broker",
            "15:45 error mirrored-queue-policy",
        ]
    );
}

#[test]
fn text_output_has_the_line_and_a_hint() {
    let output = topo().run(["validate", "--broker-version", "3.10"]).expect_code(1);
    assert_eq!(
        output.stdout,
        "topology.yaml: vhost shop: 1 exchange, 4 queues, 1 binding, 2 policies\n\
         Not valid: 1 error, 4 warnings, 1 info. Checked against RabbitMQ 3.10.25, the newest known 3.10\nrelease.\n"
    );
    assert_eq!(
        output.stderr,
        r"warning[no-effect-setting]: queue `orders.work`: quorum queues read `x-delayed-retry-type` only on
                            RabbitMQ 4.3 and later: 3.10.25 stores but ignores it
 --> topology.yaml:8:5
  |
8 |     delayedRetryType: failed
  |     ^^^^^^^^^^^^^^^^
  |
  = help: remove `delayedRetryType` until the broker runs RabbitMQ 4.3 or later

warning[no-effect-setting]: queue `orders.work`: quorum queues read `x-delayed-retry-min` only on
                            RabbitMQ 4.3 and later: 3.10.25 stores but ignores it
 --> topology.yaml:9:5
  |
9 |     delayedRetryMin: 5s
  |     ^^^^^^^^^^^^^^^
  |
  = help: remove `delayedRetryMin` until the broker runs RabbitMQ 4.3 or later

warning[unknown-argument]: queue `orders.mail`: no broker supports the argument `x-mesage-ttl`: it
                           is stored and has no effect
  --> topology.yaml:11:61
   |
11 |   orders.mail: {type: classic, queueMode: lazy, arguments: {x-mesage-ttl: 60000}}
   |                                                             ^^^^^^^^^^^^
   |
   = help: did you mean `x-message-ttl`? In a spec, write `messageTtl`

info[transient-queue]: queue `orders.tmp`: RabbitMQ 3.13 deprecates queues that are neither durable
                       nor exclusive, and RabbitMQ 4.3 refuses them by default
  --> topology.yaml:12:31
   |
12 |   orders.tmp: {type: classic, durable: false}
   |                               ^^^^^^^
   |
   = help: make it durable, with `expires` to delete it automatically

warning[mirrored-queue-policy]: policy `ha-all`: mirrored queues are deprecated, and RabbitMQ 4.0
                                refuses `ha-mode`
  --> topology.yaml:15:45
   |
15 |   ha-all: {pattern: '^orders', definition: {ha-mode: all}}
   |                                             ^^^^^^^
   |
   = help: remove the `ha-` keys, and use `type: quorum` for queues that must be replicated

error[refused-by-broker]: policy `limits`: `applyTo: quorum_queues` requires RabbitMQ 3.12; the
                          broker is 3.10.25
  --> topology.yaml:16:41
   |
16 |   limits: {pattern: '^orders', applyTo: quorum_queues, definition: {maxLength: 1000}}
   |                                         ^^^^^^^^^^^^^
   |
   = help: use `applyTo: queues`

"
    );
}

#[test]
fn assumed_version_is_printed() {
    let fine = Topo::offline().spec("queues: {orders: {type: quorum, deadLetter: none}}\n");
    let output = fine.run(["validate"]).expect_code(0);
    assert!(
        output
            .stdout
            .ends_with("Valid. Checked against RabbitMQ 4.3.6, the newest known; override with --broker-version.\n")
    );
    assert_eq!(output.stderr, "");
    let output = fine.run(["validate", "--format", "json"]).expect_code(0).json();
    assert_eq!(output["brokerVersion"], "4.3.6");
    let output = fine.env("TOPO_BROKER_VERSION", "3.10.8").run(["validate"]).expect_code(0);
    assert!(output.stdout.ends_with("Valid. Checked against RabbitMQ 3.10.8.\n"), "{output}");
    // Warnings do not change the exit code.
    let lazy = Topo::offline().spec("queues: {orders: {type: classic, queueMode: lazy}}\n");
    lazy.run(["validate"]).expect_code(0).expect_text("Valid, with 1 warning. Checked against");
    let output = lazy.run(["validate", "--format", "github"]).expect_code(0);
    assert!(
        output
            .stdout
            .starts_with("::warning file=topology.yaml,line=3,col=34,endLine=3,endColumn=43,title=lazy-mode::queue"),
        "{output}"
    );
}

#[test]
fn unsupported_and_unknown_versions_are_reported() {
    let supported = "topo supports RabbitMQ 3.8 to 4.3, and treats later versions as 4.3";
    for version in ["3.7", "3.7.28", "2.8.7"] {
        topo().run(["validate", "--broker-version", version]).expect_code(64).expect_no_result().expect_text(supported);
        let line = ["plan", "--against", "empty", "--broker-version", version];
        topo().run(line).expect_code(64).expect_no_result().expect_text(supported);
    }
    let note = "info: RabbitMQ 5.0.0 is newer than the newest supported version; topo assumes the behavior of 4.3";
    let topo = Topo::offline().spec("queues: {orders: {type: quorum}}\n");
    topo.run(["validate", "--broker-version", "5.0"]).expect_code(0).expect_text(note);
    topo.run(["plan", "--against", "empty", "--broker-version", "5.0"]).expect_code(0).expect_text(note);
    topo.run(["plan", "--against", "empty", "--broker-version", "4.3.9"]).expect_code(0).expect_no_text("info:");
    let file = json!({"rabbit_version": "3.7.28", "vhosts": [{"name": "/"}], "queues": []}).to_string();
    let topo = topo.file("old.json", &file);
    let output = topo.run(["plan", "--against", "old.json"]).expect_code(65).expect_no_result();
    output.expect_text("it is for RabbitMQ 3.7.28; topo supports 3.8 and later");
    topo.run(["plan", "--against", "old.json", "--broker-version", "3.8"]).expect_code(0);
}

/// The variable applies to `validate`. A live broker reports its own version.
#[test]
fn version_variable_does_not_affect_a_plan() {
    let topo = topo().env("TOPO_BROKER_VERSION", "3.10").url("http://127.0.0.1:1");
    topo.run(["plan"]).expect_code(1).expect_error("cannot connect");
    topo.run(["plan", "--against", "empty"]).expect_code(0).expect_text("RabbitMQ 3.10.25");
}

/// `topo show --expanded` reads the variable: an invalid version is an error.
#[test]
fn version_variable_affects_an_expansion() {
    let topo = Topo::offline().spec("queues: {orders: {type: quorum, deadLetter: none}}\n");
    let output = topo.env("TOPO_BROKER_VERSION", "unknown").run(["show", "--expanded", "topology.yaml"]);
    output.expect_code(64).expect_no_result().expect_text("invalid value 'unknown' for '--broker-version");
}

#[test]
fn plan_prints_the_warnings() {
    let line = ["plan", "--against", "empty", "--broker-version", "4.0"];
    let output = topo().run(line).expect_code(0);
    assert!(!output.stdout.contains("lazy-mode"), "{output}");
    let first: Vec<&str> = output.stderr.lines().take(2).map(str::trim).collect();
    assert_eq!(
        first.join(" "),
        "warning[no-effect-setting]: queue `orders.work`: quorum queues read `x-delayed-retry-type` only on RabbitMQ \
         4.3 and later: 4.0.9 stores but ignores it topology.yaml:8"
    );
    assert!(
        output.stderr.contains("\n  hint: did you mean `x-message-ttl`? In a spec, write `messageTtl`\n"),
        "{output}"
    );
    let markdown = topo().run(line.into_iter().chain(["--format", "markdown"])).expect_code(0);
    assert!(markdown.stdout.contains("\n- **lazy-mode** topology.yaml:11: queue \\`orders.mail\\`: "), "{markdown}");
    let github = topo().run(line.into_iter().chain(["--format", "github"])).expect_code(0);
    assert!(
        github.stdout.contains("::warning file=topology.yaml,line=11,col=32,endLine=11,endColumn=41,title=lazy-mode::"),
        "{github}"
    );
    // The JSON document contains only the plan.
    let plan = topo().run(line.into_iter().chain(["--format", "json"])).expect_code(0);
    assert!(plan.stderr.contains("warning[lazy-mode]"), "{plan}");
    plan.plan();
    let quiet = topo().run(line.into_iter().chain(["-q"])).expect_code(0);
    assert_eq!(quiet.stderr, "");
    // topo prints only warnings of the selected objects.
    let output = topo().run(line.into_iter().chain(["--target", "queues/shop/orders.mail"])).expect_code(0);
    output.expect_text("unknown-argument").expect_no_text("no-effect-setting");
}
