//! Parses JSON values, but skips nested lists and mappings, which would take up many times as much memory as their
//! text.

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The part of a JSON value that topo uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    /// `true` or `false`.
    Boolean(bool),
    /// A non-negative integer.
    Integer(u64),
    /// A string.
    Text(String),
    /// The strings in a list. Omits all other elements.
    Texts(Vec<String>),
    /// A mapping, `null`, a list inside a list, a negative integer or a floating-point number.
    Other,
}

impl Plain {
    /// Returns the string; `None` if the value is not a string.
    pub(super) fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Boolean(_) | Self::Integer(_) | Self::Texts(_) | Self::Other => None,
        }
    }

    /// Returns the string; `None` if the value is not a string.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Boolean(_) | Self::Integer(_) | Self::Texts(_) | Self::Other => None,
        }
    }
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor { is_element: false })
    }
}

/// A list element, whose own elements are not parsed.
struct Element(Plain);

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor { is_element: true }).map(Self)
    }
}

struct PlainVisitor {
    /// True if the value is an element of a list.
    is_element: bool,
}

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Plain;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Plain, E> {
        Ok(Plain::Boolean(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Plain, E> {
        Ok(Plain::Integer(value))
    }

    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Plain, E> {
        Ok(Plain::Other)
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Plain, E> {
        Ok(Plain::Other)
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Plain, E> {
        Ok(Plain::Text(value.to_owned()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Plain, E> {
        Ok(Plain::Other)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Plain, S::Error> {
        let mut texts = Vec::new();
        if self.is_element {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Plain::Other);
        }
        while let Some(Element(element)) = list.next_element()? {
            texts.extend(element.into_text());
        }
        Ok(Plain::Texts(texts))
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Plain, M::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Plain::Other)
    }
}

/// Parses the client address of a connection or a channel as `host` or `host:port`; `None` if unknown. The broker
/// returns a list if the channel does not exist.
pub(super) fn peer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Details {
        peer_host: Option<Plain>,
        peer_port: Option<Plain>,
    }
    struct Peer;
    impl<'de> Visitor<'de> for Peer {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("channel details")
        }

        fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Option<String>, M::Error> {
            let Details { peer_host, peer_port } = Details::deserialize(de::value::MapAccessDeserializer::new(map))?;
            let host = peer_host.and_then(Plain::into_text).filter(|host| host != "undefined");
            let port = match peer_port {
                Some(Plain::Integer(port)) => Some(port),
                Some(Plain::Boolean(_) | Plain::Text(_) | Plain::Texts(_) | Plain::Other) | None => None,
            };
            Ok(host.map(|host| match port {
                Some(port) if host.contains(':') => format!("[{host}]:{port}"),
                Some(port) => format!("{host}:{port}"),
                None => host,
            }))
        }

        fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Option<String>, S::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(None)
        }

        fn visit_str<E: de::Error>(self, _: &str) -> Result<Option<String>, E> {
            Ok(None)
        }

        fn visit_unit<E: de::Error>(self) -> Result<Option<String>, E> {
            Ok(None)
        }
    }
    deserializer.deserialize_any(Peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeply_nested_values_are_skipped() {
        let read = |text: &str| serde_json::from_str::<Plain>(text).unwrap();
        assert_eq!(read(r#""a""#), Plain::Text("a".to_owned()));
        assert_eq!((read("true"), read("7")), (Plain::Boolean(true), Plain::Integer(7)));
        assert_eq!((read("-7"), read("null"), read("1.5")), (Plain::Other, Plain::Other, Plain::Other));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(read(&format!(r#"["a",{deep},{{"b":{deep}}},1,"c"]"#)), Plain::Texts(vec!["a".into(), "c".into()]));
        assert_eq!(read(&format!(r#"{{"b":{deep}}}"#)), Plain::Other);
    }
}
