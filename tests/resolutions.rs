//! Checks the resolutions for every known argument: a suggestion is valid YAML, resolves the conflict, and uses a
//! policy only if the broker applies it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use topo::expand::expand;
use topo::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, ValueKind};
use topo::model::{ArgumentValue, Arguments, Object, QueueType, Record, RecordId, RecordKind, Topology, Vhost};
use topo::plan::{
    Activity, Applicability, ChangeKind, Desired, Options, PlanContext, RecordFacts, ResolutionKind, VhostPlan,
    plan_vhost,
};
use topo::rabbitmq::{BrokerProfile, Precedence, precedence, refusals};
use topo::spec::{SourceFile, Variables, parse};

use crate::support::apply_resolution::apply_resolution_to;

/// Returns a smaller and a larger value; words have no order.
fn samples(known: &KnownArgument) -> Option<(ArgumentValue, ArgumentValue)> {
    let numbers = |low: i64, high: i64| Some((low.into(), high.into()));
    match known.value {
        ValueKind::Duration(..) => numbers(10_000, 20_000),
        ValueKind::Size(_) => numbers(1 << 20, 1 << 21),
        ValueKind::Count(least, _) => numbers(least.max(1), least.max(1) + 1),
        ValueKind::Boolean => Some((false.into(), true.into())),
        ValueKind::Text => Some(("amq.fanout".into(), "amq.topic".into())),
        ValueKind::OneOf([low, high, ..]) => Some(((*low).into(), (*high).into())),
        ValueKind::OneOf(_) => None,
        ValueKind::MaxAge => Some(("1D".into(), "2D".into())),
    }
}

/// Returns a spec with one queue and these keys.
fn spec(queue_type: &str, arguments: &BTreeMap<&str, ArgumentValue>) -> String {
    let mut text = format!("version: 1\nvhost: v\nqueues:\n  q:\n    type: {queue_type}\n");
    let mut dead_letter = Vec::new();
    for (name, value) in arguments {
        match *name {
            "x-dead-letter-exchange" => dead_letter.push(format!("exchange: {value}")),
            "x-dead-letter-routing-key" => dead_letter.push(format!("routingKey: {value}")),
            name => text.push_str(&format!("    {}: {value}\n", KnownArgument::named(name).unwrap().key)),
        }
    }
    if !dead_letter.is_empty() {
        text.push_str(&format!("    deadLetter: {{{}}}\n", dead_letter.join(", ")));
    }
    text
}

fn desired(spec: &str, profile: &BrokerProfile) -> Desired {
    let file = SourceFile { name: "topology.yaml".to_owned(), text: spec.to_owned() };
    let specs = parse(&[file], &Variables::new()).unwrap_or_else(|wrong| panic!("{spec}\n{wrong}")).vhosts;
    let expansion = expand(&specs[0], profile).unwrap_or_else(|wrong| panic!("{spec}\n{wrong}"));
    Desired { topology: expansion.topology, scope: expansion.scope, sources: Vec::new() }
}

fn plan(live: &Topology, desired: &Desired, profile: &BrokerProfile) -> VhostPlan {
    let (activity, keys, untouchable) = (Activity::default(), BTreeMap::new(), BTreeSet::new());
    let context = PlanContext {
        current: live,
        desired: &Arc::new(desired.clone()),
        activity: &activity,
        properties_keys: &keys,
        untouchable: &untouchable,
        lacks_auto_delete: &BTreeSet::new(),
        records: &RecordFacts::default(),
        profile,
    };
    plan_vhost(&context, &Options::default())
}

