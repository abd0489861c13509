//! Finds the keys in the spec that set an argument, so that a user can follow a resolution literally. Such a key
//! belongs to the object, to `arguments`, or to the defaults of its document.

use super::Subject;
use crate::model::known_arguments::KnownArgument;
use crate::model::yaml::value::with_unit;
use crate::model::yaml::{Tree, scalar};
use crate::model::{ExchangeName, ObjectId, OnConflict, QueueName, SetIn};
use crate::plan::document::Source;
use std::fmt;

/// The maximum number of overrides that a resolution lists for a removed default.
const MAX_OVERRIDES: usize = 20;
/// The maximum number of objects to examine for these overrides.
const MAX_EXAMINED: usize = 200;
const DEAD_LETTER_ARGUMENTS: [&str; 2] = ["x-dead-letter-exchange", "x-dead-letter-routing-key"];

/// The edits to an object's entry in the spec.
#[derive(std::default::Default)]
pub(super) struct Edits {
    /// Keys to set, with their values.
    pub(super) keys: Vec<(String, Tree)>,
    /// Keys to remove.
    pub(super) remove_keys: Vec<String>,
    /// Defaults to remove from the document.
    pub(super) defaults: Vec<Default>,
    /// Exchanges that the values reference.
    pub(super) exchanges: Vec<ExchangeName>,
    /// Comments to write above the YAML.
    pub(super) remarks: Vec<String>,
    /// Fields whose current value a spec cannot represent.
    pub(super) unrepresentable: Vec<String>,
}

impl Edits {
    /// Returns true if a removed default affects more objects than a resolution can list.
    pub(super) fn is_costly(&self) -> bool {
        self.defaults.iter().any(|default| default.overrides.is_none())
    }

    /// Returns all keys to remove, as paths that start at the object or at the document.
    pub(super) fn all_keys_to_remove(&self) -> Vec<String> {
        self.remove_keys.iter().cloned().chain(self.defaults.iter().map(|default| default.path.clone())).collect()
    }

    pub(super) fn set(&mut self, key: &str, value: Tree) {
        self.keys.push((key.to_owned(), value));
    }

    /// Sets a key if there is a value. Otherwise, adds the field to the unrepresentable fields.
    pub(super) fn set_if_representable(&mut self, key: &str, value: Option<Tree>, field: &str) {
        match value {
            Some(value) => self.set(key, value),
            None => self.unrepresentable.push(field.to_owned()),
        }
    }
}

/// A default that must not apply to the object, and that no key in the object can override.
pub(super) struct Default {
    /// The path, such as `defaults.queue.messageTtl`.
    pub(super) path: String,
    /// The file and line, such as `topology.yaml:4`.
    origin: String,
    /// The keys to set in the other objects that use the default and must keep its value; `None` if there are too many
    /// to list.
    pub(super) overrides: Option<Vec<Override>>,
}

/// A key in another object that must set the value of a removed default.
pub(super) struct Override {
    /// The path of the key.
    pub(super) path: [String; 3],
    /// The value.
    pub(super) value: Tree,
}

impl Default {
    /// Describes the edits to the default and to the other objects that use it.
    pub(super) fn sentence(&self) -> String {
        let names: Option<Vec<String>> =
            self.overrides.as_ref().map(|keys| keys.iter().map(|key| scalar::text(&key.path[1])).collect());
        match names {
            None => format!("remove {self}, and set it in the other objects that use this default"),
            Some(names) if names.is_empty() => format!("remove {self}"),
            Some(names) => format!("remove {self}, and set it in {}", names.join(", ")),
        }
    }
}

impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path, self.origin)
    }
}

/// Returns the origins of an argument. If no origin is known, returns the object's own key.
fn origins<'a>(source: Option<&'a Source>, argument: &str) -> &'a [SetIn] {
    source.and_then(|source| source.places.get(argument)).map_or(&[SetIn::Key], Vec::as_slice)
}

/// Returns true if only a default sets the argument.
pub(super) fn is_default(subject: &Subject<'_>, argument: &str) -> bool {
    let is_own = |origin: &SetIn| matches!(origin, SetIn::Key | SetIn::Arguments);
    !origins(subject.planned.source.as_ref(), argument).iter().any(is_own)
}

