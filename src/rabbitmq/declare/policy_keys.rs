//! The keys of policies, and what the broker takes for each: its validators, version by version.
//!
//! Sources: `rabbit_policies`, `rabbit_mirror_queue_misc` with its modes, `rabbit_queue_location_validator`, and
//! `validate_policy` of `rabbit_quorum_queue` and `rabbit_classic_queue`, at all minor versions from 3.8 to 4.3.

use super::Refusal;
use crate::model::known_arguments::KNOWN_ARGUMENTS;
use crate::model::{ArgumentValue, Arguments, BrokerVersion, age};

/// Keys that a plugin validates, so only the broker knows whether they are accepted: federation and sharding.
const PLUGIN_KEYS: [&str; 5] =
    ["federation-upstream", "federation-upstream-pattern", "federation-upstream-set", "routing-key", "shards-per-node"];

/// What a value has to be.
enum Takes {
    /// Any text.
    Text,
    /// A whole number of at least this; a float is none, however whole.
    AtLeast(i64),
    /// A whole number from the first to the second.
    Between(i64, i64),
    /// Any whole number.
    Integer,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Digits and a unit, `7D`.
    Age,
}

/// The module that validates a key. A definition is given to one module after the other, and the first mistake of the
/// first that finds one is the answer. Their order is that of a hash table: it differs from one Erlang to another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Validator {
    Locator,
    Mirroring,
    General,
    Quorum,
}

/// Keys that are no queue's argument, and no plugin's.
const KEYS_OF_NO_ARGUMENT: [&str; 1] = ["alternate-exchange"];

/// Every key that some version from 3.8 on knows, and those of the plugins that come with it.
pub fn policy_keys() -> impl Iterator<Item = &'static str> {
    let of_arguments = KNOWN_ARGUMENTS.iter().filter_map(|known| known.policy_key);
    of_arguments.chain(KEYS_OF_NO_ARGUMENT).chain(MIRRORING_KEYS).chain(PLUGIN_KEYS)
}

/// The keys of a definition that a plugin has to know.
pub fn plugin_keys(definition: &Arguments) -> impl Iterator<Item = &str> {
    definition.keys().map(String::as_str).filter(|key| PLUGIN_KEYS.contains(key))
}

/// What is wrong with a definition: of what each module finds, the first.
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
        let own = definition.iter().filter_map(|(key, value)| Some((key, value, known(key, version)?)));
        let mut own = own.filter(|(_, _, (of, _))| *of == validator);
        let wrong = own.find_map(|(key, value, (_, takes))| takes.refusal(key, value, version));
        let together = || (validator == Validator::Quorum).then(|| delays(definition, version)).flatten();
        found.extend(wrong.or_else(together));
    }
    // Only what no module knows is left then, and all of it is named in one sentence.
    found.extend(definition.keys().filter(|key| !is_known(key, version)).map(|key| unknown(key, version)));
    found
}

fn is_known(key: &str, version: BrokerVersion) -> bool {
    known(key, version).is_some()
        || PLUGIN_KEYS.contains(&key)
        || MIRRORING_KEYS.contains(&key) && !version.is_at_least(4, 0)
}

/// The first version that knows a key which none before it knows.
fn since(key: &str) -> Option<(u16, u16)> {
    Some(match key {
        "initial-cluster-size" | "max-age" | "queue-leader-locator" | "stream-max-segment-size-bytes" => (3, 9),
        "dead-letter-strategy" | "queue-version" => (3, 10),
        "consumer-timeout" => (3, 12),
        "stream-filter-size-bytes" | "target-group-size" => (3, 13),
        "consumer-disconnected-timeout" | "delayed-retry-max" | "delayed-retry-min" | "delayed-retry-type" => (4, 3),
        _ => return None,
    })
}

