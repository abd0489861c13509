//! Compares the broker's response with topo's prediction.

use std::sync::Arc;

use serde_json::Value;
use topo::broker::Snapshot;
use topo::model::known_arguments::KnownArgument;
use topo::model::{Object, QueueName, Scope, Topology};
use topo::plan::{Activity, Desired, Options, PlanContext, RecordFacts, Verdict, plan_vhost};
use topo::rabbitmq::refusals;

use super::queues::{Definition, Live};
use crate::live::differential_report::Wrong;
use crate::support::{Amqp, Http, Vhost};

/// The broker's response to a declaration.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    /// The HTTP status of a declaration over HTTP.
    Accepted(u16),
    /// The error text, and the object or argument that it refers to.
    Refused { subject: Option<String>, text: String },
}

/// topo's prediction, made before the declaration.
#[derive(Debug)]
pub(super) struct Predicted {
    /// The verdict of the pair.
    pub(super) verdict: Verdict,
    /// The verdicts of the fields that differ.
    pub(super) fields: Vec<(String, Verdict)>,
    /// The error of a refused redeclaration.
    pub(super) broker_error: Option<String>,
    /// The first refusal of a new declaration.
    pub(super) refused: Option<String>,
}

fn wrong<T>(check: &'static str, text: String) -> Result<T, Wrong> {
    Err(Wrong::new(check, text))
}

/// Returns the quoted text after these words.
fn quoted_behind(text: &str, words: &str) -> Option<String> {
    let rest = &text[text.find(words)? + words.len()..];
    Some(rest[..rest.find('\'')?].to_owned())
}

