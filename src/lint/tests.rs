//! Tests the documentation page of each rule: its headings and its examples. The examples are the tests for the rule.
//! Each example is a `yaml bad` or `yaml good` block, followed by a RabbitMQ version if the example depends on it.

use super::*;
use crate::expand::expand;
use crate::model::BrokerVersion;
use crate::rabbitmq::BrokerProfile;
use crate::spec::{Diagnostic, Diagnostics, Level, SourceFile, Variables, parse};
use std::collections::BTreeSet;

/// The headings of each page, in order.
const HEADINGS: [&str; 4] = ["## What it finds", "## Why it matters", "## What to do", "## Examples"];

struct Block<'a> {
    is_bad: bool,
    version: BrokerVersion,
    text: &'a str,
}

fn blocks(page: &'static str) -> Vec<Block<'static>> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("```yaml ") {
        let (info, after) = after.split_once('\n').expect("a block has lines");
        let (text, after) = after.split_once("```").expect("a block is closed");
        let mut words = info.split_whitespace();
        let is_bad = match words.next() {
            Some("bad") => true,
            Some("good") => false,
            other => panic!("a block is bad or good, not {other:?}"),
        };
        let version = words.next().map_or(BrokerVersion::NEWEST_KNOWN, |version| version.parse().unwrap());
        assert_eq!(words.next(), None);
        blocks.push(Block { is_bad, version, text });
        rest = after;
    }
    blocks
}

fn lint_text(text: &str, profile: &BrokerProfile) -> Vec<Finding> {
    lint_at(text, profile, &Levels::new())
}

fn lint_at(text: &str, profile: &BrokerProfile, levels: &Levels) -> Vec<Finding> {
    let has_subject = ["vhost:", "cluster:"].iter().any(|key| text.starts_with(key));
    let vhost = if has_subject { "" } else { "vhost: shop\n" };
    let file = SourceFile { name: "topology.yaml".to_owned(), text: format!("version: 1\n{vhost}{text}") };
    let mut specs = parse(&[file], &Variables::new()).unwrap_or_else(|found| panic!("{text}\n{found}"));
    let spec = specs.cluster.take().unwrap_or_else(|| specs.vhosts.remove(0));
    let expansion = expand(&spec, profile).unwrap_or_else(|found| panic!("{text}\n{found}"));
    lint(&Subject::new(&spec, &expansion, profile), levels)
}

/// Returns one line for each finding: position, severity, rule and message.
fn lines(text: &str, profile: &BrokerProfile) -> String {
    let mut diagnostics = Diagnostics::new();
    for finding in lint_text(text, profile) {
        diagnostics.push(Diagnostic::from(&finding));
    }
    diagnostics.to_string()
}

/// Returns the levels that enable a rule.
fn enable(rule: &Rule) -> Levels {
    let level = Level::named(rule.severity.as_str()).expect("a severity is a level");
    rule.is_optional.then(|| (rule.name.to_owned(), level)).into_iter().collect()
}

fn profile(version: &str) -> BrokerProfile {
    BrokerProfile::of(version.parse().unwrap())
}

#[test]
fn rules_are_sorted_and_match_their_pages() {
    let names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert!(names.is_sorted(), "{names:?}");
    for rule in RULES {
        let mut lines = rule.page.lines();
        assert_eq!(lines.next(), Some(format!("# {}", rule.name).as_str()));
        let summary = lines.nth(1).unwrap_or_default().trim_end_matches('.').to_lowercase();
        assert_eq!(summary, rule.summary.to_lowercase());
        let headings: Vec<&str> = rule.page.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, HEADINGS, "{}", rule.name);
    }
}

