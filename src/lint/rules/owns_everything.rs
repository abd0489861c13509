//! Reports specs that own every name in their vhost.

use crate::lint::{Finding, Rule, Subject};
use crate::model::{Glob, ObjectId};
use crate::spec::Severity;

pub(super) static RULE: Rule = Rule {
    name: "owns-everything",
    severity: Severity::Info,
    other_severities: &[],
    is_optional: false,
    summary: "`owns` matches every name in the vhost",
    check,
    page: include_str!("owns_everything.md"),
};

/// Names that have nothing in common. A glob that matches all of them matches every name.
const PROBES: [&str; 3] = ["a", "zzz.qqq/7", "~"];

fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let is_all = |glob: &Glob| PROBES.iter().all(|name| glob.matches(name));
    // A spec with `ignore` excludes the objects of other owners.
    let Some(all) =
        subject.spec.owns.iter().find(|glob| is_all(&glob.value)).filter(|_| subject.spec.ignore.is_empty())
    else {
        return Vec::new();
    };
    let text = format!(
        "`owns: [\"{}\"]` matches every name in the vhost: `--prune` deletes every object that no spec declares",
        all.value.as_str()
    );
    let hint =
        "list the names that you manage: `owns: [\"orders.*\"]`; or exclude other names: `ignore: [\"celery*\"]`";
    vec![RULE.finding_at(ObjectId::Vhost, all.at, text).hint(hint)]
}
