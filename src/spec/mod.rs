//! Parses YAML into one [`Spec`] for each vhost and one for the cluster, with positions. The caller reads files and the
//! environment, `expand` expands short forms, and `lint` checks style.
//!
//! `yaml` parses the text into a tree, and `variables` substitutes variables. `check` and `value` check the tree
//! against the grammar in `keys`. `read` and `queue` convert the tree to spec types, and `references` checks names.
//! Every step reports all problems and omits invalid parts, so that one run shows all errors in all files.

mod check;
mod cluster_keys;
mod convert;
mod definitions_file;
mod diagnostic;
mod environment_keys;
mod environments;
mod explained;
mod for_each;
mod hints;
mod keys;
mod links;
mod lint_keys;
mod node;
mod notation;
mod placeholders;
mod plain_yaml;
mod problem;
mod queue;
mod queue_keys;
mod read;
mod record_fields;
mod records;
mod references;
mod retry;
mod retry_layers;
mod rule_names;
mod scalar;
pub mod schema;
mod schema_values;
mod secrets;
mod shape;
mod shared_keys;
mod spec_types;
mod super_streams;
mod syntax;
#[cfg(test)]
mod tests;
mod thresholds;
mod units;
mod unknown_keys;
mod uris;
mod value;
mod variables;
mod yaml;

pub(crate) use check::check as check_node;
pub(crate) use convert::value_of;
pub use definitions_file::{guess_vhosts, is_spec};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use environments::{Environment, environments, environments_with_errors};
pub use explained::{code_names, code_page, key_names, key_of, key_page};
pub(crate) use hints::closest;
pub use lint_keys::Level;
pub(crate) use node::{Entry, Node, Value};
pub use node::{Keyed, Location, SourceFile, Sourced};
pub use notation::Allow;
pub use notation::Notation;
pub(crate) use read::{StandInObjects, read_stand_ins};
pub(crate) use retry_layers::is_linear;
pub(crate) use shape::{Forms, Key, Keys, Object, Shape, key};
pub(crate) use shared_keys::{BINDINGS, QUEUE_TYPES};
pub use spec_types::{
    BindingSpec, DeadLetter, DeadLetterQueueSpec, ExchangeSpec, PolicySpec, QueueSpec, RecordSpec, RetryPolicySpec,
    RetrySpec, Schedule, SetBy, Setting, Spec, Wiring,
};
pub use thresholds::ThresholdsSpec;
pub use variables::Variables;
pub(crate) use yaml::documents;

use crate::model::requirements::Requirements;
use crate::model::{Glob, QueueType, RecordKind, UserScope, Vhost, VhostName};
use cluster_keys::CLUSTER_DOCUMENT;
use references::Declared;
use std::collections::{BTreeMap, BTreeSet};

/// The specs of a run.
#[derive(Clone, Debug, Default)]
pub struct Specs {
    /// The spec of the cluster, if a document describes it. Its vhost is [`VhostName::cluster`].
    pub cluster: Option<Spec>,
    /// The spec of each vhost, sorted by vhost name.
    pub vhosts: Vec<Spec>,
}

/// All documents of one vhost, or of the cluster.
#[derive(Default)]
struct DocumentGroup {
    declared: Declared,
    documents: Vec<Node>,
    allows: Vec<Allow>,
    notation: Notation,
}

/// Creates a spec that contains only the settings of the vhost or the cluster itself.
type EmptySpec = fn(&[SourceFile], &[Node], &mut Diagnostics) -> Spec;

/// Parses files into one spec for each vhost, sorted by vhost name, and one for the cluster if a document describes it.
///
/// # Errors
///
/// Returns the problems in all files, sorted by position: invalid YAML, violations of the grammar, conflicting settings
/// and declarations, and references to unknown objects.
pub fn parse(files: &[SourceFile], variables: &Variables) -> Result<Specs, Diagnostics> {
    let (specs, diagnostics) = parse_all(files, variables);
    diagnostics.or_value(specs)
}

