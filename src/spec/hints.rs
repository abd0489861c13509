//! Creates hints for mistakes: the known word that is closest to an unknown word, and corrections for common values of
//! the wrong type.

use super::lint_keys;
use super::node::{Absent, Node, Value};
use super::shape::{Object, Shape};
use crate::model::QueueType;
use crate::model::known_arguments::KNOWN_ARGUMENTS;

/// Words from other tools, each with the corresponding word in a spec.
const FOREIGN_WORDS: &[(&str, &str)] = &[
    ("note", "info"),
    ("notice", "info"),
    ("none", "off"),
    ("ignore", "off"),
    ("disabled", "off"),
    ("mirrored", "quorum"),
];

/// Words that users write for `none`.
const NOTHING: [&str; 6] = ["none", "null", "nil", "no", "off", "nothing"];

/// Returns a hint for a value that is null in YAML.
pub(super) fn of_null(why: Absent, hint: Option<String>, expected: &str) -> Option<String> {
    let starts = |sign, what| Some(format!("`{sign}` starts {what} in YAML: put the value in quotes"));
    match why {
        Absent::Comment => starts('#', "a comment"),
        Absent::Anchor => starts('&', "an anchor"),
        Absent::Tag => starts('!', "a tag"),
        Absent::Empty if hint.is_some() => hint,
        Absent::Empty => {
            let empty = if expected.contains("mapping") { "; {} is an empty mapping" } else { "" };
            Some(format!("remove the key, or add a value{empty}"))
        }
    }
}

/// Returns a hint to put a boolean or a number in quotes. Returns `None` for any other value.
pub(super) fn quote_hint(node: &Node) -> Option<String> {
    let text = match (&node.written, &node.value) {
        (Some(written), Value::Boolean(_) | Value::Integer(_) | Value::Float(_)) => written.to_string(),
        (None, Value::Boolean(value)) => value.to_string(),
        (None, Value::Integer(value)) => value.to_string(),
        (None, Value::Float(value)) => value.to_string(),
        (_, Value::Null(_) | Value::Text(_) | Value::List(_) | Value::Table(_)) => return None,
    };
    Some(format!("put it in quotes if it is a string: \"{text}\""))
}

/// Returns a hint for a value that is not a string, where a string is expected.
pub(super) fn text(node: &Node, shape: Shape) -> Option<String> {
    match (&node.value, shape) {
        (Value::List(_), Shape::RoutingKey) => {
            Some("a binding has one routing key: add one binding for each key".to_owned())
        }
        (_, _) => quote_hint(node),
    }
}

/// Returns a hint for a value that is neither a name nor a mapping, where one of these is expected.
pub(super) fn name_or_mapping(node: &Node, table: &Object) -> Option<String> {
    let hint = match (table.name, &node.value) {
        ("Retry", Value::Boolean(false) | Value::Null(_)) => "write `none` to disable retries, or remove the key",
        ("Retry", Value::Boolean(true)) => "specify the retries: `retry: {delays: [5s, 30s]}`",
        ("Retry", Value::Integer(number)) => {
            return Some(format!("use `maxRetries: {number}` for the number of retries"));
        }
        ("Retry", Value::List(_)) => "set `delays` in a mapping: `retry: {delays: [5s, 30s]}`",
        ("DeadLetterToQueue", Value::Boolean(false) | Value::Null(_)) => {
            "write `none` to drop rejected and expired messages intentionally"
        }
        ("Thresholds", Value::Boolean(false) | Value::Null(_)) => "write `none` for no thresholds, or remove the key",
        ("Thresholds", Value::Integer(number)) => {
            return Some(format!("set `depth` in a mapping: `thresholds: {{depth: {{warning: {number}}}}}`"));
        }
        ("DeadLetterToQueue", Value::List(_)) => "use one queue, or an exchange that several queues are bound to",
        (_, _) => return quote_hint(node),
    };
    Some(hint.to_owned())
}

/// Returns true if a name is a word that users write for `none`.
pub(super) fn means_none(name: &str) -> bool {
    NOTHING.iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// Returns a hint for a value that is not a boolean, where `true` or `false` is expected.
pub(super) fn boolean(value: &Value) -> Option<String> {
    let hint = match value {
        Value::Text(text) => match text.to_ascii_lowercase().as_str() {
            "yes" | "on" | "y" => "YAML 1.2 has only `true` and `false`: write true",
            "no" | "off" | "n" => "YAML 1.2 has only `true` and `false`: write false",
            "true" | "false" => "remove the quotes",
            _ => return None,
        },
        Value::Integer(0) => "write false",
        Value::Integer(1) => "write true",
        Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::List(_) | Value::Table(_) => {
            return None;
        }
    };
    Some(hint.to_owned())
}

/// Returns a hint for a string that is not one of the accepted words.
pub(super) fn other_word(text: &str, words: &'static [&'static str]) -> Option<String> {
    if words.contains(&text.trim()) {
        return Some("remove the surrounding space or line break: write the word without `|` or quotes".to_owned());
    }
    if text == "lazy" && words.contains(&"classic") {
        return Some("write `type: classic`; since RabbitMQ 3.12, all classic queues are lazy".to_owned());
    }
    let known = FOREIGN_WORDS.iter().find(|(word, known)| *word == text.to_lowercase() && words.contains(known));
    let meant = known.map(|(_, known)| *known).or_else(|| closest(text, words.iter().copied()));
    meant.map(|word| format!("did you mean `{word}`?"))
}

