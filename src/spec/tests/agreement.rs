//! Checks that the parts of the spec module agree: the schema and the parser accept the same specs, and the error
//! codes match their pages. Also breaks specs at random, and checks that every problem has a valid position.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn schema_and_parser_accept_the_same_specs() {
    let schema = schema::schema();
    assert!(jsonschema::draft7::meta::is_valid(&schema), "the schema is invalid");
    let validator = jsonschema::draft7::new(&schema).unwrap_or_else(|error| panic!("{error}"));
    let good = [
        BIG,
        "{version: 1, vhost: a, queues: {q: {type: quorum, maxLength: \"${MAX:-5}\", durable: true}}}",
        "{version: 1, vhost: a, queues: {q: {external: true, bindings: [{exchange: amq.topic}]}}}",
        "{version: 1, vhost: a, queues: {q: {type: stream, maxAge: 7d, maxLengthBytes: 10MB}}}",
        "{version: 1, vhost: a, queues: {q: {type: stream, deadLetter: none}}}",
        "{version: 1, vhost: a, x-b: 5, exchanges: {e: {type: x-random}}}",
        "{version: 1, vhost: a, defaults: {queue: {type: classic, maxPriority: 5}}, queues: {q: {}}}",
        "{version: 1, vhost: a, queues: {q: {arguments: {x-queue-type: classic, x-max-priority: 3}}}}",
        "{version: 1, vhost: a, deadLetterQueues: {d: {type: quorum, exchange: {type: topic, internal: true}}}}",
        "{version: 1, vhost: a, policies: {p: {pattern: x, priority: 1.5, definition: {ha-mode: all, expires: 5}}}}",
        "{version: 1, vhost: a, retryPolicies: {p: {maxRetries: 5, backoff: {initial: 2s, factor: 1.5, max: 60s}}}, queues: {q: {type: quorum, retry: p, maxRetries: 9}}}",
        "{version: 1, vhost: a, defaults: {retry: {delays: [500ms, 1h30m]}, maxRetries: 2, deadLetter: none}, queues: {q: {type: quorum, retry: none}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, retry: {strategy: republish, delays: [5s], jitter: 1s, maxRetries: \"${N:-3}\"}}}}",
        "{version: 1, vhost: a, defaults: {queue: {type: quorum}, thresholds: none}, deadLetterQueues: {d: {thresholds: {depth: {warning: 1, critical: \"${N:-2}\"}, age: {warning: 1h}}}}}",
        "{version: 1, vhost: a, queues: {q: {external: true, thresholds: {noConsumers: 5m, growth: {critical: {messages: 5, within: 5m}}}}}}",
        "{version: 1, vhost: a, lint: {unbound-queue: off, no-dead-letter: error, lazy-mode: \"${LEVEL:-info}\"}}",
    ];
    let bad = [
        "{vhost: a}",
        "{version: 2, vhost: a}",
        "{version: 1, vhost: a, colour: red}",
        "{version: 1, vhost: a, defaults: {thresholds: 50}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, thresholds: off}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, thresholds: {depth: {warning: 0}}}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, thresholds: {age: {warning: 60}}}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, thresholds: {growth: {warning: {messages: 5}}}}}}",
        "{version: 1, vhost: a, lint: {unbound-queu: off}}",
        "{version: 1, vhost: a, lint: {unbound-queue: loud}}",
        "{version: 1, vhost: a, lint: {unbound-queue: false}}",
        "{version: 1, vhost: a, lint: unbound-queue}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, maxPriority: 5}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, durable: false}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, retry: 5}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, retry: [5s]}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, retry: {delays: []}}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, retry: {delays: [5, 30]}}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, retry: {delays: [5sec]}}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, maxRetries: -1}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, maxRetries: 1.5}}}",
        "{version: 1, vhost: a, queues: {q: {type: stream, maxRetries: 1}}}",
        "{version: 1, vhost: a, queues: {q: {type: stream, retry: none}}}",
        "{version: 1, vhost: a, deadLetterQueues: {d: {type: quorum}}, queues: {q: {type: stream, deadLetter: d}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, retry: {strategy: tower, delays: [5s]}}}}",
        "{version: 1, vhost: a, retryPolicies: {p: {backoff: {factor: 2}}}}",
        "{version: 1, vhost: a, retryPolicies: {p: {backoff: {initial: 1s, factor: 0.5}}}}",
        "{version: 1, vhost: a, retryPolicies: {p: {retry: q}}}",
        "{version: 1, vhost: a, retryPolicies: {p: q}}",
        "{version: 1, vhost: a, defaults: {queue: {maxRetries: 5}}}",
        "{version: 1, vhost: a, deadLetterQueues: {d: {type: quorum, maxRetries: 5}}}",
        "{version: 1, vhost: a, queues: {q: {external: true, retry: none}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, maxLength: \"5\"}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, messageTtl: 30sec}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, durable: yes}}}",
        "{version: 1, vhost: a, queues: {q: {external: true, type: quorum}}}",
        "{version: 1, vhost: a, queues: {amq.q: {type: quorum}}}",
        "{version: 1, vhost: a, queues: {q: ~}}",
        "{version: 1, vhost: a, queues: {q: {type: classic, arguments: {messageTtl: 5}}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, arguments: {x-max-priority: 5}}}}",
        "{version: 1, vhost: a, queues: {q: {type: quorum, arguments: {x-note: ~}}}}",
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
            let errors: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
            assert_eq!(errors.is_empty(), expected, "the schema on {text}: {errors:?}");
            let parsed = parse_one(text);
            assert_eq!(parsed.is_ok(), expected, "the parser on {text}: {:?}", parsed.err().map(|it| it.to_string()));
        }
    }
}

