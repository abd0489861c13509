//! Defines the additional routing keys that a publisher sets in the CC and BCC headers (sender-selected distribution).
//!
//! The broker routes a message by its routing key and by the additional keys, and each queue receives at most one copy.
//! A dead-lettered message keeps all its keys, unless the queue sets a dead-letter routing key, which replaces them.
//! The broker removes the BCC header when it receives the message. RabbitMQ 3.12 and earlier also remove the CC header
//! when they replace the keys. Sources: `rabbit_basic:header_routes`, `rabbit_dead_letter`, and tests on 3.8.9, 3.10.8,
//! 4.0.5 and 4.3.6.

use crate::model::message_headers::{BCC, CC};
use crate::model::{ArgumentValue, Arguments};

/// The additional routing keys of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SenderSelected {
    /// The keys in the CC header.
    cc: Vec<String>,
    /// The keys in the BCC header.
    bcc: Vec<String>,
}

impl SenderSelected {
    /// Returns the additional keys of a message that is published with these headers. Ignores invalid values (see
    /// [`invalid_header`]).
    pub fn of(headers: &Arguments) -> Self {
        Self { cc: keys(headers.get(CC)), bcc: keys(headers.get(BCC)) }
    }

    /// Returns the additional keys of a message with this CC header and no BCC header.
    pub fn of_cc(value: Option<&ArgumentValue>) -> Self {
        Self { cc: keys(value), bcc: Vec::new() }
    }

    /// Returns true if the message has no additional keys.
    pub fn is_empty(&self) -> bool {
        self.cc.is_empty() && self.bcc.is_empty()
    }

    /// Returns all additional keys.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.cc.iter().chain(&self.bcc).map(String::as_str)
    }

    /// Returns the keys in the CC header.
    pub fn cc(&self) -> &[String] {
        &self.cc
    }

    /// Returns the keys in the BCC header.
    pub fn bcc(&self) -> &[String] {
        &self.bcc
    }
}

/// Returns the name of the first header, CC or BCC, whose value is not a list of strings; `None` if there is no such
/// header. The broker refuses a message if the value is not a list, and ignores list items that are not strings.
pub fn invalid_header(headers: &Arguments) -> Option<&'static str> {
    let is_valid =
        |value: &ArgumentValue| value.as_list().is_some_and(|items| items.iter().all(|it| it.as_text().is_some()));
    [CC, BCC].into_iter().find(|name| headers.get(*name).is_some_and(|value| !is_valid(value)))
}

fn keys(value: Option<&ArgumentValue>) -> Vec<String> {
    let items = value.and_then(ArgumentValue::as_list).unwrap_or_default();
    items.iter().filter_map(|it| it.as_text().map(str::to_owned)).collect()
}
