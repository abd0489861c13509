//! Defines the JSON document of test results, and generates its JSON Schema.

use crate::model::{Binding, BrokerVersion, ExchangeName, QueueName, VhostName};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The version of the document format. Every incompatible change increments the version.
pub(super) const FORMAT_VERSION: u32 = 1;

/// The results of test files.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Results {
    /// The version of the document format.
    pub(super) format_version: u32,
    /// The number of passed cases.
    pub(super) passed: u64,
    /// The number of failed cases, including those with an unknown result.
    pub(super) failed: u64,
    /// The number of skipped cases.
    pub(super) skipped: u64,
    /// The cases. A case is listed once for each version.
    pub(super) cases: Vec<Case>,
    /// The coverage of each spec; absent without `--coverage` or `--fail-under`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) coverage: Vec<Coverage>,
}

/// The result of a case.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Case {
    /// The name of the case.
    pub(super) name: String,
    /// The vhost of the spec.
    pub(super) vhost: VhostName,
    /// The simulated version.
    pub(super) broker_version: BrokerVersion,
    /// `live` if the test file also ran on a broker.
    pub(super) mode: Mode,
    /// The position of the case in the test file.
    pub(super) source: Position,
    /// The topology in which the case ran; absent for the topology of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) against: Option<Against>,
    /// The number by which times were divided on the broker; absent for `offline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time_scale: Option<u64>,
    /// The comparison with the broker; absent for `offline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) live: Option<Live>,
    /// The result.
    pub(super) result: CaseResult,
    /// The differences between the expected and the simulated result; absent unless the case failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) mismatches: Vec<Mismatch>,
    /// The simulated events in their order; absent unless the case failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Event>,
    /// The ends of all copies; absent unless the case failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ends: Vec<EndedCopy>,
}

/// Where the cases of a file ran.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Mode {
    /// In the simulation.
    Offline,
    /// In the simulation and on a broker.
    Live,
}

/// The result of a case.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum CaseResult {
    /// All results are as expected.
    Passed,
    /// Some results differ.
    Failed,
    /// The case does not apply to this version.
    Skipped,
    /// The simulation does not know the result. The case counts as failed.
    Unknown,
}

/// A position in a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Position {
    /// The file.
    pub(super) file: String,
    /// The line, starting at 1.
    pub(super) line: usize,
}

/// A topology other than the topology of the spec.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "topology")]
pub(super) enum Against {
    /// The topology of a broker.
    Live {
        /// The URL of the management API.
        url: String,
    },
    /// The topology of a broker after the plan.
    Planned {
        /// The URL of the management API.
        url: String,
    },
    /// The topology of a definitions file or of another spec.
    File {
        /// The file.
        file: String,
    },
}

/// The comparison of the broker and the simulation.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "result")]
pub(super) enum Live {
    /// The broker and the simulation agree.
    Agrees,
    /// The broker and the simulation differ.
    Differs,
    /// The case did not run on the broker.
    NotRun {
        /// The reason.
        reason: String,
    },
}

/// A difference between the expected and the simulated result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mismatch {
    /// The key of the expectation in the test file. `unknown` if the simulation does not know the result, `live` if the
    /// broker and the simulation differ, and `exchange` if the exchange does not exist in another topology.
    pub(super) aspect: &'static str,
    /// The queue; absent if the difference concerns all queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<QueueName>,
    /// The expected result, in words.
    pub(super) expected: String,
    /// The simulated result, in words.
    pub(super) actual: String,
    /// The whole difference, in words.
    pub(super) message: String,
    /// The setting or the binding that determines the result, in words; absent if topo knows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) because: Option<String>,
    /// The position in the spec that determines the result; absent if topo knows none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spec: Option<Position>,
}

/// A simulated event.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    /// The event.
    #[serde(flatten)]
    pub(super) kind: EventKind,
    /// The time since the first publish, in milliseconds.
    pub(super) at_ms: i64,
    /// The number of the published message, starting at 1.
    pub(super) message: u64,
}

/// The kinds of events.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "event")]
pub(super) enum EventKind {
    /// An application or a worker published a message.
    Published {
        /// The exchange.
        exchange: ExchangeName,
        /// The routing key.
        routing_key: String,
        /// The queues that received it.
        queues: BTreeSet<QueueName>,
    },
    /// A worker received a message.
    Delivered {
        /// The queue.
        queue: QueueName,
        /// The number of the delivery by this queue, starting at 1.
        attempt: usize,
        /// The behavior of the worker; absent if no further delivery was expected.
        #[serde(skip_serializing_if = "Option::is_none")]
        behavior: Option<&'static str>,
        /// The AMQP method that the worker calls; absent if it calls none.
        #[serde(skip_serializing_if = "Option::is_none")]
        method: Option<&'static str>,
        /// The flag `requeue` of the method; absent if it has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        requeue: Option<bool>,
    },
    /// A queue dead-lettered a message.
    DeadLettered {
        /// The queue.
        queue: QueueName,
        /// The reason.
        reason: &'static str,
        /// The dead-letter exchange; absent if the queue has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        exchange: Option<ExchangeName>,
        /// The queues that received it.
        queues: BTreeSet<QueueName>,
    },
    /// A full queue rejected a message.
    Refused {
        /// The queue.
        queue: QueueName,
    },
}

/// The end of a copy.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndedCopy {
    /// The queue.
    pub(super) queue: QueueName,
    /// The final state, as in test files.
    pub(super) end: &'static str,
    /// The exchange of the copy.
    pub(super) exchange: ExchangeName,
    /// The routing key of the copy.
    pub(super) routing_key: String,
}

/// The coverage of a spec.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Coverage {
    /// The specs.
    pub(super) spec: String,
    /// The vhost.
    pub(super) vhost: VhostName,
    /// The simulated version.
    pub(super) broker_version: BrokerVersion,
    /// The number of covered parts.
    pub(super) covered: usize,
    /// The number of parts that cases can cover.
    pub(super) total: usize,
    /// The share of covered parts, in percent.
    pub(super) percent: f64,
    /// The parts of the routing.
    pub(super) parts: Vec<Part>,
}

/// A part of the routing, with its coverage.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    /// The part.
    #[serde(flatten)]
    pub(super) kind: PartKind,
    /// `covered`, `exercised` (no case fails without the part), `notExercised`, `redundant`, `unreachable` or `unknown`.
    pub(super) state: &'static str,
    /// The cases that fail without the part.
    pub(super) cases: Vec<String>,
    /// The position in the spec; absent if the spec does not contain the part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<Position>,
}

/// The kinds of parts.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub(super) enum PartKind {
    /// A binding.
    Binding {
        /// The binding.
        binding: Binding,
    },
    /// The alternate exchange of an exchange.
    AlternateExchange {
        /// The exchange.
        exchange: ExchangeName,
    },
    /// A reason for which a queue dead-letters messages.
    DeadLettering {
        /// The queue.
        queue: QueueName,
        /// The reason.
        reason: &'static str,
    },
}

/// Returns the JSON Schema of the results. It uses draft-07, like the schema of the spec.
pub fn schema() -> Value {
    let mut schema =
        SchemaSettings::draft07().for_serialize().into_generator().into_root_schema_for::<Results>().to_value();
    schema["title"] = Value::from("topo test");
    schema["description"] = Value::from("The document that `topo test --format json` prints.");
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With `TOPO_UPDATE=1`, the test regenerates the file.
    #[test]
    fn committed_schema_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/test-results.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == text, "schema/test-results.schema.json is outdated: run the tests with TOPO_UPDATE=1");
    }
}
