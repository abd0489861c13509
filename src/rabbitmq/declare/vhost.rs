//! Predicts refusals of vhosts and of changes to vhosts, including settings that the broker would ignore.

use super::refusal::Refusal;
use crate::model::{BrokerVersion, QueueType, Vhost};
use crate::rabbitmq::profile::BrokerProfile;

/// The first version that supports a default queue type (`rabbit_vhost:do_add`; not in 3.10.7).
const DEFAULT_TYPE: BrokerVersion = BrokerVersion::new(3, 10, 8);
/// The first version that supports non-ASCII characters in tags (`rabbit_vhost:parse_tags`).
const UNICODE_TAGS: BrokerVersion = BrokerVersion::new(3, 11, 5);
/// The first version that can change the default queue type of an existing vhost.
const DEFAULT_TYPE_CHANGES: BrokerVersion = BrokerVersion::new(3, 11, 17);
/// The first version that can change the description and the tags of an existing vhost.
const METADATA_CHANGES: BrokerVersion = BrokerVersion::new(3, 9, 5);

pub(super) fn refusals(vhost: &Vhost, profile: &BrokerProfile) -> Vec<Refusal> {
    let version = profile.version;
    // Earlier versions decode the tag as Latin-1.
    if version < UNICODE_TAGS
        && let Some(tag) = vhost.tags.iter().flatten().find(|tag| !tag.is_ascii())
    {
        let text = format!("tag `{tag}` requires RabbitMQ {UNICODE_TAGS}; the broker is {version}");
        return vec![Refusal::new("tags", text).hint("use only ASCII characters")];
    }
    let Some(default) = &vhost.default_queue_type else { return Vec::new() };
    // Earlier versions ignore the key: they respond with 201 but set no default queue type.
    if version < DEFAULT_TYPE {
        let text = format!("a default queue type requires RabbitMQ {DEFAULT_TYPE}; the broker is {version}");
        return vec![Refusal::new("default_queue_type", text).hint("set `type` on each queue")];
    }
    // RabbitMQ 4.0 and earlier respond with 500, and later versions with 400. For an existing vhost, RabbitMQ 4.0
    // accepts any string, and every queue declaration then fails.
    if QueueType::named(default).is_none() {
        let text = format!("the default queue type cannot be `{default}`");
        return vec![Refusal::new("default_queue_type", text).hint("use one of classic, quorum, stream")];
    }
    Vec::new()
}

/// Returns the refusals of a change to an existing vhost.
///
/// Old versions respond with 204 but ignore some changes (`rabbit_vhost:put_vhost`).
pub fn vhost_change_refusals(before: &Vhost, after: &Vhost, profile: &BrokerProfile) -> Vec<Refusal> {
    let version = profile.version;
    let mut found = refusals(after, profile);
    let differs = |before: &Option<String>, after: &Option<String>| after.is_some() && before != after;
    let mut refuse = |subject: &str, setting: &str, since: BrokerVersion| {
        let text =
            format!("changing {setting} on an existing vhost requires RabbitMQ {since}; the broker is {version}");
        found.push(Refusal::new(subject, text).hint("remove it from the spec"));
    };
    if differs(&before.description, &after.description) && version < METADATA_CHANGES {
        refuse("description", "the description", METADATA_CHANGES);
    }
    if after.tags.is_some() && before.tags != after.tags && version < METADATA_CHANGES {
        refuse("tags", "the tags", METADATA_CHANGES);
    }
    if differs(&before.default_queue_type, &after.default_queue_type)
        && (DEFAULT_TYPE..DEFAULT_TYPE_CHANGES).contains(&version)
    {
        refuse("default_queue_type", "the default queue type", DEFAULT_TYPE_CHANGES);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vhost(description: Option<&str>, default: Option<&str>) -> Vhost {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Vhost { description: text(description), tags: None, default_queue_type: text(default) }
    }

    fn subjects(before: Option<Vhost>, after: Vhost, version: &str) -> Vec<String> {
        let profile = BrokerProfile::of(version.parse().unwrap());
        let found = match before {
            Some(before) => vhost_change_refusals(&before, &after, &profile),
            None => refusals(&after, &profile),
        };
        found.into_iter().map(|refusal| refusal.subject).collect()
    }

    #[test]
    fn default_queue_type_depends_on_the_version() {
        let (plain, quorum) = (vhost(None, None), vhost(None, Some("quorum")));
        for (version, created, changed) in
            [("3.8.9", 1, 1), ("3.10.7", 1, 1), ("3.10.8", 0, 1), ("3.11.16", 0, 1), ("3.11.17", 0, 0), ("4.3.6", 0, 0)]
        {
            assert_eq!(subjects(None, quorum.clone(), version).len(), created, "{version}");
            assert_eq!(subjects(Some(plain.clone()), quorum.clone(), version).len(), changed, "{version}");
            assert_eq!(subjects(None, plain.clone(), version), [""; 0]);
        }
        assert_eq!(subjects(None, vhost(None, Some("bogus")), "4.0.5"), ["default_queue_type"]);
    }

    #[test]
    fn old_versions_cannot_change_a_description() {
        let (one, two) = (vhost(Some("one"), None), vhost(Some("two"), None));
        assert_eq!(subjects(None, one.clone(), "3.8.9"), [""; 0]);
        assert_eq!(subjects(Some(one.clone()), two.clone(), "3.8.9"), ["description"]);
        assert_eq!(subjects(Some(one.clone()), one.clone(), "3.8.9"), [""; 0]);
        assert_eq!(subjects(Some(one.clone()), vhost(None, None), "3.8.9"), [""; 0]);
        assert_eq!(subjects(Some(one), two, "3.10.8"), [""; 0]);
    }
}
