//! Predicts refusals of policies, operator policies and other records: invalid definitions, patterns and `apply-to`
//! values, keys that an operator policy cannot set, and fields that require a later version.

use super::refusal::{self, Refusal};
use crate::model::known_arguments::Versions;
use crate::model::record_kinds::{FieldShape, LOCAL, LOCAL_PROTOCOL_SINCE};
use crate::model::{ApplyTo, ArgumentValue, Arguments, BrokerVersion, Policy, PolicyName, Record, age};
use crate::rabbitmq::pattern::pattern_error;
use crate::rabbitmq::policy_keys::{Accepts, POLICY_KEYS, PolicyKey, Scope, Validator};
use crate::rabbitmq::profile::BrokerProfile;

/// Returns every policy key of RabbitMQ 3.8 and later, including the keys of bundled plugins.
pub fn policy_keys() -> impl Iterator<Item = &'static str> {
    POLICY_KEYS.iter().filter(|key| key.is_valid()).map(|key| key.name)
}

/// Returns the definition's keys that the broker accepts only if a plugin registers them.
pub fn plugin_keys(definition: &Arguments) -> impl Iterator<Item = &str> {
    definition.keys().map(String::as_str).filter(|key| has_scope(key, Scope::Plugin))
}

/// Returns the refusals of a definition: the first error from each validating module, then all unknown keys. Also
/// refuses an empty definition.
pub(super) fn definition(definition: &Arguments, version: BrokerVersion) -> Vec<Refusal> {
    if definition.is_empty() {
        return vec![
            Refusal::new("definition", "the policy has an empty definition").hint("add a key to the definition"),
        ];
    }
    let mut found = Vec::new();
    for validator in [Validator::Locator, Validator::Mirroring, Validator::General, Validator::Quorum] {
        if validator == Validator::Mirroring && !version.is_at_least(4, 0) {
            found.extend(mirroring(definition));
            continue;
        }
        let settings = definition.iter().filter_map(|(key, value)| Some((key, value, validation(key, version)?)));
        let mut settings = settings.filter(|(_, _, (of, _))| *of == validator);
        let wrong = settings.find_map(|(key, value, (_, accepts))| accepts.refusal(key, value, version));
        let together = || (validator == Validator::Quorum).then(|| delays(definition, version)).flatten();
        found.extend(wrong.or_else(together));
    }
    // The broker reports all unknown keys in one message.
    found.extend(definition.keys().filter(|key| !is_known(key, version)).map(|key| unknown(key, version)));
    found
}

fn is_known(key: &str, version: BrokerVersion) -> bool {
    validation(key, version).is_some()
        || has_scope(key, Scope::Plugin)
        || has_scope(key, Scope::Mirroring) && !version.is_at_least(4, 0)
}

fn has_scope(key: &str, scope: Scope) -> bool {
    PolicyKey::named(key).is_some_and(|key| key.scope == scope)
}

/// Returns the first version that supports a key; `None` if the key is unknown, or if every version or no version
/// supports it.
fn since(key: &str) -> Option<BrokerVersion> {
    let (first, ..) = PolicyKey::named(key)?.accepts.first()?;
    Some(first.since).filter(|since| *since > Versions::ALL.since)
}

/// Returns the validator and the accepted values of a key; `None` if no validator of this version accepts the key.
fn validation(key: &str, version: BrokerVersion) -> Option<(Validator, Accepts)> {
    let of_version = |(versions, ..): &&(Versions, Validator, Accepts)| versions.contains(version);
    PolicyKey::named(key)?.accepts.iter().find(of_version).map(|(_, validator, accepts)| (*validator, *accepts))
}

