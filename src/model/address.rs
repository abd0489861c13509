//! Addresses: how a person names one object on the command line, and how plans, hazards and reports name it back.
//!
//! `queues/shop/a%2Fb`: kind, vhost and name, each percent-encoded, because names may hold `/`, `:`, `@`, `,` and `*`.
//! A binding is `bindings/VHOST/SOURCE/queues/DESTINATION/KEY`, with its arguments (`n=1,region=eu`, one
//! segment) behind it when it has any.

use super::record_kinds::RECORD_KINDS;
use super::units::unmistakable;
use super::{Destination, ObjectId, VhostName};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Everything but unreserved characters is encoded, so that a `*` in an address is always a pattern's.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes one segment of an address or of a path of the management API.
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
    /// The address of this object in that vhost.
    pub fn of(vhost: &VhostName, id: &ObjectId) -> Self {
        let vhost = encode(vhost.as_str());
        Self(match id {
            ObjectId::Vhost => format!("vhosts/{vhost}"),
            ObjectId::Exchange(name) => format!("exchanges/{vhost}/{}", encode(name.as_str())),
            ObjectId::Policy(name) => format!("policies/{vhost}/{}", encode(name.as_str())),
            ObjectId::Queue(name) => format!("queues/{vhost}/{}", encode(name.as_str())),
            ObjectId::Record(id) => {
                let key: Vec<String> = id.key.iter().map(|segment| encode(segment)).collect();
                format!("{}/{vhost}/{}", id.kind.row().section, key.join("/"))
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
                        binding.arguments.iter().map(|(key, value)| format!("{key}={}", unmistakable(value))).collect();
                    text.push('/');
                    text.push_str(&encode(&arguments.join(",")));
                }
                text
            }
        })
    }

    /// Takes an address as a person typed it. Whether such an object exists is not looked at here.
    pub fn parse(text: &str) -> Result<Self, String> {
        let kinds = ["vhosts", "exchanges", "policies", "queues", "bindings"];
        let mut segments = text.split('/');
        let kind = segments.next().unwrap_or_default();
        let is_known = kinds.contains(&kind) || RECORD_KINDS.iter().any(|row| row.section == kind);
        if is_known && segments.all(|segment| !segment.is_empty()) && text.contains('/') {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("`{text}` is not an address; write queues/VHOST/NAME, percent-encoded, as plans print it"))
        }
    }

    /// The vhost that it is in.
    pub fn vhost(&self) -> VhostName {
        let segment = self.0.split('/').nth(1).unwrap_or_default();
        VhostName::new(percent_decode_str(segment).decode_utf8_lossy())
    }

    /// The address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
