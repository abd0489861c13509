//! Tests YAML syntax, variables and single values.

use super::*;

#[test]
fn document_requires_version_and_vhost() {
    let error_of = |text: &str| parse_one(text).expect_err("wrong").to_string();
    assert_eq!(error_of(""), "1:1: error[empty]: `topology.yaml` is empty\n");
    assert_eq!(error_of("# nothing\n"), "1:1: error[empty]: `topology.yaml` is empty\n");
    assert_eq!(error_of("vhost: /\n"), "1:1: error[missing-key]: this document has no `version`\n");
    assert_eq!(error_of("version: 1\n"), "1:1: error[missing-key]: this document has no `vhost`\n");
    assert_eq!(error_of("version: 2\nvhost: /\n"), "1:10: error[version]: unknown format version 2\n");
    assert_eq!(
        error_of("version: \"1\"\nvhost: /\n"),
        "1:10: error[wrong-type]: expected the number 1 for `version`, found the string \"1\"\n"
    );
    assert_eq!(error_of("- a\n"), "1:1: error[wrong-type]: expected a mapping for this document, found a list\n");
    assert_eq!(
        error_of("vresion: 1\nvhost: /\n"),
        "1:1: error[unknown-key]: unknown key `vresion` in a spec\n",
        "the misspelled key is not also missing"
    );
}

#[test]
fn invalid_yaml_has_a_position_and_a_hint() {
    assert_eq!(errors("queues:\n\ta: {}\n"), "4:1: error[syntax]: YAML cannot be indented with tabs\n");
    let star =
        "bindings:\n  - {source: amq.topic, destination: amq.fanout, destinationType: exchange, routingKey: *.x}\n";
    assert_eq!(errors(star), "4:89: error[syntax]: this alias has no anchor\n");
    assert!(hints(star)[0].contains("put a string that starts with `*` in quotes"));
    let hash = "queues:\n  q:\n    type: quorum\n    bindings:\n      - exchange: amq.topic\n        routingKey: #.x\n";
    assert_eq!(errors(hash), "8:9: error[wrong-type]: expected a string for `routingKey`, found nothing\n");
    assert_eq!(hints(hash), ["`#` starts a comment in YAML: put the value in quotes"]);
    assert!(errors("queues: {q: ${X}}\n").starts_with("3:14: error[syntax]:"), "{}", errors("queues: {q: ${X}}\n"));
    assert!(hints("queues: {q: ${X}}\n")[0].contains("in quotes inside"), "{:?}", hints("queues: {q: ${X}}\n"));
    let twice = "queues:\n  q: {type: quorum}\n  q: {type: classic}\n";
    assert_eq!(errors(twice), "5:3: error[duplicate-key]: duplicate key `q`\n");
    let diagnostics = parse_one(&format!("version: 1\nvhost: shop\n{twice}")).expect_err("twice");
    assert_eq!(diagnostics.iter().next().map(|it| it.secondary[0].0.line), Some(4));
}

#[test]
fn each_key_indented_like_a_name_is_one_error() {
    let name = "expected the name of a queue, found the key";
    assert_eq!(
        errors("queues:\n  orders:\n  type: quorum\n  retry: {delays: [5s]}\n"),
        format!("5:3: error[syntax]: {name} `type`\n6:3: error[syntax]: {name} `retry`\n")
    );
    // A queue can have the name of a key.
    assert_eq!(spec("queues: {type: {type: quorum}, retry: {type: classic}}\n").queues.len(), 2);
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = String::from("x-a: &a [1,1,1,1,1,1,1,1,1,1]\n");
    for (previous, next) in ('a'..'k').zip('b'..='k') {
        let aliases = vec![format!("*{previous}"); 10].join(",");
        bomb.push_str(&format!("x-{next}: &{next} [{aliases}]\n"));
    }
    assert!(errors(&bomb).contains("error[too-large]"), "{}", errors(&bomb));
    let deep = format!("x-a: {}{}\n", "[".repeat(5000), "]".repeat(5000));
    assert!(errors(&deep).contains("error[too-large]"), "{}", errors(&deep));
}

#[test]
fn many_queues_can_use_one_anchor() {
    let mut text = String::from("x-q: &q {type: quorum, maxLength: 5}\nqueues:\n");
    (0..300).for_each(|n| text.push_str(&format!("  q{n}: {{<<: *q, maxLength: {n}}}\n")));
    let spec = spec(&text);
    assert_eq!(spec.queues.len(), 300);
    assert_eq!(spec.queues[&"q7".into()].arguments["x-max-length"].value, ArgumentValue::Integer(7));
}

#[test]
fn mistake_in_an_anchor_is_one_error_at_the_anchor() {
    let text = "x-q: &q {type: quorum, maxLength: many}\nqueues:\n  a: *q\n  b: *q\n";
    assert_eq!(
        errors(text),
        "3:35: error[wrong-type]: expected an integer for `maxLength`, found the string \"many\"\n"
    );
}

