//! The schema says of every broken spec and of every example what the parser says; what it cannot say is in one table.
//! Twice: by a library, and by the `check-jsonschema` that people have in their pre-commit hooks.

mod error_positions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::broken;
use crate::editor::tool;
use crate::examples::examples;
use crate::support::Topo;

/// Broken specs that the schema takes, and why it cannot know better.
const BEYOND_A_SCHEMA: &[(&str, &[&str])] = &[
    (
        "whether a name that is referred to is declared",
        &[
            "dangling-binding.yaml",
            "dangling-dead-letter-exchange.yaml",
            "dangling-dead-letter-queue.yaml",
            "dangling-exchange.yaml",
            "dangling-retry-policy.yaml",
            "dead-letter-to-exchange-by-name.yaml",
            "dead-letter-to-ordinary-queue.yaml",
            "long-line.yaml",
        ],
    ),
    (
        "what two places say of one thing",
        &[
            "binding-twice.yaml",
            "dead-letter-queues-behind-one-fanout.yaml",
            "ignored-and-declared.yaml",
            "queue-and-dead-letter-queue.yaml",
            "removed-and-declared.yaml",
            "said-as-key-and-argument.yaml",
        ],
    ),
    (
        "what other files say",
        &[
            "twice-in-two-files/billing.yaml",
            "twice-in-two-files/orders.yaml",
            "two-default-queue-types/a.yaml",
            "two-default-queue-types/b.yaml",
        ],
    ),
    (
        "what a default, or the vhost's, makes of a queue",
        &["no-type-anywhere.yaml", "type-by-default-takes-no-such-key.yaml"],
    ),
    (
        "what retries need of the queue, and how many there are",
        &[
            "backoff-without-retries.yaml",
            "jitter-without-republish.yaml",
            "redeliver-on-classic.yaml",
            "retries-alone-on-classic.yaml",
            "retry-without-dead-letter.yaml",
        ],
    ),
    (
        "the values of variables",
        &[
            "variable-default-of-the-wrong-type.yaml",
            "variable-in-quotes-of-its-own.yaml",
            "variable-not-closed.yaml",
            "variable-not-set.yaml",
        ],
    ),
    ("that 1.0 is not 1: to JSON it is", &["version-with-a-dot.yaml"]),
    ("which bytes the text was", &["utf-16.yaml"]),
    ("how many bytes a text has: it counts characters", &["name-of-many-bytes.yaml"]),
    ("how many bits a number needs: to JSON every one is a number", &["argument-larger-than-64-bits.yaml"]),
    ("what comments say", &["allows-of-several-rules.yaml"]),
];

/// What makes YAML readers expand or recurse without end, some of them, or what they read in ways of their own; the parser
/// refuses it.
const BOMBS: &[&str] = &[
    "alias-bomb.yaml",
    "brackets-without-end.yaml",
    "alias-to-itself.yaml",
    "deep-nesting.yaml",
    "key-is-a-list.yaml",
];

