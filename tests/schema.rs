//! Checks that the schema and the parser agree on every invalid spec and every example; tables list the exceptions.
//! Uses a library, and the `check-jsonschema` of pre-commit hooks.

mod error_positions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::broken;
use crate::editor::tool;
use crate::examples::examples;
use crate::support::Topo;

/// Invalid specs that the schema accepts, with the reason.
const ACCEPTED_BY_SCHEMA: &[(&str, &[&str])] = &[
    (
        "the declaration of a referenced name",
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
        "two positions with one object",
        &[
            "binding-twice.yaml",
            "dead-letter-queues-behind-one-fanout.yaml",
            "ignored-and-declared.yaml",
            "queue-and-dead-letter-queue.yaml",
            "removed-and-declared.yaml",
            "set-as-key-and-argument.yaml",
        ],
    ),
    (
        "the content of other files",
        &[
            "twice-in-two-files/billing.yaml",
            "twice-in-two-files/orders.yaml",
            "two-default-queue-types/a.yaml",
            "two-default-queue-types/b.yaml",
            "two-cluster-names/a.yaml",
            "two-cluster-names/b.yaml",
        ],
    ),
    ("the defaults of a queue", &["no-type-anywhere.yaml", "type-by-default-takes-no-such-key.yaml"]),
    (
        "the requirements and the number of retries",
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
    ("1.0 equals 1 in JSON", &["version-with-a-dot.yaml"]),
    ("the encoding of the file", &["utf-16.yaml"]),
    ("the length in bytes: a schema counts characters", &["name-of-many-bytes.yaml"]),
    ("the size of an integer in bits", &["argument-larger-than-64-bits.yaml"]),
    ("comments", &["allows-of-several-rules.yaml"]),
];

/// Input that some YAML readers expand without end, recurse into, or read differently. The parser refuses it.
const BOMBS: &[&str] = &[
    "alias-bomb.yaml",
    "brackets-without-end.yaml",
    "alias-to-itself.yaml",
    "deep-nesting.yaml",
    "key-is-a-list.yaml",
];

/// Error codes that a schema cannot express, with the reason.
const CODES_BEYOND_SCHEMA: &[(&str, &str)] = &[
    ("declared-twice", "two positions"),
    ("empty", "no document"),
    ("for-each", "placeholders and their values"),
    ("generated-name", "two positions"),
    ("ignored-and-declared", "two positions"),
    ("mirrored-queue-policy", "it depends on the RabbitMQ version"),
    ("refused-by-broker", "it depends on the RabbitMQ version and its pattern syntax"),
    ("removed-and-declared", "two positions"),
    ("retry-strategy", "it depends on defaults, the queue type and the expanded retries"),
    ("too-large", "JSON numbers have no size in bits"),
    ("undeclared", "two positions"),
    ("unknown-rule", "a comment"),
    ("variable", "the value of a variable"),
];
/// Errors in single files that the schema does not report: the file, the error code and the reason.
const MISSED_BY_SCHEMA: &[(&str, &str, &str)] = &[
    ("backoff-without-retries.yaml", "missing-key", "the number may be in the defaults"),
    ("dead-letter-key-without-exchange.yaml", "missing-key", "the exchange may be in the defaults"),
    ("everything-at-once.yaml", "missing-key", "the type may be in the defaults"),
    ("float-for-a-count.yaml", "wrong-type", "5.0 equals 5 in JSON"),
    ("for-each.yaml", "wrong-type", "the value of a placeholder"),
    ("name-of-many-bytes.yaml", "name", "a schema counts characters, not bytes"),
    ("name-of-many-bytes.yaml", "routing-key", "a schema counts characters, not bytes"),
    ("no-type-anywhere.yaml", "missing-key", "the type may be in the defaults"),
    ("octal-is-decimal.yaml", "number-as-text", "the parser of this test accepts 1_000 as a number"),
    ("permissions.yaml", "name", "the keys of topic permissions can be any text, except the empty text"),
    ("removed-and-declared.yaml", "name", "its name patterns apply to declared objects, not to deleted ones"),
    ("set-as-key-and-argument.yaml", "set-twice", "two spellings of one argument"),
    ("super-streams.yaml", "missing-key", "one of two keys"),
    ("super-streams.yaml", "set-twice", "one of two keys, and equal items"),
    ("thresholds.yaml", "out-of-range", "a schema does not compare two values"),
    ("two-cluster-names/b.yaml", "set-twice", "two files"),
    ("two-default-queue-types/b.yaml", "set-twice", "two files"),
    ("type-by-default-takes-no-such-key.yaml", "wrong-queue-type", "the type is in the defaults"),
    ("variable-default-of-the-wrong-type.yaml", "wrong-type", "the value of a variable"),
    ("variable-default-of-the-wrong-type.yaml", "wrong-value", "the value of a variable"),
    ("variable-in-quotes-of-its-own.yaml", "wrong-type", "the value of a variable"),
    ("version-with-a-dot.yaml", "wrong-type", "1.0 equals 1 in JSON"),
];
/// Files with errors that only the schema reports, because topo stops after the error about the version.
const ONLY_FOUND_BY_SCHEMA: &[&str] = &["version-2.yaml"];

fn beyond() -> BTreeSet<&'static str> {
    ACCEPTED_BY_SCHEMA.iter().flat_map(|(_, names)| *names).copied().collect()
}

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/topology.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Returns the documents of a text as JSON; `None` for invalid YAML.
fn documents(text: &[u8]) -> Option<Vec<Value>> {
    let text = std::str::from_utf8(text).ok()?;
    let strict = serde_yaml::options! { strict_booleans: true };
    serde_yaml::from_multiple_with_options(text, strict).ok()
}

