//! Tests the list of lint rules, their levels, and the exit codes.

use crate::support::Topo;

const SPEC: &str = "\
version: 1
vhost: shop
exchanges:
  orders: {type: topic}
queues:
  orders.work:
    type: quorum
    maxRetries: 3
    bindings: [{exchange: orders, routingKey: '#'}, {exchange: orders, routingKey: order.created}]
";

fn topo() -> Topo {
    Topo::offline().file("topology.yaml", SPEC)
}

#[test]
fn rules_are_listed() {
    for columns in [80, 120] {
        let output = Topo::offline().env("COLUMNS", &columns.to_string()).run(["rules"]).expect_code(0);
        let output = output.expect_text("no-dead-letter ").expect_text("off (info)");
        let long = output.stdout.lines().find(|line| line.chars().count() > columns);
        assert_eq!(long, None, "{columns}");
    }
    let rules = Topo::offline().run(["rules", "--format", "json"]).expect_code(0).json();
    let rules = rules["rules"].as_array().unwrap();
    let named = |name: &str| rules.iter().find(|rule| rule["name"] == name).unwrap();
    assert_eq!(
        (&named("unbounded-queue")["isOptional"], &named("no-dead-letter")["severity"]),
        (&true.into(), &"warning".into())
    );
    for rule in rules {
        Topo::offline().run(["explain", rule["name"].as_str().unwrap()]).expect_code(0).expect_text("## What it finds");
    }
}