/// What a schema cannot say anywhere, by the code of topo's error; and what it cannot say there.
const BEYOND_BY_CODE: &[(&str, &str)] = &[
    ("declared-twice", "it is about two places"),
    ("empty", "there is no document"),
    ("generated-name", "it is about two places"),
    ("ignored-and-declared", "it is about two places"),
    ("mirrored-queue-policy", "it depends on the version of RabbitMQ"),
    ("refused-by-broker", "it depends on the version of RabbitMQ, and on what it takes for a pattern"),
    ("removed-and-declared", "it is about two places"),
    ("retry-strategy", "it depends on defaults, on the queue's type and on what its retries come to"),
    ("too-large", "to JSON a number has no bits"),
    ("undeclared", "it is about two places"),
    ("unknown-rule", "it is about a comment"),
    ("variable", "it is about what a variable stands for"),
];
const BEYOND_THERE: &[(&str, &str, &str)] = &[
    ("backoff-without-retries.yaml", "missing-key", "the number may stand in the defaults"),
    ("dead-letter-key-without-exchange.yaml", "missing-key", "the exchange may stand in the defaults"),
    ("everything-at-once.yaml", "missing-key", "the type may stand in the defaults"),
    ("float-for-a-count.yaml", "wrong-type", "to JSON 5.0 is 5"),
    ("name-of-many-bytes.yaml", "name", "a schema counts characters, not bytes"),
    ("name-of-many-bytes.yaml", "routing-key", "a schema counts characters, not bytes"),
    ("no-type-anywhere.yaml", "missing-key", "the type may stand in the defaults"),
    ("octal-is-decimal.yaml", "number-as-text", "the reader that this test has takes 1_000 for a number"),
    (
        "removed-and-declared.yaml",
        "name",
        "its patterns for names are those of what is declared, not of what is deleted",
    ),
    ("said-as-key-and-argument.yaml", "said-twice", "it is about two keys that are one to the broker"),
    ("two-default-queue-types/b.yaml", "said-twice", "it is about two files"),
    ("type-by-default-takes-no-such-key.yaml", "wrong-queue-type", "the type stands in the defaults"),
    ("variable-default-of-the-wrong-type.yaml", "wrong-type", "it is about what a variable stands for"),
    ("variable-default-of-the-wrong-type.yaml", "wrong-value", "it is about what a variable stands for"),
    ("variable-in-quotes-of-its-own.yaml", "wrong-type", "it is about what a variable stands for"),
    ("version-with-a-dot.yaml", "wrong-type", "to JSON 1.0 is 1"),
];
/// Where topo says less: another version is another language, and nothing more is said of it.
const ONLY_BY_THE_SCHEMA: &[&str] = &["version-2.yaml"];

fn beyond() -> BTreeSet<&'static str> {
    BEYOND_A_SCHEMA.iter().flat_map(|(_, names)| *names).copied().collect()
}

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/topology.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The documents of a text as JSON; `None` when it is no YAML.
fn documents(text: &[u8]) -> Option<Vec<Value>> {
    let text = std::str::from_utf8(text).ok()?;
    let strict = serde_yaml::options! { strict_booleans: true };
    serde_yaml::from_multiple_with_options(text, strict).ok()
}

#[test]
fn the_schema_is_ready_to_be_published() {
    let schema = schema();
    assert!(jsonschema::draft7::meta::is_valid(&schema));
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    for key in ["$id", "title", "description"] {
        assert!(schema[key].is_string(), "{key}");
    }
    let mut keys = 0;
    for (name, definition) in schema["definitions"].as_object().unwrap() {
        let is_titled = definition["title"].is_string() || definition["description"].is_string();
        assert!(is_titled || name.ends_with("Arguments"), "{name} says nothing of itself");
        for (key, property) in definition["properties"].as_object().into_iter().flatten() {
            keys += 1;
            assert!(property["description"].is_string() || *property == false, "{name}.{key} is not described");
        }
    }
    assert!(keys > 200, "{keys}");
}

#[test]
fn the_schema_agrees_with_the_parser_on_every_file() {
    let validator = jsonschema::draft7::new(&schema()).unwrap();
    let mut taken = BTreeSet::new();
    for (name, text) in broken::cases().iter().flat_map(|case| broken::files(case)) {
        // An empty text has no document to take.
        let documents = documents(&text).filter(|documents| !documents.is_empty());
        if documents.is_some_and(|documents| documents.iter().all(|document| validator.is_valid(document))) {
            taken.insert(name);
        }
    }
    // Not UTF-8, so that this test does not read it at all.
    let expected: BTreeSet<String> =
        beyond().into_iter().filter(|name| *name != "utf-16.yaml").map(str::to_owned).collect();
    assert_eq!(taken, expected, "the broken specs that the schema takes, and those that it cannot but take");
    for (folder, text) in examples() {
        for document in documents(text.as_bytes()).unwrap() {
            let complaints: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert!(complaints.is_empty(), "{}: {complaints:?}", folder.display());
        }
    }
}

/// The code of an error of topo's, its line and its column.
type Told<'a> = (&'a str, (u64, u64));

