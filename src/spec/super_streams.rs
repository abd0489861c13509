//! Defines the grammar of super streams, and converts each entry to an exchange, streams and bindings.
//!
//! `rabbitmq-streams add_super_stream` creates the same objects (measured on 3.10.8, 4.0.5 and 4.3.6). The exchange is
//! a durable direct exchange with `x-super-stream: true`. The streams are named `NAME-0`, `NAME-1` and so on, or
//! `NAME-KEY` for each binding key. The `x-stream-partition-order` argument of a binding is the position of its
//! partition. Without this argument, clients receive the partitions in any order.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Entry, Location, Node, Value};
use super::queue_keys::stream_keys;
use super::shape::{Key, Keys, Object, Shape, key};
use crate::model::names::MAX_NAME_BYTES;
use crate::model::names::{PARTITION_ORDER, SUPER_STREAM};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The key of the section in a spec.
pub(super) const SECTION: &str = "superStreams";

/// The section in a converted document that contains the streams for each super stream. The document's defaults do not
/// apply to these streams. A spec cannot contain this key.
const STREAMS: &str = "superStreams/streams";

/// The maximum number of partitions that topo accepts.
const MAX_PARTITIONS: i64 = 1000;

/// A super stream.
static SUPER_STREAM_ENTRY: Object = Object {
    what: "a super stream",
    name: "SuperStream",
    keys: Keys::Fixed(|| {
        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
            let own = [
                key(
                    "partitions",
                    Shape::Count(1, MAX_PARTITIONS),
                    "The number of partitions. Their routing keys are `0`, `1` and so on.",
                )
                .with_example("3"),
                key(
                    "bindingKeys",
                    Shape::NonEmptyList(&Shape::RoutingKey),
                    "The routing keys of the partitions, in order, instead of `partitions`.",
                )
                .with_example("[amer, emea, apac]"),
            ];
            own.into_iter().chain(stream_keys()).collect()
        });
        &KEYS
    }),
    external: &[],
    is_queue: false,
};

const ENTRY: Shape = Shape::Object(&SUPER_STREAM_ENTRY);

/// The document key that declares super streams.
pub(super) const KEY: Key = key(
    SECTION,
    Shape::Map(&ENTRY),
    "The super streams, by name. Each is a direct exchange with one stream per partition, as `rabbitmq-streams \
     add_super_stream` creates it. Requires `partitions` or `bindingKeys`; the other keys apply to each stream. `defaults` do \
     not apply.",
)
.with_example("{invoices: {partitions: 3, maxAge: 7D}}");

/// Adds the exchange, the streams and the bindings for each super stream to the sections of a checked document.
pub(super) fn expand(document: &mut Node, diagnostics: &mut Diagnostics) {
    let Some(section) = document.get(SECTION).cloned() else { return };
    let (mut exchanges, mut all_streams) = (Vec::new(), Vec::new());
    for entry in section.entries() {
        let Some(partitions) = partitions(entry, diagnostics) else { continue };
        let name = entry.key.as_str();
        let at = entry.at;
        let arguments = table([(SUPER_STREAM, Value::Boolean(true))], at);
        let exchange = table([("type", text("direct")), ("arguments", arguments)], at);
        exchanges.push(Entry { key: name.to_owned(), at, node: node(exchange, at) });
        let own = |it: &&Entry| !["partitions", "bindingKeys"].contains(&it.key.as_str());
        let keys: Vec<Entry> = entry.node.entries().iter().filter(own).cloned().collect();
        let mut streams = Vec::new();
        for (order, partition) in (0..).zip(partitions) {
            let order = table([(PARTITION_ORDER, Value::Integer(order))], at);
            let binding = [("exchange", text(name)), ("routingKey", text(&partition)), ("arguments", order)];
            let bindings = Value::List(vec![node(table(binding, at), at)]);
            let Value::Table(mut stream) = table([("type", text("stream")), ("bindings", bindings)], at) else {
                continue;
            };
            stream.extend(keys.iter().cloned());
            streams.push(Entry { key: format!("{name}-{partition}"), at, node: node(Value::Table(stream), at) });
        }
        all_streams.push(Entry { key: name.to_owned(), at, node: node(Value::Table(streams), at) });
    }
    add(document, "exchanges", exchanges);
    add(document, STREAMS, all_streams);
}

