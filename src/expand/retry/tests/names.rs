//! Names of queues that have no retries, for the sake of the names that are generated from them.

use super::{expanded_for, refused, text};

#[test]
fn generated_names_may_be_taken_or_too_long() {
    let keys = "type: classic, retry: {delays: [1s, 1m30s]}";
    let taken = format!("exchanges: {{orders.work.return: {{type: topic}}}}\n{}", text(keys));
    assert!(
        refused("4.0.5", &taken).contains("exchange `orders.work.return`, which topo generates here, is also declared")
    );
    let ignored = format!("ignore: [\"*.retry.1.*\"]\n{}", text(keys));
    assert!(
        refused("4.0.5", &ignored)
            .contains("queue `orders.work.retry.1.1s`, which topo generates here, is matched by `ignore`")
    );
    let named = |length: usize| text(keys).replace("orders.work", &"w".repeat(length));
    let found = refused("4.0.5", &named(237));
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(
        found.contains("with the suffix `.retry.first.switch` it exceeds 255 bytes (use a name of at most 236 bytes)"),
        "{found}"
    );
    expanded_for("4.0.5", &named(236));
}

#[test]
fn a_name_with_a_wildcard_has_no_ladder() {
    let keys = "type: classic, retry: {delays: [1s]}";
    for name in ["\"#\"", "a.*.b"] {
        let found = refused("4.0.5", &text(keys).replace("orders.work", name));
        assert!(found.contains("contains a topic wildcard as a word"), "{found}");
    }
    expanded_for("4.0.5", &text(keys).replace("orders.work", "a*b.#c"));
}
