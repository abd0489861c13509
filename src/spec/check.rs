//! Checks a tree against the grammar and converts its values: durations to milliseconds, sizes to bytes, and policy
//! keys to RabbitMQ's spelling. Reports invalid values and omits them or replaces them with null, so that one mistake
//! produces only one error. `read` and `references` check the relations between objects.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::hints::{self, join_and, join_or};
use super::keys::{OPTIONAL, POLICY_KEYS};
use super::node::{Absent, Entry, Location, Node, Value};
use super::secrets;
use super::shape::{Object, Shape};
use super::unknown_keys::{refuse_policy_key, report_unknown_key};
use super::value;
use crate::model::MAX_VALUES;
use crate::model::count::number;
use crate::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use crate::model::names::{LOCK_QUEUE, MAX_NAME_BYTES, is_reserved};

/// Checks a node, and returns the node with converted values and without invalid parts. Returns `None` if the whole
/// node is invalid. `subject` describes the node in messages. `at` is the position of its key, or of the node itself if
/// the node is a list item.
pub(crate) fn check(
    node: &Node,
    shape: Shape,
    subject: &str,
    at: Location,
    diagnostics: &mut Diagnostics,
) -> Option<Node> {
    match shape {
        Shape::Object(kind) => object(node, kind, subject, at, diagnostics),
        Shape::FreeMap(inner) => {
            if !matches!(node.value, Value::Table(_)) {
                value::report_wrong_type(node, subject, "a mapping", None, at, diagnostics);
                return None;
            }
            let checked = node.entries().iter().filter_map(|entry| {
                let subject = format!("`{}`", entry.key);
                let node = check(&entry.node, *inner, &subject, entry.at, diagnostics)?;
                Some(Entry { key: entry.key.clone(), at: entry.at, node })
            });
            Some(node.with(Value::Table(checked.collect())))
        }
        Shape::Map(inner) => map(node, *inner, subject, at, diagnostics),
        Shape::List(inner) | Shape::NonEmptyList(inner) => {
            let Value::List(items) = &node.value else {
                value::report_wrong_type(
                    node,
                    subject,
                    &hints::list_of(subject),
                    hints::for_expected_list(node, *inner),
                    at,
                    diagnostics,
                );
                return None;
            };
            if items.is_empty() && matches!(shape, Shape::NonEmptyList(_)) {
                let diagnostic = Diagnostic::error("wrong-value", format!("{subject} is an empty list"), at);
                diagnostics.push(diagnostic.hint("add an entry, or remove the key"));
                return None;
            }
            let item_subject =
                inner.table().map_or_else(|| format!("an entry in {subject}"), |kind| kind.what.to_owned());
            let checked = items.iter().filter_map(|item| check(item, *inner, &item_subject, item.at, diagnostics));
            Some(node.with(Value::List(checked.collect())))
        }
        Shape::Either(text, tables) => match (&node.value, tables) {
            (Value::Table(_), [only]) => object(node, only, subject, at, diagnostics),
            (Value::Table(_), _) => either(node, tables, subject, at, diagnostics),
            (Value::Text(_), _) => check(node, *text, subject, at, diagnostics),
            (_, _) => {
                let hint = tables.first().and_then(|table| hints::name_or_mapping(node, table));
                let expected = if let Shape::OneOf([word]) = text {
                    format!("`{word}` or a mapping")
                } else {
                    "a name or a mapping".to_owned()
                };
                value::report_wrong_type(node, subject, &expected, hint, at, diagnostics);
                None
            }
        },
        Shape::OneForm(forms) => {
            let inner = match (&node.value, forms.tables) {
                (Value::Table(_), [_, ..]) => return either(node, forms.tables, subject, at, diagnostics),
                (Value::Table(_), []) => forms.map,
                (Value::List(_), _) => forms.list,
                (Value::Integer(_), _) => forms.integer.or(forms.scalar),
                (Value::Null(_) | Value::Boolean(_) | Value::Float(_) | Value::Text(_), _) => forms.scalar,
            };
            match inner {
                Some(inner) => check(node, inner, subject, at, diagnostics),
                None => {
                    value::report_wrong_type(node, subject, forms.what, None, at, diagnostics);
                    None
                }
            }
        }
        Shape::Secret(_) if matches!(node.value, Value::Table(_)) => {
            either(node, secrets::REFERENCES, subject, at, diagnostics)
        }
        Shape::Secret(can_be_none) => secrets::check_non_mapping(node, can_be_none, subject, at, diagnostics),
        Shape::Arguments(is_queue) => arguments(node, is_queue, subject, at, diagnostics),
        Shape::Definition => definition(node, subject, at, diagnostics),
        Shape::Any => any_value(node, subject, at, diagnostics),
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
        | Shape::ExchangeType => value::check(node, shape, subject, at, diagnostics),
    }
}