#[test]
fn only_bad_examples_have_findings() {
    let mut wrong = Vec::new();
    for rule in RULES {
        let blocks = blocks(rule.page);
        assert!(blocks.iter().any(|block| block.is_bad) && blocks.iter().any(|block| !block.is_bad), "{}", rule.name);
        for block in blocks {
            let found = lint_at(block.text, &BrokerProfile::of(block.version), &enable(rule));
            let fired = found.iter().any(|finding| finding.rule == rule.name);
            if fired != block.is_bad {
                let found = lines(block.text, &BrokerProfile::of(block.version));
                wrong.push(format!("{} on {}: fired is {fired}\n{}{found}", rule.name, block.version, block.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Replaces the pattern of the policy with the pattern in the hint.
#[test]
fn suggested_pattern_excludes_only_generated_queues() {
    let rule = RULES.iter().find(|rule| rule.name == "policy-on-generated-queue").expect("the rule exists");
    let mut suggested = BTreeSet::new();
    for block in blocks(rule.page).iter().filter(|block| block.is_bad) {
        let profile = BrokerProfile::of(block.version);
        let found = lint_text(block.text, &profile);
        let hint = found.iter().find(|it| it.rule == rule.name).and_then(|it| it.hint.clone()).expect("a hint");
        let (_, better) = hint.strip_suffix('`').and_then(|hint| hint.rsplit_once('`')).expect("a pattern");
        let (before, after) = block.text.split_once("pattern: '").expect("a policy");
        let (old, after) = after.split_once('\'').expect("a pattern in quotes");
        let text = format!("{before}pattern: '{better}'{after}");
        // If the pattern excluded too many objects, a different rule would report it.
        let left = lint_text(&text, &profile);
        assert!(left.iter().all(|it| !it.rule.contains("policy") && !it.rule.contains("pattern")), "{text}\n{left:#?}");
        let governs = |pattern: &str, name: &str| crate::rabbitmq::Pattern::new(pattern).matches(name) == Some(true);
        let names = block.text.lines().filter_map(|line| line.strip_prefix("  ")?.split_once(": {type")).map(|it| it.0);
        for name in names {
            assert_eq!(governs(better, name), governs(old, name) && !name.ends_with("dead"), "{better} on {name}");
        }
        suggested.insert(better.to_owned());
    }
    assert_eq!(
        suggested.into_iter().collect::<Vec<_>>(),
        [
            r"^(?!.*\.retry\.\d+\.\w+$)orders\.work",
            r"^(?!orders\.dead$)orders\.",
            r"^(?!orders\.dead$|.*\.retry\.\d+\.\w+$)orders\."
        ]
    );
}

#[test]
fn examples_show_every_severity_of_a_rule() {
    let mut wrong = Vec::new();
    // An optional rule has no findings by default, and `unused-allow` needs the findings of all other rules.
    for rule in RULES.iter().filter(|rule| !rule.is_optional && rule.name != "unused-allow") {
        let mut shown = BTreeSet::new();
        for block in blocks(rule.page).iter().filter(|block| block.is_bad) {
            let found = lint_text(block.text, &BrokerProfile::of(block.version));
            shown.extend(found.iter().filter(|it| it.rule == rule.name).map(|it| it.severity));
        }
        let declared: BTreeSet<Severity> = rule.other_severities.iter().copied().chain([rule.severity]).collect();
        if shown != declared {
            wrong.push(format!("{}: its examples are {shown:?}, the rule declares {declared:?}", rule.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn default_causes_one_finding_for_all_queues() {
    let text = "defaults: {queue: {type: quorum, consumerTimeout: 5m}}\nqueues: {a: {}, b: {}, c: {}, d: {}, e: {}}\n";
    let found = lint_text(text, &profile("3.10"));
    let [finding] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((finding.at.line, finding.at.column), (3, 34));
    assert_eq!(finding.objects.len(), 5);
    assert_eq!(finding.also.len(), 3);
    assert!(
        finding.message().starts_with("queue `a` and 4 more: quorum queues read `x-consumer-timeout` only on"),
        "{found:#?}"
    );
}

#[test]
fn refusal_that_another_rule_explains_is_reported_once() {
    let mut profile = profile("4.3");
    profile.deprecated_features.insert("transient_nonexcl_queues".to_owned(), false);
    let text = "queues: {tmp: {type: classic, durable: false}}\n";
    let lines = lines(text, &profile);
    assert!(
        lines.starts_with("3:31: error[transient-queue]: queue `tmp`: this broker (4.3.6) does not permit"),
        "{lines}"
    );
    assert_eq!(lines.lines().count(), 1, "{lines}");
}

#[test]
fn permitted_transient_queues_are_a_warning() {
    let text = "queues: {tmp: {type: classic, durable: false}}\n";
    let mut permitting = profile("4.3");
    permitting.deprecated_features.insert("transient_nonexcl_queues".to_owned(), true);
    assert!(lines(text, &permitting).contains("warning[transient-queue]"));
    assert!(lines(text, &permitting).contains("this broker (4.3.6) permits them"));
    assert!(lines(text, &profile("4.3")).contains("unless its configuration permits"));
    assert!(lines(text, &profile("4.0")).contains("RabbitMQ 4.3 refuses them by default"));
    assert!(lines(text, &profile("3.8")).contains("info[transient-queue]"));
}

#[test]
fn findings_have_the_position_of_their_setting() {
    let text = "\
exchanges:
  e: {type: topic, arguments: {x-foo: 1}}
queues:
  q: {type: classic, queueMode: lazy, arguments: {x-mesage-ttl: 5}, deadLetter: {queue: dead, wiring: policy}}
deadLetterQueues:
  dead: {type: quorum, maxInMemoryLength: 1}
policies:
  p: {pattern: ^q, applyTo: classic_queues, definition: {queue-mode: lazy, ha-mode: all}}
";
    assert_eq!(
        lines(text, &profile("3.13")),
        "\
4:3: info[unbound-exchange]: exchange `e`: nothing is bound to it: messages published to it are dropped
4:32: warning[unknown-argument]: exchange `e`: no broker supports the argument `x-foo`: it is stored and has no effect
6:22: warning[lazy-mode]: queue `q`: `queueMode` has had no effect since RabbitMQ 3.12 (the broker runs 3.13.7): every classic queue is lazy
6:51: warning[unknown-argument]: queue `q`: no broker supports the argument `x-mesage-ttl`: it is stored and has no effect
8:24: warning[no-effect-setting]: queue `dead`: `x-max-in-memory-length` has had no effect since RabbitMQ 3.10 (the broker runs 3.13.7)
10:58: warning[lazy-mode]: policy `p`: `queueMode` has had no effect since RabbitMQ 3.12 (the broker runs 3.13.7): every classic queue is lazy
10:76: warning[mirrored-queue-policy]: policy `p`: mirrored queues are deprecated, and RabbitMQ 4.0 refuses `ha-mode`
"
    );
}

#[test]
fn hint_contains_the_exchange_at_the_end_of_the_retries() {
    let text = "exchanges: {corp.dlx: {type: fanout}}\n\
                queues: {lad: {type: classic, retry: {delays: [5s]}, deadLetter: {exchange: corp.dlx}}}\n";
    let found = lint_text(text, &profile("4.0"));
    let finding = found.iter().find(|it| it.rule == "dead-letters-reach-nothing").expect("one");
    assert_eq!(
        finding.message(),
        "queue `lad`: messages with no retries left reach exchange `corp.dlx`, which has no route to a queue for the \
         key \"lad.retry.1\": the broker drops them"
    );
    // A queue that is bound to the generated exchange would receive every rejected message.
    let hint = "bind a queue to `corp.dlx` for all keys; or use an entry in `deadLetterQueues`";
    assert_eq!(finding.hint.as_deref(), Some(hint));
}

#[test]
fn typos_have_a_suggestion() {
    let hint = |text: &str| lint_text(text, &profile("4.3"))[0].hint.clone().unwrap_or_default();
    assert_eq!(
        hint("queues: {q: {type: classic, arguments: {x-mesage-ttl: 5}}}\n"),
        "did you mean `x-message-ttl`? In a spec, write `messageTtl`"
    );
    assert_eq!(
        hint("queues: {q: {type: classic, arguments: {maxLengthBytez: 5}}}\n"),
        "did you mean `x-max-length-bytes`? In a spec, write `maxLengthBytes`"
    );
    assert_eq!(hint("policies: {p: {pattern: q, definition: {max-lenght: 5}}}\n"), "did you mean `max-length`?");
    assert_eq!(
        hint("exchanges: {e: {type: topic, arguments: {x-alternate-exchange: other}}}\n"),
        "did you mean `alternate-exchange`? In a spec, write `alternateExchange`"
    );
}

#[test]
fn queue_that_dead_letters_to_itself_is_a_cycle() {
    let text = "queues:\n  q: {type: classic, messageTtl: 5s, deadLetter: {exchange: \"\", routingKey: q}}\n";
    let found = lines(text, &profile("4.3"));
    assert!(found.contains("a message that expires here returns immediately, and the broker drops it"), "{found}");
}

#[test]
fn flag_takes_precedence_over_the_level_of_the_spec() {
    let of_spec = |level: &str| {
        format!("lint: {{unbounded-queue: {level}}}\nqueues: {{q: {{type: quorum, deadLetter: none}}}}\n")
    };
    let flags = Levels::from([("unbounded-queue".to_owned(), Level::Error)]);
    let severities = |text: &str, levels: &Levels| -> Vec<Severity> {
        lint_at(text, &profile("4.3"), levels).iter().map(|finding| finding.severity).collect()
    };
    assert_eq!(severities("queues: {q: {type: quorum, deadLetter: none}}\n", &Levels::new()), []);
    assert_eq!(severities(&of_spec("off"), &Levels::new()), []);
    assert_eq!(severities(&of_spec("warning"), &Levels::new()), [Severity::Warning]);
    assert_eq!(severities(&of_spec("off"), &flags), [Severity::Error]);
    let noisy = "lint: {no-dead-letter: off}\nqueues: {q: {type: quorum, maxRetries: 3}}\n";
    assert_eq!(severities(noisy, &Levels::new()), []);
}

#[test]
fn comment_allows_findings_of_its_own_line_or_the_next() {
    for (text, expected) in [
        ("queues:\n  q: {type: quorum, maxRetries: 3} # topo: allow no-dead-letter lost on purpose\n", ""),
        ("queues:\n  # topo: allow no-dead-letter lost on purpose\n  q: {type: quorum, maxRetries: 3}\n", ""),
        (
            "queues:\n  q: {type: quorum, maxRetries: 3}\n  # topo: allow no-dead-letter too late\n",
            "4:33: warning[no-dead-letter]: queue `q`: a message that still fails after 3 retries is lost\n\
             5:3: warning[unused-allow]: rule `no-dead-letter` has no finding here for RabbitMQ 4.3.6\n",
        ),
        // topo does not check comments for rules that are off.
        ("queues:\n  q: {type: quorum, deadLetter: none} # topo: allow unbounded-queue not checked\n", ""),
        (
            "lint: {unused-allow: off}\nqueues:\n  q: {type: quorum, deadLetter: none} # topo: allow no-dead-letter there is none\n",
            "",
        ),
        // The allowed finding also explains the refusal, so the refusal is not reported.
        ("queues:\n  q: {type: classic, durable: false} # topo: allow transient-queue this broker permits it\n", ""),
    ] {
        assert_eq!(lines(text, &profile("4.3")), expected, "{text}");
    }
}

/// The broker also routes dead-lettered messages by the CC header that their publisher set, unless the queue sets a
/// dead-letter routing key. Fanout and headers exchanges ignore routing keys.
#[test]
fn lost_messages_are_an_info_if_an_unknown_cc_key_can_reach_a_queue() {
    for (exchange, binding, key, expected) in [
        ("{type: direct}", "routingKey: other", "", Severity::Info),
        ("{type: topic}", "routingKey: 'other.*'", "", Severity::Info),
        ("{type: direct}", "routingKey: other", ", routingKey: failed", Severity::Warning),
        ("{type: direct}", "routingKey: '#'", "", Severity::Warning),
        ("{type: direct}", "", "", Severity::Warning),
        ("{type: topic}", "", "", Severity::Warning),
        ("{type: fanout}", "", "", Severity::Warning),
        ("{type: headers}", "", "", Severity::Warning),
    ] {
        let bindings =
            if binding.is_empty() { String::new() } else { format!(", bindings: [{{exchange: dlx, {binding}}}]") };
        let text = format!(
            "exchanges: {{dlx: {exchange}}}\nqueues:\n  work: {{type: classic, deadLetter: {{exchange: dlx{key}}}}}\n  \
             dead: {{type: classic{bindings}}}\n"
        );
        let found = lint_text(&text, &profile("4.3"));
        let finding =
            found.iter().find(|it| it.rule == "dead-letters-reach-nothing").unwrap_or_else(|| panic!("{text}"));
        assert_eq!(finding.severity, expected, "{text}");
        assert_eq!(finding.message().contains("`CC`"), expected == Severity::Info, "{text}");
    }
}

#[test]
fn comments_belong_to_the_document_that_contains_them() {
    let queue = "queues: {q: {type: quorum, maxRetries: 3}}";
    let text = format!(
        "version: 1\nvhost: a\n{queue} # topo: allow no-dead-letter a\n---\n# topo: allow unused-allow b\nversion: 1\nvhost: b\n{queue}\n"
    );
    let files = [SourceFile { name: "a.yaml".to_owned(), text }];
    let specs = parse(&files, &Variables::new()).unwrap().vhosts;
    let lines = |spec: &crate::spec::Spec| spec.allows.iter().map(|allow| allow.line).collect::<Vec<_>>();
    assert_eq!(specs.iter().map(lines).collect::<Vec<_>>(), [vec![3], vec![6]]);
}