/// Collects the first string of each call that creates an error, in all source files in a folder.
fn collect_codes(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{error}")) {
        let path = entry.unwrap_or_else(|error| panic!("{error}")).path();
        if path.is_dir() {
            collect_codes(&path, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        // Tests create errors with other codes.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for call in ["Diagnostic::error(", "bad(", "report("] {
            for after in text.split(call).skip(1) {
                found.extend(
                    after.trim_start().strip_prefix('"').and_then(|it| it.split('"').next()).map(str::to_owned),
                );
            }
        }
    }
}

#[test]
fn codes_and_pages_match() {
    let mut found: BTreeSet<String> = ["wrong-type".to_owned()].into();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for folder in ["spec", "expand", "cli"] {
        collect_codes(&src.join(folder), &mut found);
    }
    let known: BTreeSet<String> = code_names().map(str::to_owned).collect();
    assert_eq!(found, known);
    assert!(code_names().is_sorted());
    assert!(code_names().all(|code| code_page(code).is_some_and(|page| page.starts_with(&format!("# {code}\n")))));
}

/// Strings that people and programs insert into files by accident.
const PIECES: &[&str] = &[
    "", ":", " ", "\n", "\t", "{", "}", "[", "]", "é", "#", "*", "&a ", "\"", "'", "-", "${X}", "<<: ", "\r\n", "\0",
    "~", "- ",
];

proptest! {
    #[test]
    fn broken_specs_are_reported(
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..12, prop::sample::select(PIECES)), 1..4),
    ) {
        let mut characters: Vec<char> = BIG.chars().collect();
        for (index, removed, piece) in edits {
            let start = index.index(characters.len());
            let end = (start + removed).min(characters.len());
            characters.splice(start..end, piece.chars());
        }
        let text: String = characters.into_iter().collect();
        let Err(diagnostics) = parse(&[file(&text)], &Variables::new()) else { return Ok(()) };
        prop_assert!(!diagnostics.is_empty());
        for diagnostic in &diagnostics {
            for at in std::iter::once(&diagnostic.primary).chain(diagnostic.secondary.iter().map(|(at, _)| at)) {
                prop_assert!(text.get(at.start..at.end).is_some(), "{diagnostic:?} in\n{text}");
                prop_assert!(at.line >= 1 && at.column >= 1);
            }
        }
    }
}
