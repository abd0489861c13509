//! The schema and the parser accept the same specs.

use super::*;

#[test]
fn the_schema_agrees_with_the_parser() {
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
        "{version: 1, vhost: a, lint: {unbound-queue: off, no-dead-letter: error, lazy-mode: \"${LEVEL:-info}\"}}",
    ];
    let bad = [
        "{vhost: a}",
        "{version: 2, vhost: a}",
        "{version: 1, vhost: a, colour: red}",
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
