//! The words in brackets behind `error`: what each kind of mistake is, for who asks.

/// Each with a sentence; in order.
const CODES: &[(&str, &str)] = &[
    ("allow", "A comment that begins with `# topo:` is not `# topo: allow RULE reason`."),
    ("conflicting-keys", "Two keys of one table exclude each other, such as `delays` and `backoff`."),
    (
        "declared-twice",
        "Two places of the specs declare one object. Keep one: specs of one vhost are merged, not overlaid.",
    ),
    (
        "definitions",
        "A definitions file of RabbitMQ where a spec is expected. `topo export --definitions FILE` writes a spec from it.",
    ),
    ("duplicate-key", "A key stands twice in one table. YAML readers differ about which holds, so neither does."),
    ("empty", "A file without a document. A spec starts with `version: 1` and `vhost: NAME`."),
    ("encoding", "A file that is no UTF-8."),
    (
        "external",
        "A key beside `external: true`: what is somebody else's is never touched, so there is nothing to say of it.",
    ),
    ("generated-name", "The name of an object that topo makes is too long, taken, to be removed or ignored."),
    ("ignored-and-declared", "A glob of `ignore` matches the name of an object that the specs declare."),
    ("missing-key", "A key that must be there is not, or one that it goes with."),
    (
        "name",
        "A text that cannot be a name: empty, more than 255 bytes, with line breaks, or the broker's own or topo's.",
    ),
    (
        "number-as-text",
        "A number in quotes where a number is wanted: to the broker `\"5\"` and `5` are different arguments.",
    ),
    ("out-of-range", "A value that is too small or too large."),
    ("pattern", "The pattern of a policy cannot be read here, and what it matches must be known."),
    ("removed-and-declared", "An object is both declared and under `removed:`."),
    ("retry-strategy", "Retries that the queue's type, the strategy or the version of RabbitMQ cannot carry."),
    ("routing-key", "A routing key that is longer than 255 bytes, or one whose binding could never be deleted."),
    ("said-twice", "One thing is said in two ways or places, such as a key and the argument that it stands for."),
    ("syntax", "The text is no YAML, or not what it looks like: `*`, `&`, `!`, `#`, `%`, `@` start no plain text."),
    ("too-large", "A number that needs more than 64 bits, or a file that stands for far more than it says."),
    ("too-many-delays", "There are more `delays` than retries: each retry waits once."),
    ("undeclared", "A name that is referred to is neither declared nor external."),
    ("unknown-key", "A key that the table does not have. Keys are camelCase; `topo explain KEY` has a page for each."),
    ("unknown-rule", "A comment allows findings of a rule that does not exist. `topo rules` lists them."),
    ("variable", "A variable that is not set, or is none: `${NAME}`, or `${NAME:-default}`; `$${` is a literal."),
    ("version", "A version of the format that this topo does not read."),
    ("wrong-queue-type", "A key that queues of this type do not take."),
    ("wrong-type", "A value of the wrong kind: text for a number, a list for a table, a duration without its unit."),
    ("wrong-value", "A value of the right kind that is none of those that are known."),
];

/// What a kind of mistake is; `None` is none.
pub fn code_page(code: &str) -> Option<String> {
    let (_, meaning) = CODES.iter().find(|(known, _)| *known == code)?;
    Some(format!("# {code}\n\n{meaning}\n\nAn error: the spec is refused, whatever the levels of lint rules are.\n"))
}

/// All of them.
pub fn code_names() -> impl Iterator<Item = &'static str> {
    CODES.iter().map(|(code, _)| *code)
}