/// Returns a hint for a value that is not a string, where one of these words is expected.
pub(super) fn not_word(value: &Value, words: &[&str]) -> Option<String> {
    (*value == Value::Boolean(false) && words.contains(&"off")).then(|| "write `off`".to_owned())
}

/// Returns a hint for a number in quotes. For an argument, the hint explains that the broker distinguishes strings and
/// numbers.
pub(super) fn number_as_text(text: &str, subject: &str) -> String {
    let name = subject.trim_matches('`');
    if KNOWN_ARGUMENTS.iter().any(|known| known.key == name || known.name == name) {
        format!("remove the quotes: for the broker, \"{text}\" and {text} are different values")
    } else {
        format!("remove the quotes: \"{text}\" is a string, {text} is a number")
    }
}

/// Returns a hint for a value that is not a list, where a list is expected.
pub(super) fn for_expected_list(node: &Node, inner: Shape) -> Option<String> {
    match (&node.value, inner) {
        (Value::Text(text), Shape::Object(kind)) => {
            let first = kind.keys().first().map_or("", |key| key.name);
            Some(format!("write [{{{first}: {text}}}]"))
        }
        (Value::Text(text), _) => Some(format!("write [{text}]")),
        (Value::Integer(number), Shape::Delay) => Some(format!("write [{number}s] for seconds")),
        (Value::Table(_), _) => {
            Some("put `- ` before each entry, or put brackets around the entries: [{…}]".to_owned())
        }
        (Value::Null(_) | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) | Value::List(_), _) => None,
    }
}

/// Returns a hint for a value that is not a mapping, where a mapping is expected.
pub(super) fn for_expected_mapping(node: &Node, kind: &Object) -> Option<String> {
    if kind.name == "Cluster" {
        return Some(match node.text() {
            Some(name) => format!("write `cluster: {{name: {name}}}`"),
            None => "write `cluster: {}`".to_owned(),
        });
    }
    if let ("DepthThresholds", Value::Integer(number)) = (kind.name, &node.value) {
        return Some(format!("set a level: `depth: {{warning: {number}}}`"));
    }
    let text = node.text()?;
    if kind.name == "AgeThresholds" && super::units::duration(text).is_ok() {
        return Some(format!("set a level: `age: {{warning: {text}}}`"));
    }
    let has_type =
        ["Queue", "DeadLetterQueue", "QueueDefaults"].contains(&kind.name) && QueueType::named(text).is_some();
    if has_type || kind.name == "Exchange" && super::shared_keys::EXCHANGE_TYPES.contains(&text) {
        return Some(format!("write `{{type: {text}}}`"));
    }
    if kind.name == "Lint" && lint_keys::is_rule(text) {
        return Some(format!("set its level: `{{{text}: warning}}`"));
    }
    let (key, value) = text.split_once(':').filter(|(key, value)| !key.is_empty() && !value.is_empty())?;
    // A URL is not a misspelled entry, and can contain a password.
    let is_entry = !text.contains(char::is_whitespace) && !value.starts_with("//");
    Some(format!("add a space after the colon: `{key}: {value}`")).filter(|_| is_entry)
}

/// Returns the known word that is closest to `word`, if it is similar enough. Otherwise, returns the known word that
/// starts with `word`, if there is exactly one.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.replace(['-', '_', ' '], "").to_lowercase();
    let distance = |candidate: &str| {
        // `message-ttl` and `MessageTTL` are different spellings of `messageTtl`.
        if plain(candidate) == plain(word) { 0 } else { strsim::damerau_levenshtein(candidate, word) }
    };
    let known: Vec<&str> = known.into_iter().collect();
    let near = known
        .iter()
        .copied()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).clamp(1, 4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    // A prefix such as `warn` can be too short to be similar to the known word `warning`.
    let mut longer = known.into_iter().filter(|candidate| word.len() >= 3 && candidate.starts_with(word));
    near.or_else(|| longer.next().filter(|_| longer.next().is_none()))
}

/// Joins words for a message: `` `a`, `b` or `c` ``.
pub(crate) fn join_or<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    joined(words, "or")
}

/// Joins words for a message: `` `a`, `b` and `c` ``.
pub(crate) fn join_and<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    joined(words, "and")
}

fn joined<'a>(words: impl IntoIterator<Item = &'a str>, conjunction: &str) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {conjunction} {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Describes a list: `a list of bindings`.
pub(super) fn list_of(subject: &str) -> String {
    match subject.trim_matches('`') {
        "owns" | "protect" | "ignore" => "a list of globs".to_owned(),
        "to" | "reaches" | "never" => "a list of queues".to_owned(),
        // The subject is not a single key.
        key if key.contains('`') => "a list".to_owned(),
        key => format!("a list of {key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_and_other_spellings_are_recognized() {
        let known = ["messageTtl", "maxLength", "maxLengthBytes", "type"];
        assert_eq!(closest("mesageTtl", known), Some("messageTtl"));
        assert_eq!(closest("message-ttl", known), Some("messageTtl"));
        assert_eq!(closest("max_length_bytes", known), Some("maxLengthBytes"));
        assert_eq!(closest("tpye", known), Some("type"));
        assert_eq!(closest("colour", known), None);
        assert_eq!(closest("mess", known), Some("messageTtl"));
        assert_eq!(closest("max", known), None);
        assert_eq!(join_or(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(join_or(["a"]), "`a`");
        assert_eq!(join_and(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