impl Accepts {
    /// Returns the refusal of a value; `None` if the broker accepts the value.
    fn refusal(&self, key: &str, value: &ArgumentValue, version: BrokerVersion) -> Option<Refusal> {
        let desired = match self {
            Self::Text => value.as_text().is_none().then(|| "a string".to_owned()),
            Self::Integer => value.as_integer().is_none().then(|| "an integer".to_owned()),
            Self::AtLeast(min) => {
                let is_valid = value.as_integer().is_some_and(|number| number >= *min);
                (!is_valid).then(|| format!("an integer of at least {min}"))
            }
            Self::Between(min, max) => {
                let is_valid = value.as_integer().is_some_and(|number| (*min..=*max).contains(&number));
                (!is_valid).then(|| format!("an integer from {min} to {max}"))
            }
            Self::Words([]) => {
                let text = format!("{key} is deprecated and not permitted by RabbitMQ {version}");
                return Some(Refusal::new(key, text).hint("use `queueLeaderLocator` instead"));
            }
            Self::Words(words) => {
                let is_valid = value.as_text().is_some_and(|word| words.contains(&word));
                (!is_valid).then(|| format!("one of {}", words.join(", ")))
            }
            Self::Age => {
                let is_valid = value.as_text().and_then(age).is_some();
                (!is_valid).then(|| "an integer followed by Y, M, D, h, m or s, such as `7D`".to_owned())
            }
        };
        desired.map(|desired| {
            let found = value.as_text().map_or_else(|| value.to_string(), |text| format!("the string {text:?}"));
            Refusal::new(key, format!("policy key {key} must be {desired}, found {found}"))
        })
    }
}

/// Validates delayed retries (`rabbit_quorum_queue:validate_delayed_retry_constraints`, 4.3.1).
fn delays(definition: &Arguments, version: BrokerVersion) -> Option<Refusal> {
    if !version.is_at_least(4, 3) {
        return None;
    }
    let (min, max) = (definition.get("delayed-retry-min"), definition.get("delayed-retry-max"));
    let retry_type = definition.get("delayed-retry-type").and_then(ArgumentValue::as_text);
    match (retry_type, min) {
        (Some(kind), None) if kind != "disabled" => {
            Some(Refusal::new("delayed-retry-min", format!("delayed-retry-type {kind} requires delayed-retry-min")))
        }
        (_, _) => {
            let (min, max) = (min?.as_integer()?, max?.as_integer()?);
            (max < min).then(|| {
                let text = format!("delayed-retry-max ({max}) is less than delayed-retry-min ({min})");
                Refusal::new("delayed-retry-max", text)
            })
        }
    }
}

/// Validates mirroring keys (`rabbit_mirror_queue_misc:validate_policy`, 3.13 and earlier).
fn mirroring(definition: &Arguments) -> Option<Refusal> {
    let first = definition.keys().find(|key| has_scope(key, Scope::Mirroring))?;
    let Some(mode) = definition.get("ha-mode") else {
        return Some(Refusal::new("ha-mode", format!("{first} is set without ha-mode")).hint("add ha-mode"));
    };
    mirroring_mode(mode, definition.get("ha-params")).or_else(|| {
        let rest = POLICY_KEYS.iter().filter(|key| key.scope == Scope::Mirroring);
        rest.filter_map(|key| Some((key, definition.get(key.name)?)))
            .flat_map(|(key, value)| key.accepts.iter().map(move |(_, _, accepts)| (key.name, accepts, value)))
            // The accepted words and numbers do not depend on the version.
            .find_map(|(key, accepts, value)| accepts.refusal(key, value, Versions::ALL.since))
    })
}

/// Validates the mirroring mode and its parameters.
fn mirroring_mode(mode: &ArgumentValue, params: Option<&ArgumentValue>) -> Option<Refusal> {
    let wrong = |text: &str| Some(Refusal::new("ha-params", text));
    match (mode.as_text(), params) {
        (Some("all"), None) => None,
        (Some("all"), Some(_)) => wrong("ha-mode all does not support ha-params"),
        (Some("exactly"), Some(ArgumentValue::Integer(1..))) => None,
        (Some("exactly"), _) => wrong("ha-mode exactly requires ha-params to be an integer of at least 1"),
        (Some("nodes"), Some(ArgumentValue::List(nodes))) if !nodes.is_empty() => nodes
            .iter()
            .any(|node| node.as_text().is_none())
            .then(|| wrong("ha-params must be a list of node names"))
            .flatten(),
        (Some("nodes"), _) => wrong("ha-mode nodes requires ha-params to be a list of node names"),
        (_, _) => Some(Refusal::new("ha-mode", format!("ha-mode must be one of all, exactly, nodes, found {mode}"))),
    }
}

