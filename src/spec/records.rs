//! Defines the keys that declare records, and converts their values to records. The table of record kinds determines
//! the keys and the conversion.

use super::convert::{declared_twice, value_of, with_variants_hint};
use super::diagnostic::{Diagnostic, Diagnostics};
use super::node::{Entry, Location, Node, Sourced, Value};
use super::record_fields::{field_key, members};
use super::shape::{Key, Keys, Object, Shape, key};
use super::spec_types::{RecordSpec, Spec};
use super::{links, secrets};
use crate::model::naming::is_shovel;
use crate::model::record_kinds::{
    FieldShape, Layout, Place, RECORD_KINDS, RecordField, RecordRow, RecordScope, SOURCE, Section,
};
use crate::model::{ArgumentValue, ObjectId, Record, RecordId, RecordKind, VhostName};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// An entry in a document that declares a record, or several settings that are records.
pub(super) struct Declaration<'a> {
    /// The key without the setting; empty if records of this kind have no names.
    pub(super) key: Vec<&'a str>,
    /// The position of the last segment of the key.
    pub(super) at: Location,
    /// The value.
    node: &'a Node,
}

/// Returns the entries that declare records of a kind. Returns `None` if the document does not contain the section for
/// the kind. For [`Place::Entry`], also returns `None` if the section has entries, but none of them contains the key.
pub(super) fn declarations<'a>(row: &RecordRow, document: &'a Node) -> Option<Vec<Declaration<'a>>> {
    let named = |entry: &'a Entry| Declaration { key: vec![&*entry.key], at: entry.at, node: &entry.node };
    match row.place {
        Place::Section => {
            let mut declared: Vec<_> = document.get(row.section)?.entries().iter().map(named).collect();
            for _ in row.key.iter().skip(1) {
                let nested = declared.into_iter().flat_map(|Declaration { key, node, .. }| {
                    let entry = move |entry: &'a Entry| {
                        let key = key.iter().copied().chain([&*entry.key]).collect();
                        Declaration { key, at: entry.at, node: &entry.node }
                    };
                    node.entries().iter().map(entry)
                });
                declared = nested.collect();
            }
            Some(declared)
        }
        Place::Vhost(name) => {
            let entry = document.get("vhost")?.entry(name)?;
            Some(vec![Declaration { key: Vec::new(), at: entry.at, node: &entry.node }])
        }
        Place::Entries(section) => Some(document.get(section.name)?.entries().iter().map(named).collect()),
        Place::Entry(section, key) => {
            let entries = document.get(section.name)?.entries();
            if !entries.is_empty() && entries.iter().all(|entry| entry.node.get(key).is_none()) {
                return None;
            }
            Some(
                entries
                    .iter()
                    .filter_map(|entry| Some(Declaration { node: entry.node.get(key)?, ..named(entry) }))
                    .collect(),
            )
        }
    }
}