/// Parses files. Returns all problems, and the specs without their invalid parts.
pub fn parse_all(files: &[SourceFile], variables: &Variables) -> (Specs, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let mut vhosts: BTreeMap<String, DocumentGroup> = BTreeMap::new();
    let mut cluster: Option<DocumentGroup> = None;
    let mut are_all_known = true;
    let mut declared_environments = Vec::new();
    let mut budget = placeholders::MAX_EXPANDED;
    for (index, file) in files.iter().enumerate() {
        if let Some(diagnostic) = definitions_file::refusal(index, file) {
            diagnostics.push(diagnostic);
            are_all_known = false;
            continue;
        }
        let Some(documents) = documents(index, file, &mut diagnostics) else {
            are_all_known = false;
            continue;
        };
        let mut allows = notation::allows(index, file, &documents, &mut diagnostics);
        let lines: Vec<usize> = documents.iter().skip(1).map(|document| document.at.line).collect();
        for (position, mut document) in documents.into_iter().enumerate() {
            let end = lines.get(position).map_or(allows.len(), |next| allows.partition_point(|it| it.line < *next));
            let allows_of_document: Vec<Allow> = allows.drain(..end).collect();
            if let Value::Table(entries) = &mut document.value {
                // Keys that start with `x-` only define anchors. The parser has already expanded the aliases.
                entries.retain(|entry| !entry.key.starts_with("x-"));
            }
            if environments::is_environments(&document) {
                declared_environments.extend(environments::read(&document, &mut diagnostics));
                continue;
            }
            variables::substitute(&mut document, variables, &mut diagnostics);
            let before = diagnostics.len();
            let templates = for_each::expand(&mut document, &mut budget, &mut diagnostics);
            let is_cluster = document.get("vhost").is_none() && document.get("cluster").is_some();
            let shape = Shape::Object(if is_cluster { &CLUSTER_DOCUMENT } else { &keys::DOCUMENT });
            let checked = check::check(&document, shape, "this document", document.at, &mut diagnostics);
            // Every item of `forEach` repeats the problems in the entry.
            diagnostics.dedup_by_position(before, &templates);
            are_all_known &= checked.as_ref().is_some_and(|checked| is_cluster || vhost_name(checked).is_some());
            if let Some(mut checked) = checked {
                super_streams::expand(&mut checked, &mut diagnostics);
                let group = match is_cluster {
                    true => cluster.get_or_insert_default(),
                    // topo also reads a document without a vhost, to report its other errors.
                    false => vhosts.entry(vhost_name(&checked).map_or("", |(name, _)| name).to_owned()).or_default(),
                };
                group.declared.add(&document);
                if document.get(super_streams::SECTION).is_some() {
                    group.declared.add(&checked);
                }
                group.notation.add(&document, &file.text);
                group.documents.push(checked);
                group.allows.extend(allows_of_document);
            }
        }
    }
    environments::check_all(&declared_environments, &mut diagnostics);
    let mut read_group = |group: DocumentGroup, users: UserScope, empty: EmptySpec| {
        let DocumentGroup { mut declared, documents, allows, notation } = group;
        if !are_all_known {
            declared.set_unknown();
        }
        let mut spec = Spec { users, allows, notation, ..empty(files, &documents, &mut diagnostics) };
        // Retry policies are read before queues, because a queue can use a retry policy from a later document.
        for document in &documents {
            retry::read_policies(document, &mut spec, &mut diagnostics);
        }
        for document in &documents {
            read::document(document, &mut spec, &mut diagnostics);
        }
        references::check(&spec, &declared, &mut diagnostics);
        spec
    };
    let mut cluster = cluster.map(|group| read_group(group, UserScope::default(), empty_cluster_spec));
    let users = cluster.as_ref().map(user_scope).unwrap_or_default();
    let vhosts: Vec<Spec> = vhosts.into_values().map(|group| read_group(group, users.clone(), empty_spec)).collect();
    if let Some(cluster) = &mut cluster {
        cluster.users.with_permissions = users_with_permissions(&vhosts);
        secrets::refuse_permissions_of_removed_users(cluster, &vhosts, &mut diagnostics);
    }
    (Specs { cluster, vhosts }, diagnostics)
}