fn object(node: &Node, kind: &Object, subject: &str, at: Location, diagnostics: &mut Diagnostics) -> Option<Node> {
    if !matches!(node.value, Value::Table(_)) {
        if secrets::report_value(node, kind, subject, at, diagnostics) {
            return None;
        }
        value::report_wrong_type(node, subject, "a mapping", hints::for_expected_mapping(node, kind), at, diagnostics);
        return None;
    }
    if ["Document", "ClusterDocument", "TestDocument"].contains(&kind.name)
        && report_unsupported_version(node, diagnostics)
    {
        return None;
    }
    let keys = kind.keys();
    let is_external = !kind.external.is_empty() && node.get("external").is_some_and(Node::is_true);
    let mut suggested = Vec::new();
    let mut is_listed = false;
    let mut checked = Vec::new();
    for entry in node.entries() {
        let Some(key) = keys.iter().find(|key| key.name == entry.key) else {
            if let Some(name) = report_unknown_key(entry, node, kind, &mut is_listed, diagnostics) {
                suggested.push(name);
                if node.get(name).is_none() {
                    checked.push(placeholder_entry(name, entry));
                }
            }
            continue;
        };
        if is_external && key.name != "external" && !kind.external.contains(&key.name) {
            let message = format!("{subject} is external, so `{}` cannot be set", key.name);
            let hint = format!(
                "topo never changes external objects, which support only the keys {}",
                join_and(std::iter::once("external").chain(kind.external.iter().copied()))
            );
            diagnostics.push(Diagnostic::error("external", message, entry.at).hint(hint));
            continue;
        }
        if !is_external && key.name == OPTIONAL {
            let message = format!("`{OPTIONAL}` needs `external: true`");
            let hint = format!(
                "topo creates every exchange that the spec declares, so this one cannot be optional: remove `{OPTIONAL}`"
            );
            diagnostics.push(Diagnostic::error("missing-key", message, entry.at).hint(hint));
            continue;
        }
        let subject = format!("`{}`", key.name);
        checked.push(match check(&entry.node, key.shape, &subject, entry.at, diagnostics) {
            Some(node) => Entry { key: entry.key.clone(), at: entry.at, node },
            None => placeholder_entry(key.name, entry),
        });
    }
    for key in keys.iter().filter(|key| key.is_required && !is_external) {
        if node.get(key.name).is_none() && !suggested.contains(&key.name) {
            let diagnostic = Diagnostic::error("missing-key", format!("{subject} has no `{}`", key.name), at);
            let hint = if key.example.is_empty() {
                String::new()
            } else {
                format!(", for example `{}: {}`", key.name, key.example)
            };
            diagnostics.push(diagnostic.hint(format!("add `{}`{hint}", key.name)));
        }
    }
    Some(node.with(Value::Table(checked)))
}

/// Returns true, and reports an error, if the format version is unsupported. topo then skips the rest of the document.
fn report_unsupported_version(document: &Node, diagnostics: &mut Diagnostics) -> bool {
    let Some(entry) = document.entry("version") else { return false };
    let is_other = matches!(entry.node.value, Value::Integer(version) if version != 1);
    is_other && check(&entry.node, Shape::Version, "`version`", entry.at, diagnostics).is_none()
}

/// Creates a placeholder for a misspelled key or an invalid value, so that topo does not also report the key as
/// missing.
fn placeholder_entry(key: &str, entry: &Entry) -> Entry {
    Entry { key: key.to_owned(), at: entry.at, node: entry.node.with(Value::Null(Absent::Empty)) }
}

