//! The ways out of a conflict, most gentle first: say what is live, use a policy, take another name, recreate. Each with
//! what to write into the spec, and with what applications see afterwards.

mod applications;
mod keep;
mod places;
mod policy;
mod recreate;
mod retries;
mod takeover;
pub(super) mod yaml;

pub(super) use applications::{afterwards, without_type};

use super::Verdict;
use super::document::{FieldVerdict, PlannedChange};
use super::situation::Situation;
use super::way_out::{Helps, WayKind, WayOut};
use crate::model::{ArgumentValue, ExchangeName, Object, ObjectId};
use yaml::Fragment;

/// What one can do about a live object that differs. `instead` is what helps where no recreate may be.
pub(super) fn ways_out(situation: &Situation<'_>, planned: &PlannedChange, instead: Option<String>) -> Vec<WayOut> {
    let Some(subject) = Subject::of(situation, planned) else { return Vec::new() };
    let mut ways = Vec::new();
    if !subject.hard.is_empty() {
        ways.push(keep::way(&subject));
        ways.push(policy::way(&subject));
    }
    match instead {
        Some(text) => {
            ways.push(WayOut::new(WayKind::Recreate, Helps::Partly, format!("not as it is: {text}")));
        }
        None => ways.extend(recreate::ways(situation, planned)),
    }
    ways
}

/// The object that advice is about.
struct Subject<'a> {
    situation: &'a Situation<'a>,
    planned: &'a PlannedChange,
    before: &'a Object,
    /// The fields that cannot change in place.
    hard: Vec<&'a FieldVerdict>,
}

impl<'a> Subject<'a> {
    fn of(situation: &'a Situation<'a>, planned: &'a PlannedChange) -> Option<Self> {
        let is_hard =
            |field: &&FieldVerdict| matches!(field.verdict, Verdict::Conflict | Verdict::Drift | Verdict::Invalid);
        let hard = planned.fields.iter().filter(is_hard).collect();
        Some(Self { situation, planned, before: planned.before.as_ref()?, hard })
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
            (Object::Vhost(_) | Object::Policy(..) | Object::Binding(_), _) => Vec::new(),
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
        if !said.take_out.is_empty() {
            let name = self.before.id();
            let name = yaml::scalar(name.name().unwrap_or_default());
            fragment.remark(format!("take out of {} {name}: {}", self.before.id().kind(), said.take_out.join(", ")));
        }
        for default in &said.defaults {
            fragment.remark(format!("take out {default}"));
            for other in default.others.iter().flatten() {
                fragment.set(&other.path.each_ref().map(String::as_str), other.yaml.clone());
            }
        }
    }

    /// A spec can only refer to exchanges that it knows.
    fn refer(&self, fragment: &mut Fragment, exchange: &ExchangeName) {
        let wanted = self.situation.wanted;
        let is_known = exchange.is_predeclared()
            || wanted.topology.exchanges.contains_key(exchange)
            || wanted.scope.external.contains(&ObjectId::Exchange(exchange.clone()));
        if is_known {
            return;
        }
        if self.situation.current.exchanges.contains_key(exchange) {
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
