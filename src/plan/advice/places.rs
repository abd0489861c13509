//! Finds where the spec sets an argument, so that advice can be followed literally: under a key of its own, in
//! `arguments`, or in the defaults of its document.

use super::Subject;
use super::keep::Edits;
use crate::model::known_arguments::KnownArgument;
use crate::model::yaml::value::with_unit;
use crate::model::yaml::{Tree, scalar};
use crate::model::{ObjectId, OnConflict, QueueName, SetIn};
use crate::plan::document::Source;
use std::fmt;

/// So many objects are listed that have to say themselves what a default said, and so many are looked at for that.
const MOST_OTHERS: usize = 20;
const MOST_LOOKED_AT: usize = 200;
const DEAD_LETTER_ARGUMENTS: [&str; 2] = ["x-dead-letter-exchange", "x-dead-letter-routing-key"];

/// A default that the object must not have, and no key of its own can undo.
pub(super) struct Default {
    /// `defaults.queue.messageTtl`.
    pub(super) path: String,
    /// `topology.yaml:4`.
    place: String,
    /// Those that have it from there, and are to keep it; `None` where they are too many to be listed.
    pub(super) others: Option<Vec<Other>>,
}

/// An object that is to say itself what a default said.
pub(super) struct Other {
    /// Where.
    pub(super) path: [String; 3],
    /// Its value.
    pub(super) value: Tree,
}

impl Default {
    /// What to do about it, and about those that it is meant for.
    pub(super) fn sentence(&self) -> String {
        let names: Option<Vec<String>> =
            self.others.as_ref().map(|others| others.iter().map(|other| scalar::text(&other.path[1])).collect());
        match names {
            None => format!("remove {self}, and set it in the other objects that use this default"),
            Some(names) if names.is_empty() => format!("remove {self}"),
            Some(names) => format!("remove {self}, and set it in {}", names.join(", ")),
        }
    }
}

impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path, self.place)
    }
}

/// The places of an argument; the object's own key where no other is known.
fn places<'a>(source: Option<&'a Source>, argument: &str) -> &'a [SetIn] {
    source.and_then(|source| source.places.get(argument)).map_or(&[SetIn::Key], Vec::as_slice)
}

/// Whether nothing but a default says it.
pub(super) fn is_default(subject: &Subject<'_>, argument: &str) -> bool {
    let is_own = |place: &SetIn| matches!(place, SetIn::Key | SetIn::Arguments);
    !places(subject.planned.source.as_ref(), argument).iter().any(is_own)
}

/// Whether a default sets it where the object does not.
pub(super) fn has_default(subject: &Subject<'_>, argument: &str) -> bool {
    let is_default = |place: &SetIn| matches!(place, SetIn::Defaults(_) | SetIn::DefaultArguments(_));
    places(subject.planned.source.as_ref(), argument).iter().any(is_default)
}

/// An argument of a queue is not to be said, wherever it is. A default goes by itself where the live type does not take it.
pub(super) fn remove_keys(subject: &Subject<'_>, edits: &mut Edits, known: &'static KnownArgument, is_taken: bool) {
    let source = subject.planned.source.as_ref();
    for place in places(source, known.name) {
        let default = |path: String, line: usize| Default {
            path,
            place: source.map_or_else(String::new, |source| format!("{}:{line}", source.file)),
            others: others(subject, known, *place),
        };
        match place {
            SetIn::Key => edits.remove_keys.push(known.key.to_owned()),
            SetIn::Arguments => edits.remove_keys.push(format!("arguments.{}", known.name)),
            SetIn::Defaults(_) | SetIn::DefaultArguments(_) if !is_taken => {}
            SetIn::Defaults(line) => edits.defaults.push(default(format!("defaults.queue.{}", known.key), *line)),
            SetIn::DefaultArguments(line) => {
                edits.defaults.push(default(format!("defaults.queue.arguments.{}", known.name), *line));
            }
        }
    }
}

/// A typed key says it from now on, so that `arguments` must not; whether they do.
pub(super) fn move_out_of_arguments(subject: &Subject<'_>, edits: &mut Edits, argument: &str) -> bool {
    let is_there = places(subject.planned.source.as_ref(), argument).contains(&SetIn::Arguments);
    let path = format!("arguments.{argument}");
    if is_there && !edits.remove_keys.contains(&path) {
        edits.remove_keys.push(path);
    }
    is_there
}

/// The same for both arguments of `deadLetter`.
pub(super) fn move_dead_letter(subject: &Subject<'_>, edits: &mut Edits) -> bool {
    let is_there = DEAD_LETTER_ARGUMENTS.map(|argument| move_out_of_arguments(subject, edits, argument));
    is_there.contains(&true)
}

/// Those that have a default from the same place, and are to keep it: not those that have advice of their own.
fn others(subject: &Subject<'_>, known: &KnownArgument, place: SetIn) -> Option<Vec<Other>> {
    let (context, own) = (subject.context, subject.planned.source.as_ref()?);
    let sharing = context.desired.sources.iter().filter_map(|(id, source)| match id {
        ObjectId::Queue(name) => {
            let shares = source.file == own.file && places(Some(source), known.name) == [place];
            (shares && *id != subject.before.id()).then_some((id, name, source))
        }
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {
            None
        }
    });
    let sharing: Vec<_> = sharing.take(MOST_LOOKED_AT).collect();
    let is_refused = |id: &ObjectId| {
        let said = context.desired.scope.on_conflict.iter().find(|(known, _)| known == id);
        said.is_none_or(|(_, how)| *how == OnConflict::Refuse)
    };
    let other = |(id, name, source): &(&ObjectId, &QueueName, &Source)| {
        let value = context.desired.topology.queues.get(*name)?.arguments.get(known.name)?;
        let live = context.current.queues.get(*name);
        let is_kept = live.is_none_or(|live| live.arguments.get(known.name) == Some(value)) || !is_refused(id);
        if !is_kept {
            return None;
        }
        let section = if source.part_of.is_some() { "deadLetterQueues" } else { "queues" };
        let path = [section, name.as_str(), known.key].map(str::to_owned);
        Some(Other { path, value: with_unit(known.name, value) })
    };
    let others: Vec<Other> = sharing.iter().filter_map(other).collect();
    (sharing.len() < MOST_LOOKED_AT && others.len() <= MOST_OTHERS).then_some(others)
}
