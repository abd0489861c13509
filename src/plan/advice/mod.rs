//! Lists the resolutions of a conflict, least disruptive first: keep the current settings, use a policy, rename the
//! object, or recreate it. A resolution can contain the YAML to write, a flag, and the effect on applications that
//! declare the object.

mod current_keys;
mod keep;
mod origins;
mod policy;
mod recreate;
mod takeover;

pub(super) use recreate::{error_after_recreate, typeless_declare};

use super::context::PlanContext;
use super::document::{FieldVerdict, PlannedChange};
use super::resolution::{Applicability, Resolution, ResolutionKind};
use super::spec_keys::{external_exchange, missing_exchange};
use super::verdict::Verdict;
use crate::model::yaml::scalar;
use crate::model::{ArgumentValue, ExchangeName, Object, ObjectId};
use recreate::Fragment;

/// Returns the resolutions of a conflict. `instead` is the remedy if topo cannot recreate the object.
pub(super) fn resolutions(
    context: &PlanContext<'_>,
    planned: &PlannedChange,
    instead: Option<String>,
) -> Vec<Resolution> {
    let Some(subject) = Subject::of(context, planned) else { return Vec::new() };
    let mut resolutions = Vec::new();
    if !subject.immutable.is_empty() {
        resolutions.push(keep::resolution(&subject));
        resolutions.push(policy::resolution(&subject));
    }
    match instead {
        Some(text) => {
            resolutions.push(Resolution::new(
                ResolutionKind::Recreate,
                Applicability::Partly,
                format!("not possible now: {text}"),
            ));
        }
        None => resolutions.extend(recreate::resolutions(context, planned)),
    }
    resolutions
}

/// The object in conflict, with its planned change.
struct Subject<'a> {
    context: &'a PlanContext<'a>,
    planned: &'a PlannedChange,
    before: &'a Object,
    /// The fields that cannot change in place.
    immutable: Vec<&'a FieldVerdict>,
}

impl<'a> Subject<'a> {
    fn of(context: &'a PlanContext<'a>, planned: &'a PlannedChange) -> Option<Self> {
        let is_immutable =
            |field: &&FieldVerdict| matches!(field.verdict, Verdict::Conflict | Verdict::Drift | Verdict::Invalid);
        let immutable = planned.fields.iter().filter(is_immutable).collect();
        Some(Self { context, planned, before: planned.before.as_ref()?, immutable })
    }

    /// Returns the dead-letter queue to which the object belongs in the spec; `None` if the object belongs to no
    /// dead-letter queue.
    fn dead_letter_queue(&self) -> Option<&str> {
        Some(self.planned.source.as_ref()?.part_of.as_ref()?.as_str())
    }

    /// Returns the path of a queue or an exchange in the spec; empty for other objects.
    fn path(&self) -> Vec<&str> {
        match (self.before, self.dead_letter_queue()) {
            (Object::Queue(name, _), None) => match self.context.desired.scope.super_stream_of(name) {
                Some(super_stream) => vec!["superStreams", super_stream.as_str()],
                None => vec!["queues", name.as_str()],
            },
            (Object::Queue(name, _), Some(_)) => vec!["deadLetterQueues", name.as_str()],
            (Object::Exchange(_, _), Some(queue)) => vec!["deadLetterQueues", queue, "exchange"],
            (Object::Exchange(name, _), None) => vec!["exchanges", name.as_str()],
            (Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_), _) => Vec::new(),
        }
    }

    /// Writes the edits to the object's entry into a fragment.
    fn write(&self, fragment: &mut Fragment, edits: &origins::Edits) {
        let path = self.path();
        for (key, value) in &edits.keys {
            let path: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
            fragment.set(&path, value.clone());
        }
        let name = self.before.id();
        for exchange in &edits.exchanges {
            self.declare_external(
                fragment,
                exchange,
                &match name {
                    ObjectId::Exchange(_) => {
                        format!("the messages that `{}` cannot route", name.name().unwrap_or_default())
                    }
                    ObjectId::Vhost
                    | ObjectId::Queue(_)
                    | ObjectId::Policy(_)
                    | ObjectId::Binding(_)
                    | ObjectId::Record(_) => {
                        format!("the dead-lettered messages from `{}`", name.name().unwrap_or_default())
                    }
                },
            );
        }
        edits.remarks.iter().for_each(|remark| fragment.remark(remark));
        if !edits.remove_keys.is_empty() {
            let shown = scalar::text(name.name().unwrap_or_default());
            fragment.remark(&format!("remove from {} {shown}: {}", name.kind(), edits.remove_keys.join(", ")));
        }
        for default in &edits.defaults {
            fragment.remark(&format!("remove {default}"));
            for key in default.overrides.iter().flatten() {
                fragment.set(&key.path.each_ref().map(String::as_str), key.value.clone());
            }
        }
    }

    /// Declares an exchange as external if the spec does not declare it yet. `messages` describes the messages that are
    /// sent to the exchange.
    fn declare_external(&self, fragment: &mut Fragment, exchange: &ExchangeName, messages: &str) {
        let desired = self.context.desired;
        let is_known = exchange.is_predeclared()
            || desired.topology.exchanges.contains_key(exchange)
            || desired.scope.external.contains(&ObjectId::Exchange(exchange.clone()));
        if is_known {
            return;
        }
        let is_missing = !self.context.current.exchanges.contains_key(exchange);
        fragment.set(&["exchanges", exchange.as_str()], external_exchange(is_missing).block());
        if is_missing {
            fragment.comment(&["exchanges", exchange.as_str()], vec![missing_exchange(messages)]);
        }
    }
}

/// Returns the exchange that the value of an argument or a policy key specifies; `None` if the value is not a string.
fn exchange_named(value: Option<&ArgumentValue>) -> Option<ExchangeName> {
    value.and_then(ArgumentValue::as_text).map(ExchangeName::new)
}
