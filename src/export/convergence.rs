//! Exports a vhost: writes the spec, checks it, and simplifies it until its plan contains no changes.

use super::check::{self, Mismatch};
use super::document::{self, Comments, Document};
use super::left_out::{LeftOut, Reason};
use super::recognize::patterns::{GivenUp, Recognized};
use super::recognize::recognize;
use super::{CurrentVhost, choice, comments};
use crate::model::yaml::{self, Text, scalar};
use crate::model::{Glob, ObjectId, Topology};
use crate::plan::{InterruptedMigration, before_migrations};

/// An exported vhost.
#[derive(Clone, Debug)]
pub struct Export {
    /// The spec, a YAML document.
    pub text: String,
    /// The objects that are not in the spec.
    pub left_out: LeftOut,
    /// The interrupted migrations in the vhost.
    pub interrupted: Vec<InterruptedMigration>,
    /// The exported objects.
    pub topology: Topology,
}

/// The error if topo cannot write a spec whose plan contains no changes. This error indicates a bug in topo.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ExportError(String);

/// Exports a vhost's objects whose names match one of the globs. Without globs, exports all objects. Objects that an
/// interrupted migration changed are exported as they were before the migration.
///
/// # Errors
/// Returns an [`ExportError`] if the plan for the spec contains changes, and topo cannot simplify the spec any further.
/// No vhost is known to cause this error.
pub fn export(live: &CurrentVhost<'_>, globs: &[Glob]) -> Result<Export, ExportError> {
    let Some(before) = before_migrations(live.topology) else { return export_original(live, globs, None) };
    export_original(&CurrentVhost { topology: &before, ..*live }, globs, Some(live))
}

/// Exports `live`, which is the vhost before its interrupted migrations. `current` is the current vhost; `None` if
/// there are no interrupted migrations.
fn export_original(
    live: &CurrentVhost<'_>,
    globs: &[Glob],
    current: Option<&CurrentVhost<'_>>,
) -> Result<Export, ExportError> {
    let mut left_out = choice::find_left_out(live, globs);
    let mut given_up = GivenUp::default();
    loop {
        let kept = choice::select_kept(live, globs, &mut left_out);
        let recognized = recognize(live, &kept, &given_up);
        let document = |comments: Option<&Comments>| {
            let left_out = &left_out;
            Document { live, kept: &kept, recognized: &recognized, left_out, is_plain: false, comments }.text()
        };
        let text = document(None);
        let mismatches = match check::read(&text, live) {
            Ok(read) => {
                let mismatches = check::mismatches(&read, live, &kept, &recognized);
                if mismatches.is_empty() {
                    let comments = comments::generate(&recognized, &read, &text, live, &kept);
                    let text = with_header(text, document(Some(&comments)), &left_out, live);
                    let interrupted =
                        current.map_or_else(Vec::new, |current| check::interrupted_migrations(&read, current));
                    return Ok(Export { text, left_out, interrupted, topology: kept });
                }
                mismatches
            }
            Err(mismatches) => mismatches,
        };
        let before = (given_up.len(), left_out.len());
        mismatches
            .iter()
            .for_each(|mismatch| simplify(mismatch, live, &kept, &recognized, &mut given_up, &mut left_out));
        if before == (given_up.len(), left_out.len()) {
            let first = mismatches
                .first()
                .map_or_else(String::new, |mismatch| format!("{}: {:?}", mismatch.why, mismatch.causes));
            return Err(ExportError(first));
        }
    }
}

/// Returns the text with the comments, and with a header that lists the objects that are left out. Returns the plain
/// text if a comment would change the meaning of the spec, for example because the comment contains an unusual name.
fn with_header(plain: Text, with_comments: Text, left_out: &LeftOut, live: &CurrentVhost<'_>) -> String {
    let mut head = String::new();
    if !left_out.is_empty() {
        head.push_str("# Not exported:\n");
        for line in left_out.lines() {
            for line in yaml::wrap(&scalar::comment(&line), yaml::WIDTH - 4) {
                head.push_str(&format!("#   {line}\n"));
            }
        }
    }
    let full = with_comments.with_header(head);
    let expanded = |text: &Text| check::read(text, live).map(|read| read.expansion.topology).ok();
    if expanded(&full) == expanded(&plain) { full.text } else { plain.text }
}

/// Simplifies the export of the objects that cause a mismatch. Gives up the first recognized pattern. If there is no
/// pattern, leaves out the first object.
fn simplify(
    mismatch: &Mismatch,
    live: &CurrentVhost<'_>,
    kept: &Topology,
    recognized: &Recognized,
    given_up: &mut GivenUp,
    left_out: &mut LeftOut,
) {
    let Some(id) = mismatch.causes.first() else { return };
    // A mismatch in a binding does not concern the patterns of the queue whose `bindings` contain the binding.
    let is_binding = matches!(id, ObjectId::Binding(_)) && !recognized.generated.contains_key(id);
    if !is_binding && mismatch.causes.iter().any(|id| given_up.give_up(id, recognized)) {
        return;
    }
    let why = || Reason::NotRepresentable(mismatch.why.clone());
    match id {
        ObjectId::Exchange(name) if !kept.exchanges.contains_key(name) => {
            // If an external exchange cannot be declared, the objects that refer to it cannot be represented.
            for id in document::references_to(kept, name) {
                left_out.add(id, why());
            }
        }
        ObjectId::Vhost => {}
        ObjectId::Exchange(_)
        | ObjectId::Queue(_)
        | ObjectId::Policy(_)
        | ObjectId::Binding(_)
        | ObjectId::Record(_) => {
            if live.topology.object(id).is_some() {
                left_out.add(id.clone(), why());
            }
        }
    }
}