#[test]
fn flag_sets_the_level_of_a_rule() {
    let found = |flags: &[&str]| {
        let output = topo().run(["validate", "--format", "json"].iter().chain(flags).copied());
        let found = output.json();
        let found = found["diagnostics"].as_array().unwrap().iter();
        found
            .map(|it| format!("{} {}", it["severity"].as_str().unwrap(), it["code"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&[]), ["warning no-dead-letter", "warning topic-binding-shadowed"]);
    assert_eq!(
        found(&["--lint", "no-dead-letter=off", "--lint", "topic-binding-shadowed=info"]),
        ["info topic-binding-shadowed"]
    );
    assert_eq!(found(&["--lint", "no-dead-letter=off", "--lint", "no-dead-letter=error"])[0], "error no-dead-letter");
    assert_eq!(found(&["--lint", "all=off"]), [""; 0]);
    assert_eq!(found(&["--lint", "all=off,no-dead-letter=info"]), ["info no-dead-letter"]);
    assert!(found(&["--lint", "unbounded-queue=info"]).contains(&"info unbounded-queue".to_owned()));
    topo()
        .run(["validate", "--lint", "no-dead-leter=off"])
        .expect_code(64)
        .expect_error("did you mean `no-dead-letter`?");
    topo()
        .run(["validate", "--lint", "no-dead-letter=loud"])
        .expect_code(64)
        .expect_error("`loud` is not one of off, info");
    topo().run(["validate", "--lint", "no-dead-letter"]).expect_code(64).expect_error("expected RULE=off");
}

/// A job that runs both `validate` and `plan` would otherwise print each annotation twice.
#[test]
fn plan_can_omit_findings() {
    let annotations = |flags: &str| topo().run(flags.split(' ')).expect_code(0).stdout;
    let finding = "title=no-dead-letter::";
    assert!(annotations("validate --format github").contains(finding));
    let plan = annotations("plan --against empty --format github");
    let (findings, own): (Vec<&str>, Vec<&str>) = plan.lines().partition(|line| !line.contains("title=topo plan"));
    assert!(findings.iter().any(|line| line.contains(finding)) && !own.is_empty(), "{plan}");
    let without = annotations("plan --against empty --format github --lint all=off");
    assert_eq!(without.lines().collect::<Vec<_>>(), own);
}

#[test]
fn findings_at_or_above_fail_on_end_a_run() {
    let code = |flags: &str, expected: i32| topo().run(flags.split(' ')).expect_code(expected);
    code("validate", 0).expect_text("Valid, with 2 warnings.");
    code("validate --fail-on error", 0);
    code("validate --fail-on warning", 1).expect_error("2 findings at or above --fail-on warning");
    code("validate --fail-on info", 1);
    code("validate --lint no-dead-letter=off --lint topic-binding-shadowed=info --fail-on warning", 0);
    code("validate --lint no-dead-letter=error", 1);
    code("validate --fail-on loud", 64);
    code("plan --against empty", 0);
    code("plan --against empty --detailed-exitcode", 2);
    code("plan --against empty --fail-on error", 0);
    let plan = code("plan --against empty --detailed-exitcode --fail-on warning", 1);
    plan.expect_text("Plan: ").expect_error("2 findings at or above --fail-on warning");
    code("plan --against empty --lint no-dead-letter=info --lint topic-binding-shadowed=info --fail-on warning", 0);
    // topo prints the finding that ends the run.
    let notes = "plan --against empty --lint no-dead-letter=info --lint topic-binding-shadowed=off --fail-on info";
    code(notes, 1).expect_text("info[no-dead-letter]");
    topo().env("TOPO_FAIL_ON", "warning").run(["validate"]).expect_code(1);
}

#[test]
fn invalid_allow_comment_is_a_spec_error() {
    let with = |comment: &str| {
        let text = SPEC.replace("maxRetries: 3", &format!("maxRetries: 3 # topo: {comment}"));
        Topo::offline().file("topology.yaml", &text).run(["validate"])
    };
    with("allow no-dead-letter they may be lost").expect_code(0).expect_text("Valid, with 1 warning.");
    with("allow no-dead-leter they may be lost").expect_code(65).expect_text("did you mean `no-dead-letter`?");
    with("allow no-dead-letter").expect_code(65).expect_text("missing reason for allowing");
    with("allow trigger-happy on purpose").expect_code(0).expect_text("warning[unused-allow]");
    let levels = |level: &str| format!("lint: {{{level}}}\n{SPEC}");
    let validate = |text: &str| Topo::offline().file("topology.yaml", text).run(["validate"]);
    validate(&levels("no-dead-letter: off, topic-binding-shadowed: off")).expect_code(0).expect_text("Valid. ");
    validate(&levels("no-dead-leter: off")).expect_code(65).expect_text("did you mean `no-dead-letter`?");
    validate(&levels("no-dead-letter: loud")).expect_code(65).expect_text("loud");
}

/// For repeated findings of a generated spec, topo prints the first ones in full, the next ones as lines, and the
/// number of the remaining ones. JSON contains all findings.
#[test]
fn repeated_findings_are_counted() {
    let queue = |n| format!("  q{n}: {{type: classic, maxLength: 9, messageTtl: 7d}}\n");
    let topo = Topo::offline().spec(&format!("queues:\n{}", (0..1050).map(queue).collect::<String>()));
    let output = topo.run(["validate"]).expect_code(0);
    for rule in ["no-dead-letter", "ttl-without-dead-letter"] {
        let title = format!("info[{rule}]: queue `");
        assert_eq!(output.stderr.matches(&title).count(), 20, "{output}");
        let more = format!("info[{rule}]: 1,030 more of the same kind\n  topology.yaml:24:");
        assert!(output.stderr.contains(&more), "{output}");
    }
    let rest = "\n  and 1,010 more: `topo validate --format json` lists all of them\n";
    assert_eq!(output.stderr.matches(rest).count(), 2, "{output}");
    assert!(output.stderr.lines().all(|line| line.chars().count() <= 100), "{output}");
    let annotations = topo.run(["validate", "--format", "github"]).expect_code(0).stdout;
    for rule in ["no-dead-letter", "ttl-without-dead-letter"] {
        assert_eq!(annotations.matches(&format!("title={rule}::")).count(), 21, "{annotations}");
        let rest =
            format!("title={rule}::1,030 more of the same kind: `topo validate --format json` lists all of them\n");
        assert!(annotations.contains(&rest), "{annotations}");
    }
    let json = topo.run(["validate", "--format", "json"]).expect_code(0).json();
    let of_rule = |finding: &&serde_json::Value| finding["code"] == "no-dead-letter";
    assert_eq!(json["diagnostics"].as_array().unwrap().iter().filter(of_rule).count(), 1050);
}

/// Variants of a vhost in one folder declare the same queues.
#[test]
fn repeated_errors_of_a_folder_of_variants_are_counted() {
    let mut topo = Topo::offline();
    for number in 100..145 {
        topo = topo
            .file(&format!("variants/v{number}.yaml"), "version: 1\nvhost: shop\nqueues: {orders: {type: quorum}}\n");
    }
    let output = topo.run(["validate", "variants"]).expect_code(65);
    let title = "error[declared-twice]: queue `orders` is declared twice";
    assert_eq!(output.stderr.matches(title).count(), 20, "{output}");
    let more = "error[declared-twice]: 24 more of the same kind\n  variants/v121.yaml:3:10: queue `orders` is declared twice\n";
    assert!(output.stderr.contains(more), "{output}");
    assert!(output.stderr.contains("\n  and 4 more: `topo validate --format json` lists all of them\n"), "{output}");
    assert!(output.stderr.contains("keep variants in separate folders"), "{output}");
    let annotations = topo.run(["validate", "variants", "--format", "github"]).expect_code(65).stdout;
    assert_eq!(annotations.matches("title=declared-twice::").count(), 21, "{annotations}");
    let json = topo.run(["validate", "variants", "--format", "json"]).expect_code(65).json();
    assert_eq!(json["diagnostics"].as_array().unwrap().len(), 44);
}
