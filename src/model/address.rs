//! Addresses, which identify objects on the command line and in plans, hazards and reports.
//!
//! The segments of `queues/shop/a%2Fb` are the kind, the vhost and the name. Segments are percent-encoded, because
//! names can contain `/`, `:`, `@`, `,` and `*`. The address of a binding is
//! `bindings/VHOST/SOURCE/queues/DESTINATION/KEY`, with `exchanges` instead of `queues` for a destination exchange. The
//! arguments of a binding form an additional segment, such as `n=1,region=eu`, which is also percent-encoded. The
//! address of a vhost is `vhosts/VHOST`, and the address of the cluster is `cluster`. The addresses of cluster records
//! have no vhost segment.

use super::binding::Destination;
use super::names::VhostName;
use super::object::ObjectId;
use super::record_kinds::{RECORD_KINDS, RecordScope};
use super::units::value_text;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The ASCII characters to encode: all except the unreserved characters. A `*` in a name is encoded, so an unencoded
/// `*` in an address is always a wildcard.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of the cluster itself.
const CLUSTER: &str = "cluster";

/// Percent-encodes one segment of an address or of a management API path.
pub fn encode(segment: &str) -> String {
    let mut encoded = String::with_capacity(segment.len());
    encoded.extend(utf8_percent_encode(segment, SEGMENT));
    encoded
}

/// The address of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Address(String);

impl Address {
    /// Returns the address of an object in a vhost or in the cluster ([`VhostName::cluster`]).
    pub fn of(vhost: &VhostName, id: &ObjectId) -> Self {
        let is_cluster = vhost.is_cluster();
        let vhost = encode(vhost.as_str());
        Self(match id {
            ObjectId::Vhost if is_cluster => CLUSTER.to_owned(),
            ObjectId::Vhost => format!("vhosts/{vhost}"),
            ObjectId::Exchange(name) => format!("exchanges/{vhost}/{}", encode(name.as_str())),
            ObjectId::Policy(name) => format!("policies/{vhost}/{}", encode(name.as_str())),
            ObjectId::Queue(name) => format!("queues/{vhost}/{}", encode(name.as_str())),
            ObjectId::Record(id) => {
                let row = id.kind.row();
                let vhost = match row.scope {
                    RecordScope::Vhost => Some(vhost),
                    RecordScope::Cluster => None,
                };
                let key = id.key.iter().map(|segment| encode(segment));
                [row.section.to_owned()].into_iter().chain(vhost).chain(key).collect::<Vec<_>>().join("/")
            }
            ObjectId::Binding(binding) => {
                let kind = match &binding.destination {
                    Destination::Queue(_) => "queues",
                    Destination::Exchange(_) => "exchanges",
                };
                let mut text = format!(
                    "bindings/{vhost}/{}/{kind}/{}/{}",
                    encode(binding.source.as_str()),
                    encode(binding.destination.name()),
                    encode(&binding.routing_key)
                );
                if !binding.arguments.is_empty() {
                    let arguments: Vec<_> =
                        binding.arguments.iter().map(|(key, value)| format!("{key}={}", value_text(value))).collect();
                    text.push('/');
                    text.push_str(&encode(&arguments.join(",")));
                }
                text
            }
        })
    }

    /// Parses an address that a user specified, without checking whether the object exists. Returns an error message if
    /// the kind is unknown, or if a segment other than the routing key of a binding is empty.
    pub fn parse(text: &str) -> Result<Self, String> {
        let kinds = ["vhosts", "exchanges", "policies", "queues", "bindings"];
        let mut segments = text.split('/');
        let kind = segments.next().unwrap_or_default();
        // A routing key can be empty.
        let key = if kind == "bindings" { 4 } else { usize::MAX };
        let is_known = kinds.contains(&kind) || RECORD_KINDS.iter().any(|row| row.section == kind);
        let has_names = segments.enumerate().all(|(index, segment)| index == key || !segment.is_empty());
        if text == CLUSTER || is_known && has_names && text.contains('/') {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!(
                "`{text}` is not an address; use the form queues/VHOST/NAME, percent-encoded, as printed in plans"
            ))
        }
    }

    /// Returns the vhost of the object; [`VhostName::cluster`] for the cluster itself. Addresses of cluster records
    /// contain no vhost, and the result for such an address is meaningless.
    pub fn vhost(&self) -> VhostName {
        let segment = self.0.split('/').nth(1).unwrap_or_default();
        VhostName::new(percent_decode_str(segment).decode_utf8_lossy())
    }

    /// Returns the address as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
