//! A live vhost into a spec that a person would have written, and that plans to "no changes". Pure: what is live was read
//! by `broker`, and where the text goes is the caller's affair.
//!
//! What objects are together is guessed (`recognize`), written (`document`), and then tried: the text is read, expanded and
//! planned as any spec is (`check`). What does not come out as it is live is said more plainly, and what cannot be said
//! at all is left out and told of; again, until nothing is wrong.

mod check;
mod choice;
mod comments;
mod defaults;
mod document;
mod left_out;
mod recognize;
mod records;
mod shared;
#[cfg(test)]
mod tests;

pub use left_out::{LeftOut, Why, counted};

use crate::model::yaml::{self, Text, scalar};
use crate::model::{Binding, Glob, ObjectId, RecordKind, Topology};
use crate::plan::{InterruptedMigration, before_migrations};
use crate::rabbitmq::BrokerProfile;
use check::Wrong;
use document::{Comments, Document};
use recognize::{GivenUp, Recognized, recognize};
use std::collections::{BTreeMap, BTreeSet};

/// A vhost as it was read.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    /// All that is in it.
    pub topology: &'a Topology,
    /// What topo never touches.
    pub untouchable: &'a BTreeSet<ObjectId>,
    /// The broker's keys of the bindings.
    pub properties_keys: &'a BTreeMap<Binding, Vec<String>>,
    /// What else the vhost has, by what it is (`shovel`), with the names.
    pub beside: &'a BTreeMap<String, Vec<String>>,
    /// The kinds of records to export.
    pub with: &'a BTreeSet<RecordKind>,
    /// The holder of its lock: another apply that runs now.
    pub applying: Option<&'a str>,
    /// Whether queues that come and go are in it: no definitions file has them.
    pub has_passing: bool,
    /// How the broker behaves.
    pub profile: &'a BrokerProfile,
}

/// A vhost as a spec.
#[derive(Clone, Debug)]
pub struct Export {
    /// The spec: one YAML document.
    pub text: String,
    /// What is not in it.
    pub left_out: LeftOut,
    /// Migrations that were begun and not finished.
    pub interrupted: Vec<InterruptedMigration>,
    /// What is in it.
    pub topology: Topology,
}

/// Why a vhost cannot be exported: a text could not be made of it that says it. This is a mistake of topo's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unwritable(String);

/// The spec of all that has a name which one of the globs matches; without globs, of everything.
///
/// # Errors
/// No text could be found that plans to "no changes", which is not known to be possible.
pub fn export(live: &Live<'_>, globs: &[Glob]) -> Result<Export, Unwritable> {
    let Some(before) = before_migrations(live.topology) else { return settled(live, globs, None) };
    settled(&Live { topology: &before, ..*live }, globs, Some(live))
}

/// What is there but for migrations that were cut short, which only what is really live has.
fn settled(live: &Live<'_>, globs: &[Glob], really: Option<&Live<'_>>) -> Result<Export, Unwritable> {
    let mut left_out = choice::left_out(live, globs);
    let mut given_up = GivenUp::default();
    loop {
        let kept = choice::kept(live, globs, &mut left_out);
        let recognized = recognize(live, &kept, &given_up);
        let document =
            |comments: Option<&Comments>| Document { live, kept: &kept, recognized: &recognized, comments }.text();
        let text = document(None);
        let wrongs = match check::read(&text, live) {
            Ok(read) => {
                let wrongs = check::wrongs(&read, live, &kept, &recognized);
                if wrongs.is_empty() {
                    let comments = comments::of(&recognized, &read, &text, live, &kept);
                    let text = headed(text, document(Some(&comments)), &left_out, live);
                    let interrupted = really.map_or_else(Vec::new, |really| check::interrupted(&read, really));
                    return Ok(Export { text, left_out, interrupted, topology: kept });
                }
                wrongs
            }
            Err(wrongs) => wrongs,
        };
        let before = (given_up.len(), left_out.len());
        wrongs.iter().for_each(|wrong| give_way(wrong, live, &kept, &recognized, &mut given_up, &mut left_out));
        if before == (given_up.len(), left_out.len()) {
            let first = wrongs.first().map_or_else(String::new, |wrong| format!("{}: {:?}", wrong.why, wrong.set_by));
            return Err(Unwritable(first));
        }
    }
}

/// With its comments and a head that says what is left out; a comment that spoils the text (a name may look like anything)
/// is not worth it.
fn headed(plain: Text, with_comments: Text, left_out: &LeftOut, live: &Live<'_>) -> String {
    let mut head = String::new();
    if !left_out.is_empty() {
        head.push_str("# Not exported:\n");
        for line in left_out.lines() {
            for line in yaml::wrapped(&scalar::comment(&line), yaml::WIDTH - 4) {
                head.push_str(&format!("#   {line}\n"));
            }
        }
    }
    let full = with_comments.headed(head);
    let expanded = |text: &Text| check::read(text, live).map(|read| read.expansion.topology).ok();
    if expanded(&full) == expanded(&plain) { full.text } else { plain.text }
}

/// Says something less ambitiously: the first of what says it that was recognized is not any more; or else the first is left
/// out.
fn give_way(
    wrong: &Wrong,
    live: &Live<'_>,
    kept: &Topology,
    recognized: &Recognized,
    given_up: &mut GivenUp,
    left_out: &mut LeftOut,
) {
    let Some(id) = wrong.set_by.first() else { return };
    // Of a binding that stands in the list of a queue, the queue is not to blame.
    let is_binding = matches!(id, ObjectId::Binding(_)) && !recognized.made.contains_key(id);
    if !is_binding && wrong.set_by.iter().any(|id| given_up.give_up(id, recognized)) {
        return;
    }
    let why = || Why::Unsayable(wrong.why.clone());
    match id {
        ObjectId::Exchange(name) if !kept.exchanges.contains_key(name) => {
            // Somebody else's, which cannot be named: then what names it cannot be said.
            for id in document::naming(kept, name) {
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