/// Returns the records that `removed` lists.
pub(super) fn removed_records(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Sourced<ObjectId>> {
    let names = |row: &RecordRow| node.get(row.section).map_or(&[][..], Node::items);
    let listed = RECORD_KINDS.iter().flat_map(|row| names(row).iter().map(move |name| (row, name)));
    let mut removed = Vec::new();
    for (row, node) in listed {
        let Some(name) = node.text() else { continue };
        report_reserved(row, Some(name), node.at, diagnostics);
        removed.push(Sourced::new(ObjectId::Record(RecordId::named(row.kind, name)), node.at));
    }
    removed
}

/// Adds the records of a document to the spec.
pub(super) fn read(document: &Node, spec: &mut Spec, diagnostics: &mut Diagnostics) {
    for row in RECORD_KINDS {
        let Some(declarations) = declarations(row, document) else { continue };
        let names = spec.sections.entry(row.kind).or_default();
        names.extend(declarations.iter().map(|it| it.key.first().copied().unwrap_or_default().to_owned()));
        for Declaration { key, at, node } in declarations {
            report_reserved(row, key.first().copied(), at, diagnostics);
            match row.kind {
                RecordKind::User => secrets::check_user(node, diagnostics),
                RecordKind::Shovel => links::check_shovel(node, diagnostics),
                RecordKind::Upstream => links::check_password(node, diagnostics),
                RecordKind::OperatorPolicy
                | RecordKind::VhostLimit
                | RecordKind::UserLimit
                | RecordKind::GlobalParameter
                | RecordKind::Permission
                | RecordKind::TopicPermission
                | RecordKind::UpstreamSet
                | RecordKind::Parameter
                | RecordKind::DeletionProtection => {}
            }
            for record in records(row, &key, at, node, &spec.vhost.value) {
                let id = record.record.id.clone();
                match spec.records.get(&id) {
                    // `check_flags` reports an error if the values differ.
                    Some(_) if row.key.is_empty() && matches!(row.layout, Layout::Value(_)) => {}
                    Some(first) => diagnostics.push(declared_twice(row.word, &id.key.join(" "), record.at, first.at)),
                    None => drop(spec.records.insert(id, record)),
                }
            }
        }
    }
}

/// Reports vhost flags that two documents set to different values.
pub(super) fn check_flags(documents: &[Node], diagnostics: &mut Diagnostics) {
    for row in RECORD_KINDS.iter().filter(|row| matches!(row.layout, Layout::Value(_))) {
        let Place::Vhost(key) = row.place else { continue };
        let values = documents.iter().filter_map(|document| document.get("vhost")?.get(key));
        let mut first: Option<&Node> = None;
        for node in values.filter(|node| node.boolean().is_some()) {
            let first = *first.get_or_insert(node);
            if first.boolean() != node.boolean() {
                let message = format!("two documents set different values for the vhost's `{key}`");
                let diagnostic = Diagnostic::error("set-twice", message, node.at).also(first.at, "first set here");
                diagnostics.push(diagnostic.hint(with_variants_hint("set it once", node.at, first.at)));
            }
        }
    }
}

/// Reports a record whose name is reserved.
fn report_reserved(row: &RecordRow, name: Option<&str>, at: Location, diagnostics: &mut Diagnostics) {
    if let Some(name) = name.filter(|name| row.kind == RecordKind::Shovel && is_shovel(name)) {
        let message = format!("the {} `{name}` is reserved: topo itself creates shovels with this prefix", row.word);
        diagnostics.push(Diagnostic::error("name", message, at).hint("use a different name"));
    }
    let Some(name) = name.filter(|name| row.reserved.contains(name)) else { return };
    if row.kind == RecordKind::Parameter {
        let message = format!("`{}` cannot contain the `{name}` component", row.section);
        let section = match name {
            "policy" => "policies",
            "vhost-limits" => "vhost.limits",
            name => RECORD_KINDS.iter().find(|row| row.component == name).map_or("", |row| row.section),
        };
        diagnostics.push(Diagnostic::error("name", message, at).hint(format!("use the `{section}` key")));
        return;
    }
    let message = format!("the {} `{name}` is reserved", row.word);
    let hint = match name {
        "cluster_name" => "remove the entry; to set the cluster name, run `rabbitmqctl set_cluster_name NAME`",
        _ => "remove the entry: RabbitMQ itself sets this parameter",
    };
    diagnostics.push(Diagnostic::error("name", message, at).hint(hint));
}

/// Returns the records of one entry: a single record, or one record for each setting.
fn records(row: &RecordRow, key: &[&str], at: Location, node: &Node, vhost: &VhostName) -> Vec<RecordSpec> {
    let id = |setting: Option<&str>| {
        let key = key.iter().copied().chain(setting).map(str::to_owned).collect();
        RecordId { kind: row.kind, key }
    };
    match row.layout {
        Layout::Fields(fields) => match row.shorthand.filter(|_| node.text().is_some()) {
            Some(shorthand) => {
                let value = |field: &RecordField| (field.name.to_owned(), shorthand.value.into());
                let record = Record::new(id(None), fields.iter().map(value).collect());
                record.map(|record| RecordSpec { at, record, places: BTreeMap::new() }).into_iter().collect()
            }
            None => record(id(None), fields, at, node, vhost).into_iter().collect(),
        },
        Layout::Settings(settings) => {
            let settings = settings.iter().filter_map(|setting| Some((setting, node.entry(setting.key)?)));
            let record = |(setting, entry): (&RecordField, &Entry)| {
                let fields = BTreeMap::from([("value".to_owned(), value_of(&entry.node))]);
                let record = Record::new(id(Some(setting.name)), fields)?;
                Some(RecordSpec { at: entry.at, record, places: BTreeMap::new() })
            };
            settings.filter_map(record).collect()
        }
        Layout::Value([field]) => {
            let value = if field.shape == FieldShape::Members { members(node) } else { value_of(node) };
            let record = Record::new(id(None), BTreeMap::from([("value".to_owned(), value)]));
            record.map(|record| RecordSpec { at, record, places: BTreeMap::new() }).into_iter().collect()
        }
    }
}

fn record(id: RecordId, of_kind: &[RecordField], at: Location, table: &Node, vhost: &VhostName) -> Option<RecordSpec> {
    let mut fields = BTreeMap::new();
    let mut places: BTreeMap<String, Location> = BTreeMap::new();
    for field in of_kind {
        let table = if field.group.is_empty() { Some(table) } else { table.get(field.group) };
        let node = table.and_then(|table| table.get(field.key));
        let Some(node) = node.filter(|node| !matches!(node.value, Value::Null(_))) else {
            if links::has_default_uri(id.kind.row(), field) {
                fields.insert(field.name.to_owned(), links::default_uri(vhost));
            }
            continue;
        };
        let value = value_of(node);
        places.insert(field.name.to_owned(), node.at);
        if let ArgumentValue::Table(_) = value {
            places.extend(node.entries().iter().map(|key| (key.key.clone(), key.at)));
        }
        fields.insert(field.name.to_owned(), value);
    }
    Some(RecordSpec { at, record: Record::new(id, fields)?, places })
}

/// The mappings that contain the settings of each kind, in the order of [`RECORD_KINDS`].
static OBJECTS: LazyLock<Vec<Object>> = LazyLock::new(|| RECORD_KINDS.iter().map(object).collect());

/// The words that each kind accepts instead of a mapping, in the order of [`RECORD_KINDS`].
static WORDS: LazyLock<Vec<Option<Shape>>> =
    LazyLock::new(|| RECORD_KINDS.iter().map(|row| Some(Shape::OneOf(row.shorthand?.words))).collect());

/// References to [`OBJECTS`], in the same order.
static TABLES: LazyLock<Vec<&'static Object>> = LazyLock::new(|| OBJECTS.iter().collect());

/// The shape of a record's value for each kind, in the order of [`RECORD_KINDS`].
static VALUES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let shape = |((row, table), words): ((&RecordRow, &'static &'static Object), &'static Option<Shape>)| match (
        row.layout, words,
    ) {
        (Layout::Fields(_) | Layout::Settings(_), Some(words)) => Shape::Either(words, std::slice::from_ref(table)),
        (Layout::Fields(_) | Layout::Settings(_), None) => Shape::Object(table),
        (Layout::Value([field]), _) => field.shape.into(),
    };
    RECORD_KINDS.iter().zip(TABLES.iter()).zip(WORDS.iter()).map(shape).collect()
});