/// Returns the users that the cluster spec declares, manages, protects and ignores.
fn user_scope(cluster: &Spec) -> UserScope {
    let globs = |globs: &[Sourced<Glob>]| globs.iter().map(|glob| glob.value.clone()).collect();
    let of_users = cluster.sections.iter().filter(|(kind, _)| {
        let row = kind.row();
        row.kind == RecordKind::User || row.owners.is_some()
    });
    UserScope {
        declared: of_users.flat_map(|(_, names)| names.iter().cloned()).collect(),
        owns: globs(&cluster.owns),
        protect: globs(&cluster.protect),
        ignore: globs(&cluster.ignore),
        with_permissions: BTreeSet::new(),
    }
}

/// Returns the users for whom the vhost specs declare permissions.
fn users_with_permissions(vhosts: &[Spec]) -> BTreeSet<String> {
    let records = vhosts.iter().flat_map(|vhost| vhost.records.keys());
    records.filter(|id| id.kind.row().is_named_after_users()).filter_map(|id| id.key.first().cloned()).collect()
}

fn vhost_name(document: &Node) -> Option<(&str, Location)> {
    let vhost = document.get("vhost")?;
    let name = if vhost.text().is_some() { vhost } else { vhost.get("name")? };
    Some((name.text()?, name.at))
}

/// Creates the spec of a vhost that contains only the settings of the vhost itself.
fn empty_spec(files: &[SourceFile], documents: &[Node], diagnostics: &mut Diagnostics) -> Spec {
    let (name, at) = documents.first().and_then(vhost_name).unwrap_or(("", Location::default()));
    let vhosts = || documents.iter().filter_map(|document| document.get("vhost"));
    records::check_flags(documents, diagnostics);
    let default_queue_type = single_value("defaultQueueType", vhosts(), diagnostics)
        .and_then(|word| QueueType::named(&word.value).map(|value| Sourced::new(value, word.at)));
    Spec {
        files: files.iter().map(|file| file.name.clone()).collect(),
        vhost: Sourced::new(VhostName::new(name), at),
        cluster_name: None,
        requires: Requirements::default(),
        description: single_value("description", vhosts(), diagnostics),
        tags: tags(vhosts(), diagnostics),
        default_queue_type,
        owns: Vec::new(),
        protect: Vec::new(),
        ignore: Vec::new(),
        users: UserScope::default(),
        removed: Vec::new(),
        retry_policies: BTreeMap::new(),
        retry_uses: Vec::new(),
        exchanges: BTreeMap::new(),
        queues: BTreeMap::new(),
        dead_letter_queues: BTreeMap::new(),
        bindings: BTreeMap::new(),
        policies: BTreeMap::new(),
        super_streams: BTreeMap::new(),
        records: BTreeMap::new(),
        sections: BTreeMap::new(),
        lint: BTreeMap::new(),
        allows: Vec::new(),
        notation: Notation::default(),
    }
}

/// Creates the cluster spec with only the cluster name and the requirements.
fn empty_cluster_spec(files: &[SourceFile], documents: &[Node], diagnostics: &mut Diagnostics) -> Spec {
    let entries = || documents.iter().filter_map(|document| document.entry("cluster"));
    let at = entries().next().map(|entry| entry.at).unwrap_or_default();
    let cluster_name = single_value("name", entries().map(|entry| &entry.node), diagnostics);
    let requires = requirements(documents, diagnostics);
    let vhost = Sourced::new(VhostName::cluster(), at);
    Spec { vhost, cluster_name, requires, ..empty_spec(files, &[], diagnostics) }
}

