//! Renders the `topo explain` pages for the keys of a spec and for error codes. The page for a key contains the
//! mappings that support the key, its meaning, its default and its RabbitMQ name. These pages are generated from the
//! grammar of the parser. An error code is the word in brackets after `error`.

use super::cluster_keys::CLUSTER_DOCUMENT;
use super::environment_keys::ENVIRONMENTS_DOCUMENT;
use super::keys::{DOCUMENT, POLICY_KEYS};
use super::secrets;
use super::shape::{Key, Object, Shape};
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A key with the descriptions of all mappings in which it can occur.
struct Explained {
    key: Key,
    places: Vec<&'static str>,
}

/// Returns the page for a key in Markdown. Returns `None` for an unknown key.
pub fn key_page(name: &str) -> Option<String> {
    let found: Vec<Explained> = all().into_iter().filter(|it| it.key.name == name).collect();
    if found.is_empty() {
        return None;
    }
    let mut page = format!("# {name}\n");
    for Explained { key, places } in &found {
        let _ = write!(page, "\nIn {}: {}\n", places.join(", "), key.doc);
        if key.is_required {
            page.push_str("\nRequired.\n");
        }
        for (what, text) in [("Default", key.default), ("Example", key.example)] {
            if !text.is_empty() {
                let shown = if what == "Example" { format!("{name}: {text}") } else { text.to_owned() };
                let _ = write!(page, "\n{what}: `{shown}`\n");
            }
        }
        if let Shape::OneOf(words) = key.shape {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            let _ = write!(page, "\nOne of {}.\n", words.join(", "));
        }
    }
    if let Some(known) = KNOWN_ARGUMENTS.iter().find(|known| known.key == name) {
        let types: Vec<&str> = known.queue_types().map(|it| it.as_str()).collect();
        let _ = write!(page, "\nRabbitMQ's name for it is `{}`. Queue types: {}.", known.name, types.join(", "));
        match known.policy_key {
            Some(key) => {
                let _ = writeln!(page, " A policy can set it with `{key}` and change it later.");
            }
            None => page.push_str(" A policy cannot set it.\n"),
        }
    }
    Some(page)
}

/// Returns the key for a different spelling: `x-message-ttl`, `message-ttl`, or a path such as `queues.NAME.retry`.
/// Returns `None` for any other string.
pub fn key_of(text: &str) -> Option<&'static str> {
    let names = key_names();
    let known = KnownArgument::named(text).or_else(|| KnownArgument::of_policy_key(text));
    let is_path = text.split_once('.').is_some_and(|(first, _)| names.contains(first));
    let last = text.rsplit('.').next().filter(|_| is_path).and_then(|last| names.get(last).copied());
    known.map(|known| known.key).filter(|key| names.contains(key)).or(last)
}

/// Returns the names of all keys in a spec, except the rules under `lint`.
pub fn key_names() -> BTreeSet<&'static str> {
    all().into_iter().map(|it| it.key.name).collect()
}

fn all() -> Vec<Explained> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    walk(&DOCUMENT, &mut seen, &mut found);
    walk(&CLUSTER_DOCUMENT, &mut seen, &mut found);
    walk(&ENVIRONMENTS_DOCUMENT, &mut seen, &mut found);
    for known in POLICY_KEYS.iter() {
        let key = super::shape::key(known.key, known.shape, known.doc);
        add(key, "a policy's definition", &mut found);
    }
    found
}

fn walk(object: &'static Object, seen: &mut BTreeSet<&'static str>, found: &mut Vec<Explained>) {
    // The keys of `lint` are rules, which have their own pages.
    if !seen.insert(object.name) || object.name == "Lint" {
        return;
    }
    for key in object.keys() {
        add(*key, object.what, found);
        walk_shape(key.shape, seen, found);
    }
}

fn walk_shape(shape: Shape, seen: &mut BTreeSet<&'static str>, found: &mut Vec<Explained>) {
    match shape {
        Shape::Object(object) => walk(object, seen, found),
        Shape::List(inner) | Shape::NonEmptyList(inner) | Shape::Map(inner) | Shape::FreeMap(inner) => {
            walk_shape(*inner, seen, found)
        }
        Shape::Secret(_) => secrets::REFERENCES.iter().for_each(|table| walk(table, seen, found)),
        Shape::Either(_, tables) => tables.iter().for_each(|table| walk(table, seen, found)),
        Shape::OneForm(forms) => {
            forms.tables.iter().for_each(|table| walk(table, seen, found));
            [forms.list, forms.map].into_iter().flatten().for_each(|shape| walk_shape(shape, seen, found));
        }
        Shape::Text
        | Shape::Name
        | Shape::RoutingKey
        | Shape::Version
        | Shape::Boolean
        | Shape::Duration(..)
        | Shape::Delay
        | Shape::Seconds
        | Shape::Uri
        | Shape::Factor
        | Shape::Size(_)
        | Shape::Count(..)
        | Shape::MaxAge
        | Shape::Number
        | Shape::OneOf(_)
        | Shape::Tag
        | Shape::ExchangeType
        | Shape::Arguments(_)
        | Shape::Definition
        | Shape::Any => {}
    }
}

/// Adds a key that can occur in `place`. Merges the places of keys with the same name and documentation.
fn add(key: Key, place: &'static str, found: &mut Vec<Explained>) {
    let same = found.iter_mut().find(|it| it.key.name == key.name && it.key.doc == key.doc);
    match same {
        Some(same) if same.places.contains(&place) => {}
        Some(same) => same.places.push(place),
        None => found.push(Explained { key, places: vec![place] }),
    }
}