#[test]
fn variables_have_the_expected_type() {
    let text = "version: 1\nvhost: ${VHOST}\nqueues:\n  ${PREFIX:-a}.q:\n    type: ${TYPE}\n    maxLength: \"${MAX}\"\n    \
                messageTtl: ${TTL}\n    singleActiveConsumer: ${SAC}\n    arguments: {x-note: \"$${X}\", x-max: \"${MAX}\"}\n";
    let pairs = [("VHOST", "/"), ("TYPE", "quorum"), ("MAX", "5"), ("TTL", "30s"), ("SAC", "true")];
    let variables = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let specs = parse(&[file(text)], &variables).unwrap_or_else(|diagnostics| panic!("{diagnostics}")).vhosts;
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
fn wrong_type_errors_contain_the_expected_type() {
    let queue = |keys: &str| errors(&format!("queues: {{q: {{type: classic, {keys}}}}}\n"));
    assert!(queue("durable: yes").contains("expected `true` or `false` for `durable`, found the string \"yes\""));
    assert!(queue("maxLength: 5.0").contains("expected an integer for `maxLength`, found the number 5.0"));
    assert!(queue("maxLength: 1_000").contains("expected a number for `maxLength`, found the string \"1_000\""));
    assert!(queue("maxPriority: 256").contains("`maxPriority` cannot be 256"));
    assert!(queue("expires: 0").contains("`expires` cannot be 0 milliseconds"));
    assert!(queue("messageTtl: 1.5").contains("expected a duration"));
    assert!(queue("maxLengthBytes: 1G").contains("expected a size such as `64KiB`"));
    assert!(queue("overflow: drop").contains("`overflow` cannot be `drop`"));
    assert!(queue("bindings: {exchange: a}").contains("expected a list of bindings, found a mapping"));
    assert!(queue("deadLetter: {queue: a, exchange: b}").contains("sets more than one of `queue` and `exchange`"));
    assert!(queue("deadLetter: {wiring: policy}").contains("sets neither `queue` nor `exchange`"));
    assert!(queue("deadLetterStrategy: at-least-once").contains("classic queue `q` does not support"));
    assert!(queue("maxLength: 99999999999999999999").contains("is out of range"));
    let octal = spec("queues: {q: {type: classic, maxLength: 010}}\n");
    assert_eq!(octal.queues[&"q".into()].arguments["x-max-length"].value, 10.into());
}

#[test]
fn one_mistake_is_one_error() {
    for (text, expected) in [
        ("queues: {q: {type: quorm}}\n", "3:20: error[wrong-value]: `type` cannot be `quorm`\n"),
        ("queues: {q: {tpye: quorum}}\n", "3:14: error[unknown-key]: unknown key `tpye` in a queue\n"),
        (
            "defaults: {queue: {type: quorm}}\nqueues: {q: {}, r: {}}\n",
            "3:26: error[wrong-value]: `type` cannot be `quorm`\n",
        ),
        (
            "exchanges: {e: {type: topik}}\nqueues: {q: {type: quorum, bindings: [{exchange: e}]}}\n",
            "3:23: error[wrong-value]: unknown exchange type `topik`\n",
        ),
        (
            "deadLetterQueues: {d: ~}\nqueues: {q: {type: quorum, deadLetter: d}}\n",
            "3:23: error[wrong-type]: expected a mapping for dead-letter queue `d`, found nothing\n",
        ),
    ] {
        assert_eq!(errors(text), expected, "{text}");
    }
}

#[test]
fn invalid_default_type_is_one_error() {
    let text = "version: 1\nvhost: {name: a, defaultQueueType: quorm}\nqueues: {q: {}, r: {}}\n";
    let found = parse_one(text).expect_err("wrong").to_string();
    assert_eq!(found, "2:36: error[wrong-value]: `defaultQueueType` cannot be `quorm`\n");
}

// Files from Windows can have a byte order mark and CRLF line endings.
#[test]
fn byte_order_marks_and_line_endings_do_not_change_positions() {
    let text = "\u{feff}version: 1\r\nvhost: é\r\nqueues:\r\n  é: {type: x}\r\n";
    let found = parse_one(text).expect_err("wrong");
    let first = found.iter().next().map(|it| it.primary).unwrap_or_default();
    assert_eq!((first.line, first.column, &text[first.start..first.end]), (4, 13, "x"));
}

#[test]
fn json_is_accepted() {
    let text = "{\n\t\"version\": 1,\n\t\"vhost\": \"a\",\n\t\"queues\": {\"q\": {\"type\": \"quorum\"}}\n}\n";
    assert!(parse_one(text).is_ok(), "{:?}", parse_one(text).err().map(|it| it.to_string()));
}