/// Checks the resolutions of one change. Returns true if there was a conflict.
fn check(
    queue_type: (QueueType, QueueType),
    before: &BTreeMap<&str, ArgumentValue>,
    after: &BTreeMap<&str, ArgumentValue>,
    profile: &BrokerProfile,
) -> bool {
    let mut live = desired(&spec(queue_type.0.as_str(), before), profile).topology;
    live.settings = Some(Vhost::default());
    let text = spec(queue_type.1.as_str(), after);
    let planned = plan(&live, &desired(&text, profile), profile);
    let Some(change) = planned.changes.iter().find(|change| change.kind == ChangeKind::Conflict) else { return false };
    let resolutions = &change.conflict.as_ref().unwrap().resolutions;
    let about = || format!("{} {before:?} → {after:?}: {resolutions:#?}", profile.version);
    // Neither a policy nor a recreation helps if the broker would refuse a new declaration.
    let is_accepted = change.after.as_ref().is_some_and(|after| refusals(after, profile).is_empty());
    for kind in [ResolutionKind::Keep, ResolutionKind::Policy, ResolutionKind::Recreate] {
        let is_suggested = resolutions.iter().any(|way| way.kind == kind);
        assert_eq!(is_suggested, is_accepted || kind == ResolutionKind::Keep, "{kind:?}: {}", about());
    }
    for way in resolutions.iter().filter(|way| {
        way.applicability != Applicability::No && way.flag.is_none() && way.kind != ResolutionKind::Rename
    }) {
        let json = serde_json::to_value(way).unwrap();
        let pasted = apply_resolution_to(&text, ("queues", "q"), &json);
        let desired_again = desired(&pasted, profile);
        let again = plan(&live, &desired_again, profile);
        let is_settled = !again.changes.iter().any(|change| change.kind == ChangeKind::Conflict);
        assert_eq!(is_settled, way.applicability == Applicability::Yes, "{pasted}\n{}", about());
        if way.kind == ResolutionKind::Keep {
            assert_eq!(again.changes, [], "{pasted}\n{}", about());
            continue;
        }
        for field in way.fields.iter().filter(|field| field.applies) {
            let key = KnownArgument::named(&field.field).unwrap().policy_key.unwrap();
            let rule = precedence(key, queue_type.0, profile).expect("a policy has an effect");
            let argument = before.get(field.field.as_str());
            assert!(argument.is_none() || rule != Precedence::Argument, "{}", about());
            let policy = desired_again.topology.policies.values().find(|policy| policy.definition.contains_key(key));
            assert!(policy.is_some_and(|policy| policy.pattern == "^q$"), "{key}: {pasted}");
        }
    }
    if let Some(policy) = resolutions.iter().find(|way| way.kind == ResolutionKind::Policy) {
        assert_eq!(policy.yaml.is_some(), policy.applicability != Applicability::No, "{}", about());
        assert_eq!(
            policy.applicability == Applicability::No,
            policy.fields.iter().all(|field| !field.applies),
            "{}",
            about()
        );
    }
    assert!(matches!(change.before, Some(Object::Queue(..))));
    true
}

/// Returns the resolution by a policy as JSON. A queue without arguments gets this argument, and an operator policy
/// governs it.
fn by_policy(queue_type: QueueType, argument: (&str, ArgumentValue), operator: &[(&str, ArgumentValue)]) -> Value {
    let profile = BrokerProfile::of("4.0.5".parse().unwrap());
    let mut live = desired(&spec(queue_type.as_str(), &BTreeMap::new()), &profile).topology;
    live.settings = Some(Vhost::default());
    let definition: Arguments = operator.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let fields = json!({"pattern": ".*", "apply-to": "queues", "definition": definition});
    let id = RecordId::named(RecordKind::OperatorPolicy, "cap");
    let cap = Record::new(id.clone(), serde_json::from_value(fields).unwrap()).unwrap();
    live.records.insert(id, cap);
    let desired = desired(&spec(queue_type.as_str(), &BTreeMap::from([argument])), &profile);
    let planned = plan(&live, &desired, &profile);
    let conflict = planned.changes.iter().find_map(|change| change.conflict.clone()).expect("a conflict");
    let way = conflict.resolutions.iter().find(|way| way.kind == ResolutionKind::Policy).unwrap();
    serde_json::to_value(way).unwrap()
}

