//! The error codes that appear in brackets after `error`, with a description for `topo explain CODE`.

/// The codes and their descriptions, in order.
const CODES: &[(&str, &str)] = &[
    ("allow", "A comment begins with `# topo:` but does not have the form `# topo: allow RULE reason`."),
    ("conflicting-keys", "Two keys of one mapping exclude each other, such as `delays` and `backoff`."),
    (
        "declared-twice",
        "The specs declare one object in two places. Keep one: topo merges the specs of a vhost and does not overlay them.",
    ),
    (
        "definitions",
        "The file is a definitions file of RabbitMQ, not a spec. `topo export --definitions FILE` converts it to a spec.",
    ),
    (
        "duplicate-key",
        "A mapping has the same key twice. YAML parsers disagree about which value wins, so topo uses neither.",
    ),
    ("empty", "The file has no document. A spec starts with `version: 1` and `vhost: NAME`."),
    ("encoding", "The file is not valid UTF-8."),
    (
        "external",
        "An object with `external: true` has other keys. topo never changes an external object, so they would have no effect.",
    ),
    (
        "generated-name",
        "The name of a generated object is too long, already declared, listed under `removed`, or ignored.",
    ),
    ("ignored-and-declared", "A glob of `ignore` matches the name of an object that the specs declare."),
    ("missing-key", "A required key is missing, or a key that another key needs."),
    (
        "name",
        "A string is not a valid name: empty, longer than 255 bytes, with line breaks, or reserved for the broker or topo.",
    ),
    ("number-as-text", "A number is in quotes. For the broker, `\"5\"` and `5` are different arguments."),
    ("out-of-range", "A value is too small or too large."),
    ("pattern", "topo cannot evaluate the pattern of a policy, but must know what it matches."),
    ("removed-and-declared", "An object is both declared and listed under `removed`."),
    ("retry-strategy", "The queue type, the strategy or the RabbitMQ version does not support these retries."),
    ("routing-key", "A routing key is longer than 255 bytes, or its binding could never be deleted."),
    ("said-twice", "A setting appears in two forms or places, such as a key and the argument that it sets."),
    (
        "syntax",
        "The file is not valid YAML, or not what it seems: a plain string cannot start with `*`, `&`, `!`, `#`, `%` or `@`.",
    ),
    ("too-large", "A number needs more than 64 bits, or a file expands to far more values than it contains."),
    ("too-many-delays", "There are more `delays` than retries. Each retry has one delay."),
    ("undeclared", "The spec refers to an object that is neither declared nor external."),
    ("unknown-key", "The mapping does not have this key. Keys are in camelCase; `topo explain KEY` describes each."),
    ("unknown-rule", "A comment allows findings of a rule that does not exist. `topo rules` lists the rules."),
    (
        "variable",
        "A variable is not set or not valid. Use `${NAME}` or `${NAME:-default}`; write `$${` for a literal `${`.",
    ),
    ("version", "This version of topo does not support the format version."),
    ("wrong-queue-type", "Queues of this type do not support the key."),
    (
        "wrong-type",
        "A value has the wrong type: a string for an integer, a list for a mapping, a duration without a unit.",
    ),
    ("wrong-value", "A value has the right type but is not one of the valid values."),
];

/// Returns the page of an error code, or `None` for an unknown code.
pub fn code_page(code: &str) -> Option<String> {
    let (_, meaning) = CODES.iter().find(|(known, _)| *known == code)?;
    Some(format!(
        "# {code}\n\n{meaning}\n\nThis is an error: topo rejects the spec, whatever the levels of the lint rules are.\n"
    ))
}

/// Returns all error codes.
pub fn code_names() -> impl Iterator<Item = &'static str> {
    CODES.iter().map(|(code, _)| *code)
}
