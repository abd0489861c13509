//! Defines a message as consumers receive it: routing key, properties, typed headers and body.

/// A message from a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct ReceivedMessage {
    /// The exchange to which the message was published or dead-lettered; empty for the default exchange.
    pub exchange: String,
    /// The routing key.
    pub routing_key: String,
    /// True if the queue has delivered the message before.
    pub is_redelivered: bool,
    /// The properties.
    pub properties: MessageProperties,
    /// The properties as the broker encodes them, with their flags.
    pub encoded_properties: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

/// The properties of a message. `None` means that the property is not set. Bytes that are not UTF-8 are replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageProperties {
    /// The string properties with their AMQP names, such as `content_type` and `message_id`, in AMQP order.
    pub texts: Vec<(&'static str, String)>,
    /// The headers, in the same order as in the message.
    pub headers: Vec<(String, HeaderValue)>,
    /// The delivery mode: 2 for a persistent message.
    pub delivery_mode: Option<u8>,
    /// The priority.
    pub priority: Option<u8>,
    /// The timestamp, in seconds since 1970.
    pub timestamp: Option<u64>,
}

/// The value of a header.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderValue {
    /// No value.
    Void,
    /// A boolean.
    Boolean(bool),
    /// An integer of any size.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// A decimal number: the digits, and the number of digits after the decimal point.
    Decimal(u32, u8),
    /// A string. Bytes that are not UTF-8 are replaced.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A time, in seconds since 1970.
    Timestamp(u64),
    /// A list.
    List(Vec<Self>),
    /// A table.
    Table(Vec<(String, Self)>),
    /// A value that topo does not decode, because it is nested too deeply or its type is unknown.
    Opaque,
}

impl ReceivedMessage {
    /// Returns the value of a header; `None` if the message does not have the header.
    pub fn header(&self, name: &str) -> Option<&HeaderValue> {
        self.properties.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the value of a header; `None` if the message does not have the header, or if the value is not a string.
    pub fn text_header(&self, name: &str) -> Option<&str> {
        self.header(name).and_then(HeaderValue::as_text)
    }

    /// Returns a string property by its AMQP name; `None` if the property is not set.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.properties.texts.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }
}

impl HeaderValue {
    /// Returns the string; `None` for any other value.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns the integer; `None` for any other value.
    pub fn as_integer(&self) -> Option<i128> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    /// Returns the timestamp in seconds since 1970; `None` for any other value.
    pub fn as_timestamp(&self) -> Option<u64> {
        if let Self::Timestamp(seconds) = self { Some(*seconds) } else { None }
    }

    /// Returns the elements of a list; an empty slice for any other value.
    pub fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    /// Returns the value of a table entry; `None` if the entry does not exist, or if this value is not a table.
    pub fn entry(&self, name: &str) -> Option<&Self> {
        let Self::Table(entries) = self else { return None };
        entries.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}