/// Returns true if a default sets the argument.
pub(super) fn has_default(subject: &Subject<'_>, argument: &str) -> bool {
    let is_default = |origin: &SetIn| matches!(origin, SetIn::Defaults(_) | SetIn::DefaultArguments(_));
    origins(subject.planned.source.as_ref(), argument).iter().any(is_default)
}

/// Adds the edits that remove an argument of a queue from each of its origins. A default needs no edit if the current
/// queue type does not support the argument.
pub(super) fn remove_keys(subject: &Subject<'_>, edits: &mut Edits, known: &'static KnownArgument, is_supported: bool) {
    let source = subject.planned.source.as_ref();
    for origin in origins(source, known.name) {
        let default = |path: String, line: usize| Default {
            path,
            origin: source.map_or_else(String::new, |source| format!("{}:{line}", source.file)),
            overrides: overrides_for_default(subject, known, *origin),
        };
        match origin {
            SetIn::Key => edits.remove_keys.push(known.key.to_owned()),
            SetIn::Arguments => edits.remove_keys.push(format!("arguments.{}", known.name)),
            SetIn::Defaults(_) | SetIn::DefaultArguments(_) if !is_supported => {}
            SetIn::Defaults(line) => edits.defaults.push(default(format!("defaults.queue.{}", known.key), *line)),
            SetIn::DefaultArguments(line) => {
                edits.defaults.push(default(format!("defaults.queue.arguments.{}", known.name), *line));
            }
        }
    }
}

/// Adds the edit that removes an argument from `arguments`, because a key in the object will set the argument. Returns
/// true if `arguments` contained the argument.
pub(super) fn move_out_of_arguments(subject: &Subject<'_>, edits: &mut Edits, argument: &str) -> bool {
    let is_present = origins(subject.planned.source.as_ref(), argument).contains(&SetIn::Arguments);
    let path = format!("arguments.{argument}");
    if is_present && !edits.remove_keys.contains(&path) {
        edits.remove_keys.push(path);
    }
    is_present
}

/// Adds the edits that remove both dead-letter arguments from `arguments`. Returns true if `arguments` contained one of
/// these arguments.
pub(super) fn move_dead_letter(subject: &Subject<'_>, edits: &mut Edits) -> bool {
    let were_present = DEAD_LETTER_ARGUMENTS.map(|argument| move_out_of_arguments(subject, edits, argument));
    were_present.contains(&true)
}

/// Returns the keys to set in the other objects that use the same default and must keep its value; `None` if there are
/// too many. Excludes objects that conflict because of the same default, because the plan lists resolutions for these
/// objects.
fn overrides_for_default(subject: &Subject<'_>, known: &KnownArgument, origin: SetIn) -> Option<Vec<Override>> {
    let (context, own_source) = (subject.context, subject.planned.source.as_ref()?);
    let candidates = context.desired.sources.iter().filter_map(|(id, source)| match id {
        ObjectId::Queue(name) => {
            let shares = source.file == own_source.file && origins(Some(source), known.name) == [origin];
            (shares && *id != subject.before.id()).then_some((id, name, source))
        }
        ObjectId::Vhost | ObjectId::Exchange(_) | ObjectId::Policy(_) | ObjectId::Binding(_) | ObjectId::Record(_) => {
            None
        }
    });
    let candidates: Vec<_> = candidates.take(MAX_EXAMINED).collect();
    let is_refused = |id: &ObjectId| {
        let setting = context.desired.scope.on_conflict.iter().find(|(known, _)| known == id);
        setting.is_none_or(|(_, how)| *how == OnConflict::Refuse)
    };
    let override_of = |(id, name, source): &(&ObjectId, &QueueName, &Source)| {
        let value = context.desired.topology.queues.get(*name)?.arguments.get(known.name)?;
        let live = context.current.queues.get(*name);
        let is_kept = live.is_none_or(|live| live.arguments.get(known.name) == Some(value)) || !is_refused(id);
        if !is_kept {
            return None;
        }
        let section = if source.part_of.is_some() { "deadLetterQueues" } else { "queues" };
        let path = [section, name.as_str(), known.key].map(str::to_owned);
        Some(Override { path, value: with_unit(known.name, value) })
    };
    let overrides: Vec<Override> = candidates.iter().filter_map(override_of).collect();
    (candidates.len() < MAX_EXAMINED && overrides.len() <= MAX_OVERRIDES).then_some(overrides)
}