#[test]
fn operator_policy_without_effect_is_not_a_warning() {
    // The larger group size is effective.
    let argument = || ("x-quorum-target-group-size", ArgumentValue::from(5));
    let way = by_policy(QueueType::Quorum, argument(), &[("target-group-size", 3.into())]);
    assert_eq!((&way["applicability"], way["warnings"].to_string().contains("cap")), (&json!("yes"), false), "{way:#}");
    let way = by_policy(QueueType::Quorum, argument(), &[("target-group-size", 7.into())]);
    assert!(way["text"].as_str().unwrap().contains("operator policy cap keeps target-group-size at 7"), "{way:#}");
    // A negative limit means that there is no limit, so the other limit is effective.
    let way = by_policy(QueueType::Quorum, ("x-delivery-limit", 10.into()), &[("delivery-limit", (-1).into())]);
    assert_eq!((&way["applicability"], way["warnings"].to_string().contains("cap")), (&json!("yes"), false), "{way:#}");
}

#[test]
fn overflow_by_policy_warns_of_rejections_only_where_the_type_rejects() {
    for (queue_type, overflow, rejects) in [
        (QueueType::Classic, "reject-publish-dlx", true),
        (QueueType::Quorum, "reject-publish", true),
        (QueueType::Quorum, "reject-publish-dlx", false),
    ] {
        let way = by_policy(queue_type, ("x-overflow", overflow.into()), &[]);
        let warns = way["warnings"].to_string().contains("publishes are rejected");
        assert_eq!(warns, rejects, "{queue_type} {overflow}: {way:#}");
    }
}

#[test]
fn every_known_argument_has_valid_resolutions() {
    let mut conflicts = 0;
    for version in ["3.8.9", "3.10.8", "3.13.7", "4.0.5", "4.3.6"] {
        let profile = BrokerProfile::of(version.parse().unwrap());
        for known in KNOWN_ARGUMENTS.iter().filter(|known| known.name != "x-queue-type") {
            let (low, high) = samples(known).unwrap();
            for queue_type in QueueType::ALL.into_iter().filter(|kind| known.is_accepted(*kind, profile.version)) {
                let mut base = BTreeMap::new();
                if known.name == "x-dead-letter-routing-key" {
                    base.insert("x-dead-letter-exchange", ArgumentValue::from("amq.direct"));
                }
                let with = |value: &ArgumentValue| {
                    let mut arguments = base.clone();
                    arguments.insert(known.name, value.clone());
                    arguments
                };
                let both = (queue_type, queue_type);
                for (before, after) in [
                    (base.clone(), with(&low)),
                    (with(&low), base.clone()),
                    (with(&low), with(&high)),
                    (with(&high), with(&low)),
                ] {
                    conflicts += usize::from(check(both, &before, &after, &profile));
                }
            }
        }
    }
    assert!(conflicts > 400, "{conflicts} conflicts");
}

#[test]
fn changed_type_replaces_its_arguments() {
    let quorum = BTreeMap::from([
        ("x-delivery-limit", ArgumentValue::from(5)),
        ("x-max-length", 10.into()),
        ("x-dead-letter-exchange", "amq.topic".into()),
    ]);
    let stream =
        BTreeMap::from([("x-max-age", ArgumentValue::from("7D")), ("x-max-length-bytes", (1_i64 << 30).into())]);
    let classic = BTreeMap::from([("x-max-priority", ArgumentValue::from(5)), ("x-max-length", 20.into())]);
    let all = [(QueueType::Classic, classic), (QueueType::Quorum, quorum), (QueueType::Stream, stream)];
    for version in ["3.10.8", "4.0.5", "4.3.6"] {
        let profile = BrokerProfile::of(version.parse().unwrap());
        for (live_type, live) in &all {
            for (desired_type, desired) in all.iter().filter(|(kind, _)| kind != live_type) {
                assert!(check((*live_type, *desired_type), live, desired, &profile));
            }
        }
    }
}
