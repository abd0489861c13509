//! Tests queues whose generated retry objects would have invalid, declared or ignored names.

use super::{errors, expand_for, text};

#[test]
fn generated_names_that_are_in_use_or_too_long_are_errors() {
    let keys = "type: classic, retry: {delays: [1s, 1m30s]}";
    let declared = format!("exchanges: {{orders.work.return: {{type: topic}}}}\n{}", text(keys));
    assert!(
        errors("4.0.5", &declared)
            .contains("exchange `orders.work.return`, which topo generates here, is also declared")
    );
    let ignored = format!("ignore: [\"*.retry.1.*\"]\n{}", text(keys));
    assert!(
        errors("4.0.5", &ignored)
            .contains("queue `orders.work.retry.1.1s`, which topo generates here, is matched by `ignore`")
    );
    let named = |length: usize| text(keys).replace("orders.work", &"w".repeat(length));
    let found = errors("4.0.5", &named(237));
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(
        found.contains("with the suffix `.retry.first.switch` it exceeds 255 bytes (use a name of at most 236 bytes)"),
        "{found}"
    );
    expand_for("4.0.5", &named(236));
}

#[test]
fn queue_with_a_wildcard_as_a_word_of_its_name_cannot_have_a_ladder() {
    let keys = "type: classic, retry: {delays: [1s]}";
    for name in ["\"#\"", "a.*.b"] {
        let found = errors("4.0.5", &text(keys).replace("orders.work", name));
        assert!(found.contains("contains a topic wildcard as a word"), "{found}");
    }
    expand_for("4.0.5", &text(keys).replace("orders.work", "a*b.#c"));
}