fn either(
    node: &Node,
    tables: &'static [&'static Object],
    subject: &str,
    at: Location,
    diagnostics: &mut Diagnostics,
) -> Option<Node> {
    let first_key = |table: &Object| table.keys().first().map_or("", |key| key.name);
    let first_keys: Vec<&str> = tables.iter().map(|table| first_key(table)).collect();
    let present: Vec<&&Object> = tables.iter().filter(|table| node.get(first_key(table)).is_some()).collect();
    match present.as_slice() {
        [only] => object(node, only, subject, at, diagnostics),
        [] => {
            let message = format!(
                "{subject} sets neither {}",
                first_keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" nor ")
            );
            diagnostics
                .push(Diagnostic::error("missing-key", message, at).hint(format!("add {}", join_or(first_keys))));
            None
        }
        [_, _, ..] => {
            let message = format!("{subject} sets more than one of {}", join_and(first_keys));
            diagnostics.push(Diagnostic::error("conflicting-keys", message, at).hint("keep one of them"));
            None
        }
    }
}

fn map(node: &Node, inner: Shape, subject: &str, at: Location, diagnostics: &mut Diagnostics) -> Option<Node> {
    if !matches!(node.value, Value::Table(_)) {
        let of_name = |item: &Node| item.get("name").and_then(Node::text).or(item.text()).map(str::to_owned);
        let name = node.items().iter().find_map(of_name);
        let hint = name.map(|name| format!("use the name as the key: `{name}: {{…}}`"));
        value::report_wrong_type(node, subject, "a mapping whose keys are names", hint, at, diagnostics);
        return None;
    }
    let mut checked = Vec::new();
    let mut entry_above: Option<&Entry> = None;
    for (index, entry) in node.entries().iter().enumerate() {
        if is_misplaced_key(entry, inner) {
            diagnostics.push(misplaced_key(entry, inner, entry_above));
            continue;
        }
        entry_above = Some(entry);
        let is_next_misplaced = node.entries().get(index + 1).is_some_and(|next| is_misplaced_key(next, inner));
        if is_next_misplaced && matches!(entry.node.value, Value::Null(_)) {
            // The keys of this entry follow it, but with too little indentation. topo reports each of these keys.
            continue;
        }
        let subject = match inner.table() {
            Some(kind) => format!("{} `{}`", kind.what.trim_start_matches("an ").trim_start_matches("a "), entry.key),
            None => format!("entry `{}` of {subject}", entry.key),
        };
        let is_external = entry.node.get("external").is_some_and(Node::is_true);
        let is_named = check_declared_name(&entry.key, is_external, entry.at, diagnostics);
        if let Some(node) = check(&entry.node, inner, &subject, entry.at, diagnostics)
            && is_named
        {
            checked.push(Entry { key: entry.key.clone(), at: entry.at, node });
        }
    }
    Some(node.with(Value::Table(checked)))
}