#[test]
fn schema_has_descriptions() {
    let schema = schema();
    assert!(jsonschema::draft7::meta::is_valid(&schema));
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    for key in ["$id", "title", "description"] {
        assert!(schema[key].is_string(), "{key}");
    }
    let mut keys = 0;
    for (name, definition) in schema["definitions"].as_object().unwrap() {
        let is_titled = definition["title"].is_string() || definition["description"].is_string();
        assert!(is_titled || name.ends_with("Arguments"), "{name} has no description");
        for (key, property) in definition["properties"].as_object().into_iter().flatten() {
            keys += 1;
            assert!(property["description"].is_string() || *property == false, "{name}.{key} is not described");
        }
    }
    assert!(keys > 200, "{keys}");
}

#[test]
fn schema_agrees_with_the_parser_on_every_file() {
    let validator = jsonschema::draft7::new(&schema()).unwrap();
    let mut taken = BTreeSet::new();
    for (name, text) in broken::cases().iter().flat_map(|case| broken::files(case)) {
        // An empty file contains no document.
        let documents = documents(&text).filter(|documents| !documents.is_empty());
        if documents.is_some_and(|documents| documents.iter().all(|document| validator.is_valid(document))) {
            taken.insert(name);
        }
    }
    // This file is not UTF-8, so this test cannot read it.
    let expected: BTreeSet<String> =
        beyond().into_iter().filter(|name| *name != "utf-16.yaml").map(str::to_owned).collect();
    assert_eq!(taken, expected, "accepted broken specs, and the expected ones");
    for (folder, text) in examples() {
        for document in documents(text.as_bytes()).unwrap() {
            let complaints: Vec<String> = validator.iter_errors(&document).map(|error| error.to_string()).collect();
            assert!(complaints.is_empty(), "{}: {complaints:?}", folder.display());
        }
    }
}

/// The code, line and column of an error from topo.
type Told<'a> = (&'a str, (u64, u64));

/// For each error from topo, the schema has an error at the same position, and for each error of the schema, topo has
/// one.
#[test]
fn schema_reports_the_same_errors_at_the_same_positions() {
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
            let complaints = documents
                .iter()
                .enumerate()
                .flat_map(|(at, it)| error_positions::complaints(&validator, at, it))
                .collect();
            let errors = told.get(&*name).map_or(&[][..], Vec::as_slice);
            let paths: Vec<_> = errors.iter().map(|(_, at)| error_positions::paths_at(&places, *at)).collect();
            for ((code, at), paths) in errors.iter().zip(&paths) {
                compared += 1;
                let by_code = CODES_BEYOND_SCHEMA.iter().find(|(known, _)| known == code).map(|(code, _)| ("", *code));
                let there = MISSED_BY_SCHEMA.iter().find(|(file, known, _)| *file == name && known == code);
                let is_beyond = by_code.or(there.map(|(file, code, _)| (*file, *code)));
                match (error_positions::is_reported(paths, &complaints), is_beyond) {
                    (true, _) => {}
                    (false, Some(known)) => drop(beyond.insert(known)),
                    (false, None) => wrong.push(format!("{name}:{at:?} {code}, not by the schema: {paths:?}")),
                }
            }
            let is_less = ONLY_FOUND_BY_SCHEMA.contains(&&*name);
            for complaint in
                complaints.iter().filter(|_| !is_less).filter(|complaint| !error_positions::is_found(complaint, &paths))
            {
                wrong.push(format!("{name}, only by the schema: {complaint:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 150, "{compared}");
    let listed = CODES_BEYOND_SCHEMA.iter().map(|(code, _)| ("", *code));
    let listed: BTreeSet<_> = listed.chain(MISSED_BY_SCHEMA.iter().map(|(file, code, _)| (*file, *code))).collect();
    assert_eq!(listed.difference(&beyond).collect::<Vec<_>>(), [&("", ""); 0], "listed, but the schema reports it");
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
        // The tool accepts a single document, and does not detect alias bombs.
        let is_one = documents(&text).is_none_or(|documents| documents.len() <= 1);
        if is_one && !BOMBS.contains(&name.as_str()) {
            topo.write(&name, "");
            std::fs::write(topo.path(&name), text).unwrap();
            names.push(name);
        }
    }
    let failed = run(&names);
    let taken: BTreeSet<&str> = names.iter().filter(|name| !failed.contains(*name)).map(String::as_str).collect();
    assert_eq!(taken, beyond(), "accepted broken specs, and the expected ones");
    let mut good = Vec::new();
    for (folder, text) in examples() {
        let name = format!("{}.yaml", folder.file_name().unwrap().to_string_lossy());
        topo.write(&name, &text);
        good.push(name);
    }
    assert_eq!(run(&good), BTreeSet::new());
}