/// The error codes and their descriptions, in alphabetical order.
const CODES: &[(&str, &str)] = &[
    ("allow", "A comment that allows findings does not have the form `# topo: allow RULE reason`."),
    ("conflicting-keys", "Two keys in the same mapping are mutually exclusive, such as `delays` and `backoff`."),
    (
        "declared-twice",
        "The specs declare the same object twice. Keep one declaration. topo merges all specs of a vhost, and no \
         declaration overrides another.",
    ),
    (
        "definitions",
        "The file is a RabbitMQ definitions file, not a spec. `topo export --definitions FILE` converts it to a spec.",
    ),
    (
        "duplicate-key",
        "A mapping contains the same key twice. YAML parsers disagree about which value applies, so topo uses neither.",
    ),
    ("empty", "The file contains no document. A spec starts with `version: 1` and `vhost: NAME`."),
    ("encoding", "The file is not valid UTF-8."),
    (
        "external",
        "An object with `external: true` has a key that external objects do not support. topo never changes an external \
         object, so the key would have no effect.",
    ),
    (
        "for-each",
        "`forEach` does not contain exactly one variable with a list or a mapping, or an item is invalid or repeated. \
         The error also occurs if the name of the entry does not contain the variable, or if a placeholder has no \
         value.",
    ),
    (
        "generated-name",
        "topo cannot use the name of a generated object. The name is too long, contains a topic wildcard, is already \
         declared, is listed under `removed`, or is ignored. The error also occurs if dead-letter queues share an \
         exchange that cannot distinguish them.",
    ),
    ("ignored-and-declared", "A glob of `ignore` matches the name of an object that the specs declare."),
    ("missing-key", "A required key is missing, or a key that another key requires."),
    (
        "name",
        "A name is empty, is longer than 255 bytes, contains a line break, or is reserved for the broker or topo.",
    ),
    ("number-as-text", "A number is in quotes. For the broker, `\"5\"` and `5` are different values."),
    ("out-of-range", "A value is too small or too large."),
    ("pattern", "topo cannot evaluate the pattern of a policy, but must determine which objects it matches."),
    ("removed-and-declared", "An object is both declared and listed under `removed`."),
    ("retry-strategy", "The queue type, the strategy or the RabbitMQ version does not support these retries."),
    ("routing-key", "A routing key is longer than 255 bytes, or its binding could never be deleted."),
    (
        "secret-as-text",
        "A spec contains a secret, such as a password. Specs and plans are stored and shared, so a spec must only refer to \
         secrets: `{env: NAME}` or `{file: PATH}`. Variables such as `${NAME}` are not valid either, because topo would show \
         their values in plans.",
    ),
    (
        "set-twice",
        "A setting is set in two places, for example by its key and by the corresponding argument, or two keys exclude each \
         other.",
    ),
    (
        "syntax",
        "The file is not valid YAML, or YAML reads a value differently than intended. For example, a plain string cannot \
         start with `*`, `&`, `!`, `#`, `%` or `@`.",
    ),
    (
        "too-large",
        "An integer does not fit in 64 bits (signed), or a file or an argument contains too many values. The error \
         also occurs if mappings and lists are nested too deeply, or if a file expands to far more values than it \
         contains.",
    ),
    ("too-many-delays", "There are more `delays` than retries. Each retry has one delay."),
    ("undeclared", "The spec refers to an object or a retry policy that it does not declare."),
    ("unknown-key", "The mapping does not have this key. Keys are in camelCase; `topo explain KEY` describes each."),
    ("unknown-rule", "A comment allows findings of a rule that does not exist. `topo rules` lists the rules."),
    (
        "variable",
        "A variable is not set or not valid. Use `${NAME}` or `${NAME:-default}`; write `$${` for a literal `${`.",
    ),
    ("version", "This version of topo does not support the format version of the spec."),
    ("wrong-queue-type", "Queues of this type do not support the key."),
    (
        "wrong-type",
        "A value has the wrong type, such as a string instead of an integer, a list instead of a mapping, or a duration \
         without a unit.",
    ),
    ("wrong-value", "A value has the right type but is not one of the valid values."),
];

/// Returns the page for an error code. Returns `None` for an unknown code.
pub fn code_page(code: &str) -> Option<String> {
    let (_, meaning) = CODES.iter().find(|(known, _)| *known == code)?;
    Some(format!(
        "# {code}\n\n{meaning}\n\nThis is an error: topo rejects the spec, regardless of the levels of lint rules.\n"
    ))
}

/// Returns all error codes.
pub fn code_names() -> impl Iterator<Item = &'static str> {
    CODES.iter().map(|(code, _)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_page() {
        let names = key_names();
        assert!(names.contains("messageTtl") && names.contains("delays") && names.contains("lint"), "{names:?}");
        for name in names {
            let page = key_page(name).expect("it is a key");
            assert!(page.starts_with(&format!("# {name}\n\nIn ")), "{page}");
        }
        assert_eq!(key_page("messageTTL"), None);
    }

    #[test]
    fn page_contains_mappings_and_argument() {
        let page = key_page("messageTtl").unwrap_or_default();
        assert!(page.contains("In `defaults.queue`, a queue, a dead-letter queue"), "{page}");
        assert!(
            page.contains("`x-message-ttl`. Queue types: classic, quorum. A policy can set it with `message-ttl`"),
            "{page}"
        );
        assert_eq!(
            ["x-message-ttl", "dead-letter-exchange", "queues.NAME.retry", "orders.retry"].map(key_of),
            [Some("messageTtl"), Some("deadLetter"), Some("retry"), None]
        );
        assert!(key_page("onConflict").unwrap_or_default().contains("One of `refuse`"));
    }
}