/// The shape of an entry for each kind, in the order of [`RECORD_KINDS`]: the value of a record, or a mapping that
/// contains such values.
static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let shape = |(row, value): (&RecordRow, &'static Shape)| match row.key {
        [_, _] => Shape::FreeMap(value),
        _ => *value,
    };
    RECORD_KINDS.iter().zip(VALUES.iter()).map(shape).collect()
});

/// The sections whose entries contain records, each with the scope of its kinds and the mapping that describes an
/// entry.
static ENTRIES: LazyLock<Vec<(&Section, RecordScope, Object)>> = LazyLock::new(|| {
    let mut entries: Vec<(&Section, RecordScope, Object)> = Vec::new();
    for (row, shape) in RECORD_KINDS.iter().zip(SHAPES.iter()) {
        let (section, new) = match row.place {
            Place::Entry(section, name) => (section, vec![key(name, *shape, row.doc)]),
            Place::Entries(section) => (section, row.settings().iter().map(field_key).collect()),
            Place::Section | Place::Vhost(_) => continue,
        };
        match entries.iter_mut().find(|(known, ..)| *known == section) {
            // The keys of the entries themselves come first.
            Some((_, _, Object { keys: Keys::Built(keys), .. })) => drop(keys.splice(0..0, new)),
            Some(_) | None => entries.push((section, row.scope, entry(section, new))),
        }
    }
    entries
});

