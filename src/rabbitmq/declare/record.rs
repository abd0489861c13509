//! Predicts refusals of records.

use super::{Refusal, policy};
use crate::model::{BrokerVersion, Record};
use crate::rabbitmq::BrokerProfile;

/// The keys of operator policies that every version has (`rabbit_policies:register`, `operator_policy_validator`).
const ALWAYS: [&str; 7] = [
    "expires",
    "message-ttl",
    "max-length",
    "max-length-bytes",
    "max-in-memory-length",
    "max-in-memory-bytes",
    "delivery-limit",
];

/// The keys that newer versions add.
const LATER: [(&str, BrokerVersion); 3] = [
    ("queue-version", BrokerVersion::new(3, 12, 7)),
    ("overflow", BrokerVersion::new(3, 12, 7)),
    ("target-group-size", BrokerVersion::new(3, 13, 0)),
];

/// Returns the keys that an operator policy can have.
pub fn operator_keys(version: BrokerVersion) -> Vec<&'static str> {
    // A patch of 3.11 added one key.
    let is_patched = (version.major, version.minor) == (3, 11) && version >= BrokerVersion::new(3, 11, 24);
    let has = |(key, since): &(&str, BrokerVersion)| version >= *since || is_patched && *key == "queue-version";
    ALWAYS.into_iter().chain(LATER.into_iter().filter(has).map(|(key, _)| key)).collect()
}

/// Returns the reasons why the broker refuses a record.
pub(super) fn refusals(record: &Record, profile: &BrokerProfile) -> Vec<Refusal> {
    let Some((name, policy)) = record.operator_policy() else { return Vec::new() };
    let version = profile.version;
    let keys = operator_keys(version);
    let is_of_other_key = |subject: &str| policy.definition.contains_key(subject) && !keys.contains(&subject);
    let mut found = policy::refusals(&name, &policy, profile);
    found.retain(|refusal| !is_of_other_key(&refusal.subject));
    let refused = policy.definition.keys().filter(|key| is_of_other_key(key));
    found.extend(refused.map(|key| match LATER.iter().find(|(later, _)| later == key) {
        Some((_, since)) => {
            let text = format!("an operator policy can set {key} since RabbitMQ {since}; the broker is {version}");
            Refusal::new(key, text).hint("set it in a policy instead")
        }
        None => Refusal::new(key, format!("an operator policy cannot set {key}")).hint("set it in a policy instead"),
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Arguments, RecordId, RecordKind};

    #[test]
    fn keys_of_an_operator_policy_depend_on_the_version() {
        for (version, key, has) in [
            ("3.8.9", "max-length", true),
            ("3.8.9", "overflow", false),
            ("3.11.23", "queue-version", false),
            ("3.11.24", "queue-version", true),
            ("3.12.6", "queue-version", false),
            ("3.12.7", "overflow", true),
            ("3.12.7", "target-group-size", false),
            ("3.13.0", "target-group-size", true),
            ("4.3.6", "dead-letter-exchange", false),
        ] {
            assert_eq!(operator_keys(version.parse().unwrap()).contains(&key), has, "{key} on {version}");
        }
    }

    #[test]
    fn other_keys_are_refused_once() {
        let fields: Arguments =
            serde_json::from_str(r#"{"pattern":"q","definition":{"overflow":1,"ha-mode":"all","max-length":1}}"#)
                .unwrap();
        let record = Record::new(RecordId::named(RecordKind::OperatorPolicy, "o"), fields).unwrap();
        let texts = |version: &str| -> Vec<String> {
            let profile = BrokerProfile::of(version.parse().unwrap());
            refusals(&record, &profile).into_iter().map(|refusal| refusal.text).collect()
        };
        assert_eq!(
            texts("3.10.8"),
            [
                "an operator policy cannot set ha-mode",
                "an operator policy can set overflow since RabbitMQ 3.12.7; the broker is 3.10.8"
            ]
        );
    }
}
