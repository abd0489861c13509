//! The objects of a broker as plain data: ordered, comparable, and independent of their origin.
//!
//! Other layers convert their data to and from these types. This layer performs no I/O. It also contains the tables of
//! arguments ([`known_arguments`]), clients ([`known_clients`]) and records ([`record_kinds`]), and the rules for
//! generated names ([`naming`]).

pub mod address;
pub mod amqp_uri;
pub mod arguments;
pub mod binding;
pub mod count;
pub mod encoding;
pub mod intervals;
pub mod known_arguments;
pub mod known_clients;
pub mod memory;
pub mod message_headers;
pub mod names;
pub mod naming;
pub mod natural;
pub mod object;
pub mod policy;
pub mod printable;
pub mod queue;
pub mod record;
pub mod record_kinds;
pub mod requirements;
pub mod retry;
mod run_id;
pub mod scope;
pub mod secret;
pub mod thresholds;
pub mod topology;
pub mod units;
pub mod version;
pub(crate) mod yaml;

pub use address::Address;
pub use amqp_uri::AmqpUri;
pub use arguments::{ArgumentValue, Arguments, Float, MAX_LEVELS, MAX_VALUES, has_truncated_value};
pub use binding::{Binding, Destination};
pub use intervals::Intervals;
pub use names::{ExchangeName, PolicyName, QueueName, UserName, VhostName};
pub use object::Vhost;
pub use object::{Object, ObjectId, ObjectKind};
pub use policy::{ApplyTo, Policy, Priority};
pub use queue::Exchange;
pub use queue::TopicPermission;
pub use queue::{Queue, QueueType};
pub use record::{Record, RecordId, Records};
pub use record_kinds::RecordKind;
pub use retry::Reach;
pub use retry::{Family, Strategy};
pub use run_id::run_id;
pub use scope::{Desired, Source};
pub use scope::{Glob, OnConflict, Scope, UserScope};
pub use scope::{Places, SetIn};
pub use secret::SecretRef;
pub use thresholds::{Growth, Levels, Severity, Thresholds};
pub use topology::Topology;
pub use units::age;
pub use version::BrokerVersion;
