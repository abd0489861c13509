//! Reports upstreams that no policy in the spec uses directly, in a set or by a pattern. Such an upstream has no links.

use super::unknown_upstream::{ALL, SET_KEY, UPSTREAM_KEY};
use crate::lint::{Finding, Rule, Subject};
use crate::model::{ObjectId, RecordId, RecordKind};
use crate::rabbitmq::Pattern;
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "unused-upstream",
    severity: Severity::Warning,
    other_severities: &[],
    is_optional: false,
    summary: "no policy in the spec uses the upstream",
    check,
    page: include_str!("unused_upstream.md"),
};

/// The policy key that selects upstreams by name with a regular expression.
const PATTERN_KEY: &str = "federation-upstream-pattern";

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let values = |key: &'static str| {
        let settings = subject.spec.policies.values().filter_map(move |policy| policy.definition.get(key));
        settings.filter_map(|setting| setting.value.as_text())
    };
    let in_set = |set: &str, upstream: &str| {
        let id = RecordId::named(RecordKind::UpstreamSet, set);
        let declared = subject.spec.records.get(&id);
        set == ALL || declared.is_some_and(|it| it.record.upstreams().any(|member| member == upstream))
    };
    let is_used = |upstream: &str| {
        values(UPSTREAM_KEY).any(|name| name == upstream)
            || values(SET_KEY).any(|set| in_set(set, upstream))
            || values(PATTERN_KEY).any(|pattern| Pattern::new(pattern).matches(upstream) != Some(false))
    };
    let upstreams = subject.spec.records.keys().filter(|id| id.kind == RecordKind::Upstream);
    let unused = upstreams.filter(|id| id.name().is_some_and(|name| !is_used(name)));
    let finding = |id: &RecordId| {
        let hint = "add a policy with `federationUpstream`, `federationUpstreamSet` or `federationUpstreamPattern`";
        RULE.finding(subject, &ObjectId::Record(id.clone()), "uri", "no policy in the spec uses the upstream")
            .hint(hint)
    };
    unused.map(finding).collect()
}