/// Adds to the cluster spec the cluster name that the selected environment requires. Creates the cluster spec if there
/// is none. Reports an error if the spec requires a different name.
pub fn cluster_of_environment(
    cluster: Option<Spec>,
    name: &Sourced<String>,
    files: &[SourceFile],
    diagnostics: &mut Diagnostics,
) -> Spec {
    let mut cluster = cluster.unwrap_or_else(|| empty_cluster_spec(files, &[], diagnostics));
    match &cluster.cluster_name {
        Some(known) if known.value != name.value => {
            let message =
                format!("the environment requires cluster `{}`, but the spec requires `{}`", name.value, known.value);
            let diagnostic = Diagnostic::error("set-twice", message, known.at).also(name.at, "set here");
            diagnostics.push(diagnostic.hint("remove one of the two names"));
        }
        Some(_) => {}
        None => cluster.cluster_name = Some(name.clone()),
    }
    cluster
}

/// Returns the merged requirements of all cluster documents. Reports an invalid version range.
fn requirements(documents: &[Node], diagnostics: &mut Diagnostics) -> Requirements {
    let nodes = || documents.iter().filter_map(|document| document.get("requires"));
    let version = single_value("version", nodes(), diagnostics).and_then(|text| {
        let range = text.value.parse();
        if let Err(expected) = range {
            let message = format!("invalid version range {:?}", text.value);
            diagnostics.push(Diagnostic::error("wrong-value", message, text.at).hint(expected));
        }
        range.ok()
    });
    let names = |key: &str| {
        let names = nodes().flat_map(|node| node.get(key).map_or(&[][..], Node::items));
        names.filter_map(Node::text).map(str::to_owned).collect()
    };
    Requirements { version, plugins: names("plugins"), feature_flags: names("featureFlags") }
}

/// Returns the merged tags of all documents. Returns `None` if no document sets tags. Reports tags that the broker
/// would change, because it splits tags at commas and trims whitespace.
fn tags<'a>(nodes: impl Iterator<Item = &'a Node>, diagnostics: &mut Diagnostics) -> Option<BTreeSet<String>> {
    let mut tags: Option<BTreeSet<String>> = None;
    for node in nodes.filter_map(|node| node.get("tags")) {
        let tags = tags.get_or_insert_default();
        for item in node.items() {
            let Some(tag) = item.text() else { continue };
            if !Vhost::is_valid_tag(tag) {
                let message = format!("invalid tag {tag:?}");
                let hint =
                    "a tag has 1 to 255 characters, contains no comma, and does not begin or end with whitespace";
                diagnostics.push(Diagnostic::error("wrong-value", message, item.at).hint(hint));
            }
            tags.insert(tag.to_owned());
        }
    }
    tags
}

/// Returns the value of a key that several documents can set. Reports documents that set different values.
fn single_value<'a>(
    key: &str,
    nodes: impl Iterator<Item = &'a Node>,
    diagnostics: &mut Diagnostics,
) -> Option<Sourced<String>> {
    let mut first: Option<Sourced<String>> = None;
    for node in nodes.filter_map(|node| node.get(key)) {
        let Some(text) = node.text() else { continue };
        match &first {
            None => first = Some(Sourced::new(text.to_owned(), node.at)),
            Some(first) if first.value == text => {}
            Some(first) => {
                let of = match key {
                    "name" => "the cluster's `name`".to_owned(),
                    "version" => "`requires.version`".to_owned(),
                    key => format!("the vhost's `{key}`"),
                };
                let message = format!("two documents set different values for {of}");
                let diagnostic = Diagnostic::error("set-twice", message, node.at).also(first.at, "first set here");
                diagnostics.push(diagnostic.hint(convert::with_variants_hint("set it once", node.at, first.at)));
            }
        }
    }
    first
}