/// Who validates a key, and what it takes; `None` where no one knows it.
fn known(key: &str, version: BrokerVersion) -> Option<(Validator, Takes)> {
    use Validator::{General, Locator, Quorum};
    if since(key).is_some_and(|(major, minor)| !version.is_at_least(major, minor)) {
        return None;
    }
    Some(match key {
        "alternate-exchange" | "dead-letter-exchange" | "dead-letter-routing-key" => (General, Takes::Text),
        "consumer-disconnected-timeout"
        | "consumer-timeout"
        | "initial-cluster-size"
        | "max-in-memory-bytes"
        | "max-in-memory-length"
        | "max-length"
        | "max-length-bytes"
        | "message-ttl" => (General, Takes::AtLeast(0)),
        "dead-letter-strategy" => (General, Takes::Words(&["at-least-once", "at-most-once"])),
        "delivery-limit" if version.is_at_least(4, 0) => (General, Takes::Integer),
        "delivery-limit" => (General, Takes::AtLeast(0)),
        "expires" => (General, Takes::AtLeast(1)),
        "max-age" => (General, Takes::Age),
        "overflow" => (General, Takes::Words(&["drop-head", "reject-publish", "reject-publish-dlx"])),
        "queue-leader-locator" if version.is_at_least(3, 10) => {
            (General, Takes::Words(&["balanced", "client-local", "least-leaders", "random"]))
        }
        "queue-leader-locator" => (General, Takes::Words(&["client-local", "least-leaders", "random"])),
        "queue-mode" => (General, Takes::Words(&["default", "lazy"])),
        "queue-version" => (General, Takes::Between(1, 2)),
        "stream-filter-size-bytes" => (General, Takes::Between(16, 255)),
        "stream-max-segment-size-bytes" => (General, Takes::Between(0, 3_000_000_000)),
        "delayed-retry-max" | "delayed-retry-min" | "target-group-size" => (Quorum, Takes::AtLeast(1)),
        "delayed-retry-type" => (Quorum, Takes::Words(&["all", "disabled", "failed", "returned"])),
        // Deprecated, and not permitted from 4.3 on, unless the node is told otherwise.
        "queue-master-locator" if version.is_at_least(4, 3) => (Locator, Takes::Words(&[])),
        "queue-master-locator" if version.is_at_least(4, 0) => {
            (Locator, Takes::Words(&["balanced", "client-local", "least-leaders", "min-masters", "random"]))
        }
        "queue-master-locator" => (Locator, Takes::Words(&["client-local", "min-masters", "random"])),
        _ => return None,
    })
}

impl Takes {
    fn refusal(&self, key: &str, value: &ArgumentValue, version: BrokerVersion) -> Option<Refusal> {
        let desired = match self {
            Self::Text => value.as_text().is_none().then(|| "text".to_owned()),
            Self::Integer => value.as_integer().is_none().then(|| "an integer".to_owned()),
            Self::AtLeast(least) => {
                let fits = value.as_integer().is_some_and(|number| number >= *least);
                (!fits).then(|| format!("an integer of at least {least}"))
            }
            Self::Between(least, most) => {
                let fits = value.as_integer().is_some_and(|number| (*least..=*most).contains(&number));
                (!fits).then(|| format!("an integer from {least} to {most}"))
            }
            Self::Words([]) => {
                let text = format!("{key} is deprecated and not permitted by RabbitMQ {version}");
                return Some(Refusal::new(key, text).hint("use `queueLeaderLocator` instead"));
            }
            Self::Words(words) => {
                let fits = value.as_text().is_some_and(|word| words.contains(&word));
                (!fits).then(|| format!("one of {}", words.join(", ")))
            }
            Self::Age => {
                let fits = value.as_text().and_then(age).is_some();
                (!fits).then(|| "digits and one of Y, M, D, h, m, s, such as `7D`".to_owned())
            }
        };
        desired.map(|desired| {
            let shown = value.as_text().map_or_else(|| value.to_string(), |text| format!("the string {text:?}"));
            Refusal::new(key, format!("{key} of a policy must be {desired}, found {shown}"))
        })
    }
}