/// Returns the subject of a refusal, as in `Refusal::subject`. Returns `None` if the broker's error contains no
/// subject, because the broker crashed or HTTP refused the request.
pub(super) fn subject(text: &str) -> Option<String> {
    let named = ["inequivalent arg '", "invalid arg '", "for arg '"];
    if let Some(name) = named.into_iter().find_map(|words| quoted_behind(text, words)) {
        return Some(name);
    }
    match quoted_behind(text, "invalid property '").as_deref() {
        Some("non-durable") => return Some("durable".to_owned()),
        Some("auto-delete") => return Some("auto_delete".to_owned()),
        Some(other) => return Some(other.to_owned()),
        None => {}
    }
    if text.contains("queue-master-locator is deprecated") {
        return Some("x-queue-master-locator".to_owned());
    }
    let start = text.find("x-")?;
    let name: String = text[start..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
    Some(name)
}

fn refused(text: String) -> Reply {
    Reply::Refused { subject: subject(&text), text }
}

/// Declares a queue over HTTP.
pub(super) fn put(http: &Http, vhost: &Vhost<'_>, name: &str, definition: &Definition) -> Reply {
    let answer = http.put(&vhost.path("queues", &[name]), &definition.body());
    if answer.is_success() {
        return Reply::Accepted(answer.status);
    }
    let text = answer.body["reason"].as_str().map_or_else(|| answer.body.to_string(), str::to_owned);
    refused(if answer.status == 400 { text } else { format!("{} {text}", answer.status) })
}

/// Declares a current queue.
pub(super) fn make(http: &Http, amqp: &Amqp, vhost: &Vhost<'_>, name: &str, live: &Live) -> Reply {
    match &live.widths {
        None => put(http, vhost, name, &live.definition),
        Some(widths) => {
            let definition = &live.definition;
            match amqp.declare_queue_as(name, definition.options(), &definition.table(widths)) {
                Ok(()) => Reply::Accepted(0),
                Err(text) => refused(text),
            }
        }
    }
}

/// Predicts with the code of a plan, from the current queue as read and the desired queue.
pub(super) fn predict(snapshot: &Snapshot, name: &str, definition: &Definition) -> Predicted {
    let name = QueueName::from(name);
    let current = only(&snapshot.topology, &name, snapshot.topology.queues.get(&name).cloned());
    let topology = only(&snapshot.topology, &name, Some(definition.queue()));
    let desired = Arc::new(Desired { topology, scope: Scope::default(), sources: Vec::new() });
    let context = PlanContext {
        current: &current,
        desired: &desired,
        activity: &Activity::default(),
        properties_keys: &snapshot.properties_keys,
        untouchable: &snapshot.untouchable,
        lacks_auto_delete: &snapshot.lacks_auto_delete,
        records: &RecordFacts::default(),
        profile: &snapshot.profile,
    };
    let plan = plan_vhost(&context, &Options::default());
    let object = Object::Queue(name.clone(), definition.queue());
    let refused = refusals(&object, &snapshot.profile).into_iter().next().map(|refusal| refusal.subject);
    let change = plan.changes.into_iter().find(|change| matches!(&change.after, Some(Object::Queue(..))));
    let fields: Vec<(String, Verdict)> =
        change.iter().flat_map(|change| &change.fields).map(|field| (field.field.clone(), field.verdict)).collect();
    let has = |desired: Verdict| fields.iter().any(|(_, verdict)| *verdict == desired);
    let verdict = if refused.is_some() {
        Verdict::Invalid
    } else if let Some(found) =
        [Verdict::Invalid, Verdict::Conflict, Verdict::Drift, Verdict::InPlace].into_iter().find(|found| has(*found))
    {
        found
    } else if plan.infos.iter().any(|info| info.text.contains("the broker does not use it")) {
        Verdict::Unknown
    } else {
        Verdict::Equal
    };
    let broker_error = change.and_then(|change| change.conflict).and_then(|conflict| conflict.broker_error);
    Predicted { verdict, fields, broker_error, refused }
}

fn only(topology: &Topology, name: &QueueName, queue: Option<topo::model::Queue>) -> Topology {
    let mut one = Topology::missing(topology.vhost.clone());
    one.settings.clone_from(&topology.settings);
    one.queues.extend(queue.map(|queue| (name.clone(), queue)));
    one
}

/// Returns the common verdict, or the disagreement.
pub(super) fn judge(
    live: &Live,
    desired: &Definition,
    predicted: &Predicted,
    (again, fresh): (&Reply, &Reply),
) -> Result<Verdict, Wrong> {
    fresh_agrees(predicted.refused.as_deref(), fresh)?;
    // HTTP cannot represent this value, so it never reaches the queue.
    if !desired.contains_null() {
        again_agrees(live, predicted, again)?;
    }
    let refused = matches!(again, Reply::Refused { .. });
    let verdict = match (fresh, refused) {
        (Reply::Refused { .. }, _) => Verdict::Invalid,
        (Reply::Accepted(_), true) => Verdict::Conflict,
        (Reply::Accepted(_), false) => ignored(live, desired),
    };
    if verdict == predicted.verdict || verdict == Verdict::Drift && are_equal_ages(live, desired, predicted) {
        return Ok(predicted.verdict);
    }
    wrong("verdict", format!("broker: {verdict}, topo: {} for {:?}", predicted.verdict, predicted.fields))
}

/// Compares the predicted first refusal of a new declaration with the response.
pub(super) fn fresh_agrees(predicted: Option<&str>, fresh: &Reply) -> Result<(), Wrong> {
    match (fresh, predicted) {
        (Reply::Accepted(_), None) => Ok(()),
        (Reply::Accepted(_), Some(named)) => {
            wrong("fresh", format!("topo predicts a refusal of {named}, the broker accepts it"))
        }
        (Reply::Refused { text, .. }, None) => {
            wrong("fresh", format!("topo predicts no refusal, the broker answers {text}"))
        }
        (Reply::Refused { subject: Some(subject), text }, Some(named)) if subject != named => {
            wrong("fresh, named first", format!("topo names {named}, the broker {subject}: {text}"))
        }
        (Reply::Refused { .. }, Some(_)) => Ok(()),
    }
}

fn again_agrees(live: &Live, predicted: &Predicted, again: &Reply) -> Result<(), Wrong> {
    let named = predicted.broker_error.as_deref().and_then(subject);
    match (again, named) {
        (Reply::Accepted(201), _) => wrong("redeclare", "the current queue was missing".to_owned()),
        (Reply::Accepted(_), None) => Ok(()),
        (Reply::Accepted(_), Some(named)) => {
            wrong("redeclare", format!("topo predicts a refusal of {named}, the broker accepts it"))
        }
        (Reply::Refused { text, .. }, None) => {
            wrong("redeclare", format!("topo predicts no refusal, the broker answers {text}"))
        }
        (Reply::Refused { subject, text }, Some(named)) => {
            if subject.as_deref() != Some(named.as_str()) {
                return wrong("redeclare, named first", format!("topo names {named}, the broker {text}"));
            }
            sentence_agrees(live, predicted, text)
        }
    }
}

/// Compares the error word for word, if the integer widths are known.
pub(super) fn sentence_agrees(live: &Live, predicted: &Predicted, text: &str) -> Result<(), Wrong> {
    let broker_error = predicted.broker_error.as_deref().unwrap_or_default();
    let bare = |text: &str| text.trim_start_matches("PRECONDITION_FAILED - ").to_owned();
    if live.widths.is_none() && bare(broker_error) != bare(text) {
        return wrong("sentence", format!("\n  broker {text}\n  topo   {broker_error}"));
    }
    Ok(())
}

/// Returns the verdict for differences that the broker accepts but ignores, by name.
fn ignored(live: &Live, desired: &Definition) -> Verdict {
    let (before, after) = (&live.definition.arguments, &desired.arguments);
    let differs = |name: &&String| before.get(*name) != after.get(*name);
    let differing: Vec<&String> = before.keys().chain(after.keys()).filter(differs).collect();
    let by_default = |name: &str| name == "x-queue-type" && (before.get(name).is_none() || after.get(name).is_none());
    if differing.iter().any(|name| KnownArgument::named(name).is_some() && !by_default(name)) {
        Verdict::Drift
    } else if differing.iter().any(|name| KnownArgument::named(name).is_none()) {
        Verdict::Unknown
    } else {
        Verdict::Equal
    }
}

/// Returns true for equal ages in different units. 4.3.6 accepts them as equal, and its response does not show whether
/// it ignores them.
fn are_equal_ages(live: &Live, desired: &Definition, predicted: &Predicted) -> bool {
    let (mut live, mut desired) = (live.clone(), desired.clone());
    let ages = [&mut live.definition.arguments, &mut desired.arguments].map(|arguments| arguments.remove("x-max-age"));
    ages.iter().all(|age| age.as_ref().is_some_and(Value::is_string)) && predicted.verdict == ignored(&live, &desired)
}