/// Creates the refusal of a policy key that this version does not support.
fn unknown(key: &str, version: BrokerVersion) -> Refusal {
    match since(key) {
        Some(since) => {
            let since = since.series();
            let text = format!("policy key {key} requires RabbitMQ {since}; the broker is {version}");
            Refusal::new(key, text).hint("remove it from the spec")
        }
        None if has_scope(key, Scope::Mirroring) => {
            let text = format!("RabbitMQ 4.0 and later do not mirror classic queues and refuse {key}");
            Refusal::new(key, text).hint("use quorum queues")
        }
        None => Refusal::new(key, format!("policies do not support {key}")).hint("remove it from the spec"),
    }
}

/// The maximum length of a pattern in bytes, since 4.2.8 and 4.3.2 (`rabbit_re:max_pattern_length`).
const MAX_PATTERN_BYTES: usize = 1024;

/// Returns the refusals of a policy in the order of the broker's response: the errors in the definition, then all other
/// errors (`rabbit_parameter_validation:proplist` collects errors in reverse order).
///
/// topo reports a regular expression as invalid only if every PCRE version refuses it, because the broker version does
/// not determine the PCRE version.
pub(super) fn refusals(policy_name: &PolicyName, policy: &Policy, profile: &BrokerProfile) -> Vec<Refusal> {
    let version = profile.version;
    let mut found: Vec<Refusal> = refusal::dot_segment(policy_name.as_str()).into_iter().collect();
    found.extend(definition(&policy.definition, version));
    let by_type = matches!(policy.apply_to, ApplyTo::ClassicQueues | ApplyTo::QuorumQueues | ApplyTo::Streams);
    if by_type && !version.is_at_least(3, 12) {
        let text = format!("`applyTo: {}` requires RabbitMQ 3.12; the broker is {version}", policy.apply_to);
        found.push(Refusal::new("apply-to", text).hint("use `applyTo: queues`"));
    }
    found.extend(pattern_refusals("pattern", &policy.pattern, "use a shorter pattern, or several policies", version));
    found
}

/// Returns the refusals of a pattern that matches object names. `hint` is the hint for a pattern that is too long.
fn pattern_refusals(subject: &str, pattern: &str, hint: &str, version: BrokerVersion) -> Vec<Refusal> {
    let mut found = Vec::new();
    if let Some(problem) = pattern_error(pattern) {
        let text = format!("the pattern {pattern:?} is not a valid regular expression: {problem}");
        found
            .push(Refusal::new(subject, text).hint("add a backslash before a special character to match it literally"));
    }
    if pattern.len() > MAX_PATTERN_BYTES && limits_patterns(version) {
        let text = format!("the pattern is {} bytes long; the maximum is {MAX_PATTERN_BYTES}", pattern.len());
        found.push(Refusal::new(subject, text).hint(hint));
    }
    found
}

/// Returns true if a version limits the length of patterns.
fn limits_patterns(version: BrokerVersion) -> bool {
    let is_patched = |minor: u16, patch: u16| {
        (version.major, version.minor) == (4, minor) && version >= BrokerVersion::new(4, minor, patch)
    };
    is_patched(2, 8) || is_patched(3, 2) || version.is_at_least(4, 4)
}