/// Returns the streams for each super stream in a converted document.
pub(super) fn streams(document: &Node) -> impl Iterator<Item = (&str, &[Entry])> {
    let families = document.get(STREAMS).map_or(&[][..], Node::entries).iter();
    families.map(|family| (family.key.as_str(), family.node.entries()))
}

/// Returns the routing keys of the partitions, in order. Returns `None`, and reports an error, if the entry has no
/// valid partitions.
fn partitions(entry: &Entry, diagnostics: &mut Diagnostics) -> Option<Vec<String>> {
    let name = &entry.key;
    let (count, keys) = (entry.node.entry("partitions"), entry.node.entry("bindingKeys"));
    let keys: Vec<String> = match (count, keys) {
        (Some(count), Some(keys)) => {
            let message = format!("super stream `{name}` has both `partitions` and `bindingKeys`");
            let diagnostic = Diagnostic::error("set-twice", message, keys.at).also(count.at, "also set here");
            diagnostics.push(diagnostic.hint("keep one of the two"));
            return None;
        }
        (None, None) => {
            let message = format!("super stream `{name}` has neither `partitions` nor `bindingKeys`");
            let hint = "add `partitions: 3` for numbered partitions, or `bindingKeys: […]` for named partitions";
            diagnostics.push(Diagnostic::error("missing-key", message, entry.at).hint(hint));
            return None;
        }
        (Some(Entry { node: Node { value: Value::Integer(count), .. }, .. }), None) => {
            (0..*count).map(|index| index.to_string()).collect()
        }
        // `check` has already reported an invalid number.
        (Some(_), None) => return None,
        (None, Some(keys)) => {
            let mut seen: BTreeMap<&str, Location> = BTreeMap::new();
            for item in keys.node.items() {
                let key = item.text()?;
                if let Some(first) = seen.insert(key, item.at) {
                    let message = format!("duplicate binding key `{key}` in super stream `{name}`");
                    let diagnostic = Diagnostic::error("set-twice", message, item.at).also(first, "first set here");
                    diagnostics.push(diagnostic.hint("remove one of the two"));
                    return None;
                }
            }
            keys.node.items().iter().filter_map(|item| Some(item.text()?.to_owned())).collect()
        }
    };
    if let Some(longest) = keys.iter().map(|key| name.len() + 1 + key.len()).max().filter(|it| *it > MAX_NAME_BYTES) {
        let message =
            format!("a stream in super stream `{name}` has a name of {longest} bytes; the maximum is {MAX_NAME_BYTES}");
        diagnostics.push(Diagnostic::error("name", message, entry.at).hint("use a shorter name"));
        return None;
    }
    Some(keys)
}

/// Adds entries to a section of a document.
fn add(document: &mut Node, section: &str, entries: Vec<Entry>) {
    let at = document.at;
    let Value::Table(sections) = &mut document.value else { return };
    let known = sections.iter_mut().find(|entry| entry.key == section);
    match known {
        Some(Entry { node: Node { value: Value::Table(known), .. }, .. }) => known.extend(entries),
        Some(_) | None => {
            sections.retain(|entry| entry.key != section);
            sections.push(Entry { key: section.to_owned(), at, node: node(Value::Table(entries), at) });
        }
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn table<const N: usize>(values: [(&str, Value); N], at: Location) -> Value {
    let entry = |(key, value): (&str, Value)| Entry { key: key.to_owned(), at, node: node(value, at) };
    Value::Table(values.into_iter().map(entry).collect())
}

fn node(value: Value, at: Location) -> Node {
    Node { value, at, used_at: None, written: None }
}
