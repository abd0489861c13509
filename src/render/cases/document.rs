//! Defines the JSON document for test results, and generates its JSON Schema.

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
    /// The cases. Each case appears once for each RabbitMQ version.
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
    /// The simulated RabbitMQ version.
    pub(super) broker_version: BrokerVersion,
    /// `live` if topo also ran the test file on a broker.
    pub(super) mode: Mode,
    /// The position of the case in the test file.
    pub(super) source: Position,
    /// The topology that `--against` selects; absent for the topology of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) against: Option<Against>,
    /// The divisor of all delays and TTLs on the broker; absent if `mode` is `offline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time_scale: Option<u64>,
    /// The comparison with the broker; absent if `mode` is `offline`, or if `only` excludes this RabbitMQ version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) live: Option<Live>,
    /// The result.
    pub(super) result: CaseResult,
    /// The differences between the expected and simulated results; absent unless the case failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) mismatches: Vec<Mismatch>,
    /// The simulated events, in order; absent unless the case failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<Event>,
    /// The final state of each message copy; absent unless the case failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) ends: Vec<EndedCopy>,
}

/// The mode of a test run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Mode {
    /// Only in the simulation.
    Offline,
    /// In the simulation and on a broker.
    Live,
}

/// The result of a case.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum CaseResult {
    /// All expectations are met.
    Passed,
    /// An expectation is not met, the message cannot be published, or the broker and the simulation differ.
    Failed,
    /// The case does not apply to this RabbitMQ version.
    Skipped,
    /// topo cannot determine the result. The case counts as failed.
    Unknown,
}

/// A position in a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Position {
    /// The path of the file.
    pub(super) file: String,
    /// The line, starting at 1.
    pub(super) line: usize,
}

/// The topology that `--against` selects.
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
        /// The path of the file.
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
        /// The reason why the case did not run on the broker.
        reason: String,
    },
}

/// A difference between the expected and simulated results.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mismatch {
    /// The key of the expectation in the test file, or one of three values. `unknown`: topo cannot determine the
    /// result. `live`: the broker and the simulation differ. `publish`: no client can publish the message in the
    /// topology that `--against` selects, for example because the exchange does not exist.
    pub(super) aspect: &'static str,
    /// The queue; absent if the difference concerns all queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) queue: Option<QueueName>,
    /// The expected result, as text.
    pub(super) expected: String,
    /// The simulated result, as text.
    pub(super) actual: String,
    /// The complete difference, as text.
    pub(super) message: String,
    /// The setting or binding that determines the result, as text; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) because: Option<String>,
    /// The position of this setting or binding in the spec, or of a stand-in in the test file; absent if unknown.
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
        /// The keys in the `CC` and `BCC` headers; absent if there are none.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        additional_routing_keys: Vec<String>,
        /// The queues to which the message was routed.
        queues: BTreeSet<QueueName>,
    },
    /// A worker received a message.
    Delivered {
        /// The queue.
        queue: QueueName,
        /// The number of this delivery from the queue, starting at 1.
        attempt: usize,
        /// The behavior of the worker; absent if `workers` lists no behavior for this delivery.
        #[serde(skip_serializing_if = "Option::is_none")]
        behavior: Option<&'static str>,
        /// The AMQP method that the worker calls; absent if it calls none.
        #[serde(skip_serializing_if = "Option::is_none")]
        method: Option<&'static str>,
        /// The `requeue` flag of the method; absent if the method has no such flag.
        #[serde(skip_serializing_if = "Option::is_none")]
        requeue: Option<bool>,
    },
    /// A queue dead-lettered a message.
    DeadLettered {
        /// The queue.
        queue: QueueName,
        /// The dead-letter reason.
        reason: &'static str,
        /// The dead-letter exchange; absent if the queue has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        exchange: Option<ExchangeName>,
        /// The queues to which the dead-lettered message was routed.
        queues: BTreeSet<QueueName>,
    },
    /// A full queue rejected a message.
    Refused {
        /// The queue.
        queue: QueueName,
    },
}

/// A copy of a message in its final state.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EndedCopy {
    /// The queue.
    pub(super) queue: QueueName,
    /// The final state, as in test files.
    pub(super) end: &'static str,
    /// The exchange to which the copy was last published.
    pub(super) exchange: ExchangeName,
    /// The routing key with which the copy was last published.
    pub(super) routing_key: String,
}

/// The coverage of a spec.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Coverage {
    /// The paths of the specs.
    pub(super) spec: String,
    /// The vhost.
    pub(super) vhost: VhostName,
    /// The simulated RabbitMQ version.
    pub(super) broker_version: BrokerVersion,
    /// The number of covered routing elements.
    pub(super) covered: usize,
    /// The number of routing elements that cases can cover.
    pub(super) total: usize,
    /// The share of covered routing elements, in percent.
    pub(super) percent: f64,
    /// The routing elements.
    pub(super) elements: Vec<Element>,
}

/// A routing element with its coverage.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Element {
    /// The routing element.
    #[serde(flatten)]
    pub(super) kind: ElementKind,
    /// `covered`, `exercised` (no case fails without the element), `notExercised`, `redundant` (no route changes
    /// without it), `unreachable` (no message can use it with the current settings) or `unknown` (topo cannot simulate
    /// its exchange).
    pub(super) state: &'static str,
    /// The cases that fail without the element. For `exercised` and `redundant`, the cases whose messages use the
    /// element.
    pub(super) cases: Vec<String>,
    /// The position in the spec; absent if the spec does not contain the element.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<Position>,
}

/// The kinds of routing elements.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub(super) enum ElementKind {
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
    /// A reason why a queue dead-letters messages.
    DeadLettering {
        /// The queue.
        queue: QueueName,
        /// The reason.
        reason: &'static str,
    },
}

/// Returns the JSON Schema of the results. Uses draft-07, like the schema of the spec.
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