/// Returns true if an entry is not a name but a key of the object above it, for example `type: quorum` with the
/// indentation of a queue name.
fn is_misplaced_key(entry: &Entry, inner: Shape) -> bool {
    let Some(kind) = inner.table() else { return false };
    let is_key = |name: &str| kind.keys().iter().any(|key| key.name == name);
    is_key(&entry.key)
        && match &entry.node.value {
            Value::Table(entries) => !entries.is_empty() && !entries.iter().any(|inner| is_key(&inner.key)),
            Value::Null(_)
            | Value::Boolean(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Text(_)
            | Value::List(_) => true,
        }
}

fn misplaced_key(entry: &Entry, inner: Shape, entry_above: Option<&Entry>) -> Diagnostic {
    let what = inner.table().map_or("an object", |kind| kind.what);
    let message = format!("expected the name of {what}, found the key `{}`", entry.key);
    let diagnostic = Diagnostic::error("syntax", message, entry.at).label(format!("a key of {what}"));
    match entry_above {
        Some(above) => diagnostic
            .hint(format!("indent `{}` further than `{}`", entry.key, above.key))
            .also(above.at, "the name above"),
        None => diagnostic.hint(format!("add the name of {what} above `{0}`, and indent `{0}` further", entry.key)),
    }
}

/// Returns true if an object can have this name. Otherwise, reports the reason.
fn check_declared_name(name: &str, is_external: bool, at: Location, diagnostics: &mut Diagnostics) -> bool {
    let problem = value::name_problem(name).or_else(|| match name {
        _ if is_external => None,
        _ if name.starts_with("amq.") => Some("names that start with `amq.` are reserved for the broker".to_owned()),
        _ if is_reserved(name) => Some(format!("`{LOCK_QUEUE}` and names that contain `.topo.` are reserved for topo")),
        _ => None,
    });
    if let Some(problem) = &problem {
        let shown: String = name.chars().take(60).collect();
        let message = format!("invalid object name {shown:?}: {problem}");
        diagnostics.push(Diagnostic::error("name", message, at));
    }
    problem.is_none()
}

fn arguments(node: &Node, is_queue: bool, subject: &str, at: Location, diagnostics: &mut Diagnostics) -> Option<Node> {
    if !matches!(node.value, Value::Table(_)) {
        value::report_wrong_type(node, subject, "a mapping of arguments", None, at, diagnostics);
        return None;
    }
    let mut checked = Vec::new();
    for entry in node.entries() {
        let subject = format!("`{}`", entry.key);
        if is_queue && KNOWN_ARGUMENTS.iter().any(|known| known.key == entry.key) {
            let message = format!("{subject} is a key of the queue, not an argument");
            diagnostics.push(Diagnostic::error("unknown-key", message, entry.at).hint("move it out of `arguments:`"));
            continue;
        }
        if entry.key.is_empty() || entry.key.len() > MAX_NAME_BYTES {
            diagnostics.push(Diagnostic::error("name", "an argument name must be 1 to 255 bytes long", entry.at));
            continue;
        }
        if report_too_large(&entry.node, &subject, entry.at, diagnostics) {
            continue;
        }
        let known = if is_queue { KnownArgument::named(&entry.key) } else { None };
        let node = match known {
            Some(known) => check(&entry.node, known.value.into(), &subject, entry.at, diagnostics),
            None => value::argument(&entry.node, &subject, entry.at, diagnostics),
        };
        checked.extend(node.map(|node| Entry { key: entry.key.clone(), at: entry.at, node }));
    }
    Some(node.with(Value::Table(checked)))
}

fn any_value(node: &Node, subject: &str, at: Location, diagnostics: &mut Diagnostics) -> Option<Node> {
    if report_too_large(node, subject, at, diagnostics) {
        return None;
    }
    if let Value::Null(_) = &node.value {
        let hint = Some("remove the entry, or write a value".to_owned());
        value::report_wrong_type(node, subject, "a value", hint, at, diagnostics);
        return None;
    }
    let is_exact = value::are_numbers_exact(node);
    if !is_exact {
        let message = format!("{subject} contains a number that topo cannot represent exactly");
        diagnostics.push(Diagnostic::error("wrong-value", message, at).hint("write the number as a string"));
    }
    is_exact.then(|| node.clone())
}

/// Returns true, and reports an error, if a value is too large to compare.
fn report_too_large(node: &Node, subject: &str, at: Location, diagnostics: &mut Diagnostics) -> bool {
    let is_too_large = node.size() > MAX_VALUES;
    if is_too_large {
        let message = format!("{subject} contains more than {} values", number(MAX_VALUES as u64));
        diagnostics.push(Diagnostic::error("too-large", message, at).hint("topo does not compare values of this size"));
    }
    is_too_large
}

/// Checks the definition of a policy, and converts its keys to RabbitMQ's spelling.
fn definition(node: &Node, subject: &str, at: Location, diagnostics: &mut Diagnostics) -> Option<Node> {
    if !matches!(node.value, Value::Table(_)) {
        value::report_wrong_type(node, subject, "a mapping of policy keys", None, at, diagnostics);
        return None;
    }
    if node.entries().is_empty() {
        let diagnostic = Diagnostic::error("wrong-value", format!("{subject} sets nothing"), at);
        diagnostics.push(diagnostic.hint("add a key, for example `maxLengthBytes: 1GiB`, or remove the policy"));
        return None;
    }
    let mut checked: Vec<Entry> = Vec::new();
    for entry in node.entries() {
        let subject = format!("`{}`", entry.key);
        let known = POLICY_KEYS.iter().find(|known| known.key == entry.key || known.name == entry.key);
        if refuse_policy_key(entry, diagnostics) {
            continue;
        }
        let (key, node) = match known {
            Some(known) => (known.name, check(&entry.node, known.shape, &subject, entry.at, diagnostics)),
            None => (entry.key.as_str(), value::argument(&entry.node, &subject, entry.at, diagnostics)),
        };
        if let Some(first) = checked.iter().find(|first| first.key == key) {
            let diagnostic =
                Diagnostic::error("set-twice", format!("`{key}` is set twice, in both spellings"), entry.at);
            diagnostics.push(diagnostic.also(first.at, "first set here").hint("keep one of the two"));
            continue;
        }
        checked.extend(node.map(|node| Entry { key: key.to_owned(), at: entry.at, node }));
    }
    Some(node.with(Value::Table(checked)))
}