/// Returns the refusals of a record. An operator policy is checked like a policy, with additional checks on its keys.
/// Other records are checked for unsupported kinds and fields, invalid patterns, and dot segments in names.
pub(super) fn record_refusals(record: &Record, profile: &BrokerProfile) -> Vec<Refusal> {
    let (row, version) = (record.id.kind.row(), profile.version);
    if let Some(since) = row.since.filter(|since| version < *since) {
        let require = if row.plural == row.word { "requires" } else { "require" };
        let text = format!("{} {require} RabbitMQ {since}; the broker is {version}", row.plural);
        return vec![Refusal::new("", text)];
    }
    let Some((name, policy)) = record.operator_policy() else {
        let patterns = row.settings().iter().filter(|field| field.shape == FieldShape::Pattern);
        let patterns = patterns.filter_map(|field| Some((field.name, record.fields.get(field.name)?.as_text()?)));
        let patterns = patterns.flat_map(|(name, text)| pattern_refusals(name, text, "use a shorter pattern", version));
        let fields = field_refusals(record, version);
        let segments = record.id.key.iter().filter_map(|segment| refusal::dot_segment(segment));
        return segments.chain(patterns).chain(fields).collect();
    };
    let is_unsupported_key = |subject: &str| {
        let key = PolicyKey::named(subject);
        policy.definition.contains_key(subject) && !key.is_some_and(|key| key.is_settable_by_operators(version))
    };
    let mut found = refusals(&name, &policy, profile);
    found.retain(|refusal| !is_unsupported_key(&refusal.subject));
    let unsupported = policy.definition.keys().filter(|key| is_unsupported_key(key));
    found.extend(unsupported.map(|key| match PolicyKey::named(key).and_then(PolicyKey::operator_policies_since) {
        Some(since) => {
            let text = format!("{key} in an operator policy requires RabbitMQ {since}; the broker is {version}");
            Refusal::new(key, text).hint("set it in a policy instead")
        }
        None => Refusal::new(key, format!("an operator policy cannot set {key}")).hint("set it in a policy instead"),
    }));
    found
}

/// Returns the refusals of fields and values that this version does not support.
fn field_refusals(record: &Record, version: BrokerVersion) -> Vec<Refusal> {
    let mut found = Vec::new();
    for field in record.id.fields() {
        let value = record.fields.get(field.name).filter(|value| field.default_value().as_ref() != Some(value));
        let Some(value) = value else { continue };
        let is_local = field.key == "protocol" && value.as_text() == Some(LOCAL);
        let (what, since) = match field.since {
            Some(since) => (field.key.to_owned(), since),
            None if is_local => (format!("protocol: {LOCAL}"), LOCAL_PROTOCOL_SINCE),
            None => continue,
        };
        if version < since {
            let text = format!("`{what}` requires RabbitMQ {since}; the broker is {version}");
            found.push(Refusal::new(field.name, text).hint("remove it from the spec"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_supported_by_a_version() {
        let versions =
            [(3, 8, 0), (3, 13, 0), (4, 3, 6)].map(|(major, minor, patch)| BrokerVersion::new(major, minor, patch));
        for key in policy_keys() {
            assert!(versions.iter().any(|version| is_known(key, *version)), "{key}");
        }
        assert!(!is_known("max-lenght", versions[2]));
    }
}

#[cfg(test)]
mod operator_policy_tests {
    use super::*;
    use crate::model::{Arguments, RecordId, RecordKind};

    #[test]
    fn operator_policy_keys_depend_on_the_version() {
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
            let key = PolicyKey::named(key).unwrap();
            assert_eq!(key.is_settable_by_operators(version.parse().unwrap()), has, "{} on {version}", key.name);
        }
    }

    #[test]
    fn unsupported_keys_are_refused_once() {
        let fields: Arguments =
            serde_json::from_str(r#"{"pattern":"q","definition":{"overflow":1,"ha-mode":"all","max-length":1}}"#)
                .unwrap();
        let record = Record::new(RecordId::named(RecordKind::OperatorPolicy, "o"), fields).unwrap();
        let texts = |version: &str| -> Vec<String> {
            let profile = BrokerProfile::of(version.parse().unwrap());
            record_refusals(&record, &profile).into_iter().map(|refusal| refusal.text).collect()
        };
        assert_eq!(
            texts("3.10.8"),
            [
                "an operator policy cannot set ha-mode",
                "overflow in an operator policy requires RabbitMQ 3.12.7; the broker is 3.10.8"
            ]
        );
    }
}
