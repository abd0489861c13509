//! Parses YAML into one [`Spec`] for each vhost, with positions. The caller reads files and the environment, `expand`
//! expands short forms, and `lint` checks style.
//!
//! `yaml` parses the text into a tree, and `variables` substitutes variables. `check` and `value` check the tree
//! against the grammar of `keys`. `read` and `queue` convert it to types, and `references` looks up names. Every step
//! reports all problems and leaves out invalid parts, so that one run shows all errors of all files.

mod check;
mod convert;
mod definitions_file;
mod diagnostic;
mod explained;
mod hints;
mod keys;
mod lint_keys;
mod node;
mod notation;
mod plain_yaml;
mod queue;
mod queue_keys;
mod read;
mod records;
mod references;
mod retry;
mod retry_layers;
mod rule_names;
mod scalar;
pub mod schema;
mod schema_values;
mod shape;
mod shared_keys;
mod spec_types;
mod syntax;
#[cfg(test)]
mod tests;
mod units;
mod unknown_keys;
mod value;
mod variables;
mod yaml;

pub use definitions_file::{guess_vhosts, is_spec};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use explained::{code_names, code_page, key_names, key_of, key_page};
pub(crate) use hints::closest;
pub use lint_keys::Level;
pub use node::{Keyed, Location, SourceFile, Sourced};
pub use notation::Allow;
pub use notation::Notation;
pub(crate) use retry_layers::is_even;
pub use spec_types::{
    BindingSpec, DeadLetter, DeadLetterQueueSpec, ExchangeSpec, PolicySpec, QueueSpec, RecordSpec, RetryPolicySpec,
    RetrySpec, Schedule, SetBy, Setting, Spec, Wiring,
};
pub use variables::Variables;

use crate::model::{QueueType, VhostName};
use node::{Node, Value};
use references::Declared;
use shape::Shape;
use std::collections::BTreeMap;

/// All documents of one vhost.
#[derive(Default)]
struct OfVhost {
    declared: Declared,
    documents: Vec<Node>,
    allows: Vec<Allow>,
    notation: Notation,
}

/// Parses files into one spec for each vhost, in the order of the vhost names.
///
/// # Errors Returns the problems of all files in order: invalid YAML, violations of the grammar, and references to
/// unknown objects.
pub fn parse(files: &[SourceFile], variables: &Variables) -> Result<Vec<Spec>, Diagnostics> {
    let (specs, diagnostics) = parse_all(files, variables);
    diagnostics.or_value(specs)
}

/// Parses files as far as possible, and returns the specs without their invalid parts, together with all problems.
pub fn parse_all(files: &[SourceFile], variables: &Variables) -> (Vec<Spec>, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let mut vhosts: BTreeMap<String, OfVhost> = BTreeMap::new();
    let mut is_all_known = true;
    for (index, file) in files.iter().enumerate() {
        if let Some(diagnostic) = definitions_file::refused(index, file) {
            diagnostics.push(diagnostic);
            is_all_known = false;
            continue;
        }
        let Some(documents) = yaml::documents(index, file, &mut diagnostics) else {
            is_all_known = false;
            continue;
        };
        let mut allows = notation::allows(index, file, &documents, &mut diagnostics);
        let lines: Vec<usize> = documents.iter().skip(1).map(|document| document.at.line).collect();
        for (position, mut document) in documents.into_iter().enumerate() {
            let end = lines.get(position).map_or(allows.len(), |next| allows.partition_point(|it| it.line < *next));
            let its_own: Vec<Allow> = allows.drain(..end).collect();
            if let Value::Table(entries) = &mut document.value {
                // These keys contain anchors, which are already copied to where they are used.
                entries.retain(|entry| !entry.key.starts_with("x-"));
            }
            variables::substitute(&mut document, variables, &mut diagnostics);
            let shape = Shape::Object(&keys::DOCUMENT);
            let checked = check::check(&document, shape, "this document", document.at, &mut diagnostics);
            is_all_known &= checked.as_ref().and_then(vhost_name).is_some();
            if let Some(checked) = checked {
                // A document without a vhost is also read, to report its other errors.
                let name = vhost_name(&checked).map_or("", |(name, _)| name).to_owned();
                let of_vhost = vhosts.entry(name).or_default();
                of_vhost.declared.add(&document);
                of_vhost.notation.add(&document, &file.text);
                of_vhost.documents.push(checked);
                of_vhost.allows.extend(its_own);
            }
        }
    }
    let mut specs = Vec::new();
    for OfVhost { mut declared, documents, allows, notation } in vhosts.into_values() {
        if !is_all_known {
            declared.set_unknown();
        }
        let mut spec = Spec { allows, notation, ..empty_spec(files, &documents, &mut diagnostics) };
        // Before the queues, because a queue can use a policy of a later document.
        for document in &documents {
            retry::policies(document, &mut spec, &mut diagnostics);
        }
        for document in &documents {
            read::document(document, &mut spec, &mut diagnostics);
        }
        references::check(&spec, &declared, &mut diagnostics);
        specs.push(spec);
    }
    (specs, diagnostics)
}

fn vhost_name(document: &Node) -> Option<(&str, Location)> {
    let vhost = document.get("vhost")?;
    let name = if vhost.text().is_some() { vhost } else { vhost.get("name")? };
    Some((name.text()?, name.at))
}

/// Creates a spec with the settings of the vhost itself.
fn empty_spec(files: &[SourceFile], documents: &[Node], diagnostics: &mut Diagnostics) -> Spec {
    let (name, at) = documents.first().and_then(vhost_name).unwrap_or(("", Location::default()));
    let vhosts = || documents.iter().filter_map(|document| document.get("vhost"));
    let default_queue_type = single_value("defaultQueueType", vhosts(), diagnostics)
        .and_then(|word| QueueType::named(&word.value).map(|value| Sourced::new(value, word.at)));
    Spec {
        files: files.iter().map(|file| file.name.clone()).collect(),
        vhost: Sourced::new(VhostName::new(name), at),
        description: single_value("description", vhosts(), diagnostics),
        default_queue_type,
        owns: Vec::new(),
        protect: Vec::new(),
        ignore: Vec::new(),
        removed: Vec::new(),
        retry_policies: BTreeMap::new(),
        retry_uses: Vec::new(),
        exchanges: BTreeMap::new(),
        queues: BTreeMap::new(),
        dead_letter_queues: BTreeMap::new(),
        bindings: BTreeMap::new(),
        policies: BTreeMap::new(),
        records: BTreeMap::new(),
        sections: BTreeMap::new(),
        lint: BTreeMap::new(),
        allows: Vec::new(),
        notation: Notation::default(),
    }
}

/// Returns the value of a key that several documents can set; reports different values.
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
                let message = format!("two documents set a different `{key}` for the vhost");
                let diagnostic = Diagnostic::error("said-twice", message, node.at).also(first.at, "first here");
                diagnostics.push(diagnostic.hint(convert::with_variants_hint("set it once", node.at, first.at)));
            }
        }
    }
    first
}