/// `rabbit_quorum_queue:validate_delayed_retry_constraints`, 4.3.
fn delays(definition: &Arguments, version: BrokerVersion) -> Option<Refusal> {
    if !version.is_at_least(4, 3) {
        return None;
    }
    let (least, most) = (definition.get("delayed-retry-min"), definition.get("delayed-retry-max"));
    let delays = definition.get("delayed-retry-type").and_then(ArgumentValue::as_text);
    match (delays, least) {
        (Some(kind), None) if kind != "disabled" => {
            Some(Refusal::new("delayed-retry-min", format!("delayed-retry-type {kind} needs a delayed-retry-min")))
        }
        (_, _) => {
            let (least, most) = (least?.as_integer()?, most?.as_integer()?);
            (most < least).then(|| {
                let text = format!("delayed-retry-max, {most}, is less than delayed-retry-min, {least}");
                Refusal::new("delayed-retry-max", text)
            })
        }
    }
}

const MIRRORING_KEYS: [&str; 6] =
    ["ha-mode", "ha-params", "ha-promote-on-failure", "ha-promote-on-shutdown", "ha-sync-batch-size", "ha-sync-mode"];

/// `rabbit_mirror_queue_misc:validate_policy`, up to 3.13.
fn mirroring(definition: &Arguments) -> Option<Refusal> {
    let first = MIRRORING_KEYS.iter().find(|key| definition.contains_key(**key))?;
    let Some(mode) = definition.get("ha-mode") else {
        return Some(Refusal::new("ha-mode", format!("{first} is set without ha-mode")).hint("add ha-mode"));
    };
    mirrors(mode, definition.get("ha-params")).or_else(|| {
        let word = |key: &'static str, words: &'static [&'static str]| (key, Takes::Words(words));
        let rest = [
            word("ha-sync-mode", &["automatic", "manual"]),
            ("ha-sync-batch-size", Takes::AtLeast(1)),
            word("ha-promote-on-shutdown", &["always", "when-synced"]),
            word("ha-promote-on-failure", &["always", "when-synced"]),
        ];
        let said = rest.into_iter().filter_map(|(key, takes)| Some((key, takes, definition.get(key)?)));
        // The version is no matter to words and numbers.
        said.into_iter().find_map(|(key, takes, value)| takes.refusal(key, value, BrokerVersion::new(3, 8, 0)))
    })
}

/// The mode, and what goes with it.
fn mirrors(mode: &ArgumentValue, params: Option<&ArgumentValue>) -> Option<Refusal> {
    let wrong = |text: &str| Some(Refusal::new("ha-params", text));
    match (mode.as_text(), params) {
        (Some("all"), None) => None,
        (Some("all"), Some(_)) => wrong("ha-mode all does not support ha-params"),
        (Some("exactly"), Some(ArgumentValue::Integer(1..))) => None,
        (Some("exactly"), _) => wrong("ha-mode exactly needs an integer of at least 1 as ha-params"),
        (Some("nodes"), Some(ArgumentValue::List(nodes))) if !nodes.is_empty() => nodes
            .iter()
            .any(|node| node.as_text().is_none())
            .then(|| wrong("ha-params must be names of nodes"))
            .flatten(),
        (Some("nodes"), _) => wrong("ha-mode nodes needs a list of nodes as ha-params"),
        (_, _) => Some(Refusal::new("ha-mode", format!("ha-mode must be one of all, exactly, nodes, found {mode}"))),
    }
}

fn unknown(key: &str, version: BrokerVersion) -> Refusal {
    match since(key) {
        Some((major, minor)) => {
            let text = format!("policies support {key} since RabbitMQ {major}.{minor}, the broker is {version}");
            Refusal::new(key, text).hint("remove it from the spec")
        }
        None if MIRRORING_KEYS.contains(&key) => {
            let text = format!("RabbitMQ 4.0 and later do not mirror classic queues and refuse {key}");
            Refusal::new(key, text).hint("use quorum queues")
        }
        None => Refusal::new(key, format!("policies do not support {key}")).hint("remove it from the spec"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_known_to_some_version() {
        let versions = [(3, 8), (3, 13), (4, 3)].map(|(major, minor)| BrokerVersion::new(major, minor, 0));
        for key in policy_keys() {
            assert!(versions.iter().any(|version| is_known(key, *version)), "{key}");
        }
        assert!(!is_known("max-lenght", versions[2]));
    }
}
