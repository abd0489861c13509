//! Compares `topo explain` with the lint rules: both report the same settings that have no effect.

use std::collections::BTreeSet;

use topo::contract::lifecycle::{Explanation, explanation};
use topo::expand::expand;
use topo::lint::{Levels, Subject, lint};
use topo::rabbitmq::BrokerProfile;
use topo::spec::{SourceFile, Variables, parse};

/// Lint rules about settings that the broker ignores.
const RULES: [&str; 3] = ["no-effect-setting", "lazy-mode", "at-least-once-without-reject-publish"];

/// Returns the keys of queue `q` that have no effect according to `topo explain`, and the number of such findings.
fn both(version: &str, spec: &str) -> (BTreeSet<String>, usize) {
    let file = SourceFile { name: "t.yaml".to_owned(), text: format!("version: 1\nvhost: v\n{spec}") };
    let spec = parse(&[file], &Variables::new()).unwrap().vhosts.remove(0);
    let profile = BrokerProfile::of(version.parse().unwrap());
    let expansion = expand(&spec, &profile).unwrap();
    let Some(Explanation::Queue(life)) = explanation(&"q".into(), &spec, &expansion, &profile) else {
        panic!("no queue")
    };
    let explained = life.settings.into_iter().filter(|it| it.no_effect.is_some()).map(|it| it.key);
    let findings = lint(&Subject::new(&spec, &expansion, &profile), &Levels::new());
    (explained.collect(), findings.iter().filter(|it| RULES.contains(&it.rule)).count())
}

#[test]
fn explain_and_lint_agree() {
    let strategy = "deadLetterStrategy: at-least-once";
    let dead = "deadLetter: dead";
    for (version, keys, policy, expected) in [
        ("3.10.8", "type: classic, queueMode: lazy", "", vec![]),
        ("3.12.0", "type: classic, queueMode: lazy", "", vec!["queueMode"]),
        ("4.0.5", "type: classic", "queueMode: lazy", vec!["queueMode"]),
        ("3.13.7", "type: classic, queueVersion: 1", "", vec![]),
        ("4.0.5", "type: classic, queueVersion: 1", "", vec!["queueVersion"]),
        ("4.0.5", "type: classic, queueVersion: 2", "", vec![]),
        ("3.9.0", "type: quorum, maxInMemoryLength: 5", "", vec![]),
        ("3.10.8", "type: quorum, maxInMemoryLength: 5", "", vec!["maxInMemoryLength"]),
        ("3.10.8", "type: quorum", "maxInMemoryLength: 5", vec!["maxInMemoryLength"]),
        ("4.3.0", "type: quorum, overflow: reject-publish-dlx", "", vec!["overflow"]),
        ("4.3.0", "type: quorum", "overflow: reject-publish-dlx", vec!["overflow"]),
        ("4.3.0", "type: classic, overflow: reject-publish-dlx", "", vec![]),
        ("4.3.0", "type: quorum, delayedRetryMin: 5s", "", vec!["delayedRetryMin"]),
        ("4.3.0", "type: quorum, delayedRetryMin: 5s", "delayedRetryType: failed", vec![]),
        ("4.3.0", &format!("type: quorum, {strategy}, overflow: reject-publish"), "", vec!["deadLetterStrategy"]),
        ("4.3.0", &format!("type: quorum, {strategy}, {dead}"), "", vec!["deadLetterStrategy"]),
        ("4.3.0", &format!("type: quorum, {strategy}, {dead}, overflow: reject-publish"), "", vec![]),
        ("4.3.0", &format!("type: quorum, {strategy}, {dead}"), "overflow: reject-publish", vec![]),
    ] {
        let policies = if policy.is_empty() {
            String::new()
        } else {
            format!("policies: {{p: {{pattern: '^q$', applyTo: queues, definition: {{{policy}}}}}}}\n")
        };
        let spec = format!("queues: {{q: {{{keys}}}}}\ndeadLetterQueues: {{dead: {{type: quorum}}}}\n{policies}");
        let (explained, linted) = both(version, &spec);
        let expected: BTreeSet<String> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!((&explained, linted), (&expected, expected.len()), "{version} {keys} {policy}");
    }
}
