//! Lists the resolutions of a conflict, least disruptive first: keep the current settings, use a policy, rename,
//! recreate. Each has the YAML to write, and the response that applications get afterwards.

mod applications;
mod keep;
mod places;
mod policy;
mod recreate;
mod retries;
mod takeover;
pub(super) mod yaml;

pub(super) use applications::{error_after_recreate, typeless_declare};

use super::Verdict;
use super::context::PlanContext;
use super::document::{FieldVerdict, PlannedChange};
use super::resolution::{Applicability, Resolution, ResolutionKind};
use crate::model::{ArgumentValue, ExchangeName, Object, ObjectId};
use yaml::Fragment;

/// What one can do about a live object that differs. `instead` is what helps where no recreate may be.
pub(super) fn resolutions(
    context: &PlanContext<'_>,
    planned: &PlannedChange,
    instead: Option<String>,
) -> Vec<Resolution> {
    let Some(subject) = Subject::of(context, planned) else { return Vec::new() };
    let mut ways = Vec::new();
    if !subject.hard.is_empty() {
        ways.push(keep::way(&subject));
        ways.push(policy::way(&subject));
    }
    match instead {
        Some(text) => {
            ways.push(Resolution::new(
                ResolutionKind::Recreate,
                Applicability::Partly,
                format!("not possible now: {text}"),
            ));
        }
        None => ways.extend(recreate::ways(context, planned)),
    }
    ways
}

/// The object that advice is about.
struct Subject<'a> {
    context: &'a PlanContext<'a>,
    planned: &'a PlannedChange,
    before: &'a Object,
    /// The fields that cannot change in place.
    hard: Vec<&'a FieldVerdict>,
}

impl<'a> Subject<'a> {
    fn of(context: &'a PlanContext<'a>, planned: &'a PlannedChange) -> Option<Self> {
        let is_hard =
            |field: &&FieldVerdict| matches!(field.verdict, Verdict::Conflict | Verdict::Drift | Verdict::Invalid);
        let hard = planned.fields.iter().filter(is_hard).collect();
        Some(Self { context, planned, before: planned.before.as_ref()?, hard })
    }

    /// The dead-letter queue that it is part of in the spec.
    fn dead_letter_queue(&self) -> Option<&str> {
        Some(self.planned.source.as_ref()?.part_of.as_ref()?.as_str())
    }

    /// Where the object stands in the spec.
    fn path(&self) -> Vec<&str> {
        match (self.before, self.dead_letter_queue()) {
            (Object::Queue(name, _), None) => vec!["queues", name.as_str()],
            (Object::Queue(name, _), Some(_)) => vec!["deadLetterQueues", name.as_str()],
            (Object::Exchange(_, _), Some(queue)) => vec!["deadLetterQueues", queue, "exchange"],
            (Object::Exchange(name, _), None) => vec!["exchanges", name.as_str()],
            (Object::Vhost(_) | Object::Policy(..) | Object::Binding(_) | Object::Record(_), _) => Vec::new(),
        }
    }

    /// Writes keys of the object into a fragment.
    fn write(&self, fragment: &mut Fragment, said: &keep::Said) {
        let path = self.path();
        for (key, yaml) in &said.keys {
            let path: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
            fragment.set(&path, yaml.clone());
        }
        for exchange in &said.exchanges {
            self.refer(fragment, exchange);
        }
        if !said.remove_keys.is_empty() {
            let name = self.before.id();
            let name = yaml::scalar(name.name().unwrap_or_default());
            fragment.remark(format!("remove from {} {name}: {}", self.before.id().kind(), said.remove_keys.join(", ")));
        }
        for default in &said.defaults {
            fragment.remark(format!("remove {default}"));
            for other in default.others.iter().flatten() {
                fragment.set(&other.path.each_ref().map(String::as_str), other.yaml.clone());
            }
        }
    }

    /// A spec can only refer to exchanges that it knows.
    fn refer(&self, fragment: &mut Fragment, exchange: &ExchangeName) {
        let desired = self.context.desired;
        let is_known = exchange.is_predeclared()
            || desired.topology.exchanges.contains_key(exchange)
            || desired.scope.external.contains(&ObjectId::Exchange(exchange.clone()));
        if is_known {
            return;
        }
        if self.context.current.exchanges.contains_key(exchange) {
            fragment.set(&["exchanges", exchange.as_str(), "external"], "true");
        } else {
            // Nothing is bound to it, so that what is sent there is dropped, as it is now.
            fragment.remark(format!("the broker has no exchange {}", yaml::scalar(exchange.as_str())));
            fragment.set(&["exchanges", exchange.as_str(), "type"], "fanout");
        }
    }
}

/// The exchange that such an argument or policy key names.
fn exchange_named(value: Option<&ArgumentValue>) -> Option<ExchangeName> {
    value.and_then(ArgumentValue::as_text).map(ExchangeName::new)
}