/// The shapes of [`ENTRIES`], in the same order.
static ENTRY_SHAPES: LazyLock<Vec<Shape>> =
    LazyLock::new(|| ENTRIES.iter().map(|(.., object)| Shape::Object(object)).collect());

const NAMES: Shape = Shape::List(&Shape::Name);

fn object(row: &'static RecordRow) -> Object {
    Object { what: row.what, name: row.schema, keys: Keys::Built(keys_of(row)), external: &[], is_queue: false }
}

/// The mappings, such as `source`, that group fields inside an entry, each with the kind of its record.
static GROUPS: LazyLock<Vec<(RecordKind, &'static str, Object)>> = LazyLock::new(|| {
    let mut groups: Vec<(RecordKind, &'static str, Object)> = Vec::new();
    for row in RECORD_KINDS {
        for field in row.settings().iter().filter(|field| !field.group.is_empty()) {
            let (what, name) = match field.group {
                SOURCE => ("the source of a shovel", "ShovelSource"),
                _ => ("the destination of a shovel", "ShovelDestination"),
            };
            let is_same =
                |(kind, group, _): &&mut (RecordKind, &str, Object)| (*kind, *group) == (row.kind, field.group);
            match groups.iter_mut().find(is_same) {
                Some((_, _, Object { keys: Keys::Built(keys), .. })) => keys.push(field_key(field)),
                Some(_) | None => {
                    let keys = Keys::Built(vec![field_key(field)]);
                    groups.push((row.kind, field.group, Object { what, name, keys, external: &[], is_queue: false }));
                }
            }
        }
    }
    groups
});

/// Returns the keys of an entry: first the mappings that group fields, then the other fields.
fn keys_of(row: &RecordRow) -> Vec<Key> {
    let groups = GROUPS.iter().filter(|(kind, ..)| *kind == row.kind);
    let group = |(_, group, object): &'static (RecordKind, &'static str, Object)| {
        let (doc, example) = match *group {
            SOURCE => ("The source of the messages.", "{queue: orders.work}"),
            _ => ("The destination of the messages.", "{exchange: orders}"),
        };
        key(group, Shape::Object(object), doc).required().with_example(example)
    };
    let own = row.settings().iter().filter(|field| field.group.is_empty()).map(field_key);
    groups.map(group).chain(own).collect()
}

fn entry(section: &'static Section, keys: Vec<Key>) -> Object {
    let (what, name) = (section.what, section.schema);
    Object { what, name, keys: Keys::Built(keys), external: &[], is_queue: false }
}

/// Returns the top-level keys that declare records in a document with this scope.
pub(super) fn sections(scope: RecordScope) -> impl Iterator<Item = Key> {
    let rows = RECORD_KINDS.iter().zip(SHAPES.iter());
    let rows = rows.filter(move |(row, _)| row.scope == scope && row.place == Place::Section);
    let whole = rows.map(|(row, shape)| key(row.section, Shape::Map(shape), row.doc));
    let entries = ENTRIES.iter().zip(ENTRY_SHAPES.iter()).filter(move |((_, of, _), _)| *of == scope);
    let entries = entries
        .map(|((section, ..), shape)| key(section.name, Shape::Map(shape), section.doc).with_example(section.example));
    whole.chain(entries)
}

/// Returns the keys of the `vhost` mapping that declare records.
pub(super) fn vhost_keys() -> impl Iterator<Item = Key> {
    RECORD_KINDS.iter().zip(SHAPES.iter()).filter_map(|(row, shape)| match row.place {
        Place::Vhost(name) => Some(key(name, *shape, row.doc)),
        Place::Section | Place::Entry(..) | Place::Entries(_) => None,
    })
}

/// Returns the keys under `removed` that list the names of records in a document with this scope.
pub(super) fn removed_sections(scope: RecordScope) -> impl Iterator<Item = Key> {
    let rows = RecordRow::of_scope(scope).filter(|row| row.is_removable());
    rows.map(|row| key(row.section, NAMES, row.removed_doc))
}