/// Not only that a file is wrong, but what: each error of topo's is one of the schema's at the same place, and the other way
/// round.
#[test]
fn the_schema_finds_the_same_errors_in_the_same_places() {
    let validator = jsonschema::draft7::new(&schema()).unwrap();
    let (topo, mut wrong, mut compared) = (broken::laid_out(), Vec::new(), 0);
    let mut beyond: BTreeSet<(&str, &str)> = BTreeSet::new();
    for case in broken::cases() {
        let found = topo.run(["validate", "--format", "json", &case]).expect_code(65).json();
        let mut told: BTreeMap<&str, Vec<Told<'_>>> = BTreeMap::new();
        for it in found["diagnostics"].as_array().unwrap() {
            let at = (it["at"]["line"].as_u64().unwrap(), it["at"]["column"].as_u64().unwrap());
            told.entry(it["at"]["file"].as_str().unwrap()).or_default().push((it["code"].as_str().unwrap(), at));
        }
        for (name, bytes) in broken::files(&case) {
            if BOMBS.contains(&&*name) {
                continue;
            }
            let text = String::from_utf8_lossy(&bytes);
            let Some((documents, places)) = documents(&bytes).zip(error_positions::places(&text)) else { continue };
            let said = documents
                .iter()
                .enumerate()
                .flat_map(|(at, it)| error_positions::complaints(&validator, at, it))
                .collect();
            let errors = told.get(&*name).map_or(&[][..], Vec::as_slice);
            let paths: Vec<_> = errors.iter().map(|(_, at)| error_positions::paths_at(&places, *at)).collect();
            for ((code, at), paths) in errors.iter().zip(&paths) {
                compared += 1;
                let by_code = BEYOND_BY_CODE.iter().find(|(known, _)| known == code).map(|(code, _)| ("", *code));
                let there = BEYOND_THERE.iter().find(|(file, known, _)| *file == name && known == code);
                let is_beyond = by_code.or(there.map(|(file, code, _)| (*file, *code)));
                match (error_positions::is_said(paths, &said), is_beyond) {
                    (true, _) => {}
                    (false, Some(known)) => drop(beyond.insert(known)),
                    (false, None) => wrong.push(format!("{name}:{at:?} {code}, not by the schema: {paths:?}")),
                }
            }
            let is_less = ONLY_BY_THE_SCHEMA.contains(&&*name);
            for complaint in
                said.iter().filter(|_| !is_less).filter(|complaint| !error_positions::is_found(complaint, &paths))
            {
                wrong.push(format!("{name}, only by the schema: {complaint:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 150, "{compared}");
    let listed = BEYOND_BY_CODE.iter().map(|(code, _)| ("", *code));
    let listed: BTreeSet<_> = listed.chain(BEYOND_THERE.iter().map(|(file, code, _)| (*file, *code))).collect();
    assert_eq!(listed.difference(&beyond).collect::<Vec<_>>(), [&("", ""); 0], "listed, and the schema says it");
}

#[test]
fn check_jsonschema_agrees_with_the_parser() {
    let topo = Topo::offline();
    let run = |files: &[String]| {
        let mut command = Command::new(tool("check-jsonschema"));
        let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/topology.schema.json");
        command.current_dir(topo.path(".")).args(["--output-format", "json", "--schemafile"]).arg(schema).args(files);
        let output = command.output().unwrap();
        let report = serde_json::from_slice(&output.stdout);
        let report: Value = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let failures = |key: &str| report[key].as_array().cloned().unwrap_or_default();
        let failed = failures("errors").into_iter().chain(failures("parse_errors"));
        failed.map(|it| it["filename"].as_str().unwrap().to_owned()).collect::<BTreeSet<String>>()
    };
    let mut names = Vec::new();
    for (name, text) in broken::cases().iter().flat_map(|case| broken::files(case)) {
        // It takes one document, and knows no bombs.
        let is_one = documents(&text).is_none_or(|documents| documents.len() <= 1);
        if is_one && !BOMBS.contains(&name.as_str()) {
            topo.write(&name, "");
            std::fs::write(topo.path(&name), text).unwrap();
            names.push(name);
        }
    }
    let failed = run(&names);
    let taken: BTreeSet<&str> = names.iter().filter(|name| !failed.contains(*name)).map(String::as_str).collect();
    assert_eq!(taken, beyond(), "the broken specs that it takes, and those that a schema cannot but take");
    let mut good = Vec::new();
    for (folder, text) in examples() {
        let name = format!("{}.yaml", folder.file_name().unwrap().to_string_lossy());
        topo.write(&name, &text);
        good.push(name);
    }
    assert_eq!(run(&good), BTreeSet::new());
}
