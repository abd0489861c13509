//! Predicts the properties key of a binding, to determine whether topo can create the binding over HTTP with the same
//! AMQP types.
//!
//! The broker lists arguments without their AMQP types, but the properties key contains a hash of the typed arguments.
//! topo computes the hash of the arguments that an HTTP request would create, and compares it with the hash in the key.
//!
//! The key is `QUOTED-ROUTING-KEY~HASH` (`rabbit_mgmt_format:pack_binding_props`). The hash is `erlang:phash2` of the
//! sorted AMQP table, such as `[{<<"n">>, long, 1}]`, in base64. `erlang:phash2` is the same in every Erlang version
//! (`make_hash2` in `erts/emulator/beam`).

use crate::model::{ArgumentValue, Arguments};

/// Returns true if creating a binding with `arguments` over HTTP results in this properties key. Also returns true if
/// `arguments` is empty. Returns `None` if the key contains no hash, or if topo cannot predict the hash.
pub fn is_reproducible_over_http(properties_key: &str, arguments: &Arguments) -> Option<bool> {
    if arguments.is_empty() {
        return Some(true);
    }
    let (_, listed) = properties_key.rsplit_once('~')?;
    Some(match hash(arguments)? {
        Some(hash) => listed == base64(hash),
        None => false,
    })
}

/// Returns the hash of the AMQP table that an HTTP request creates. The outer `None` means that the hash is unknown.
/// The inner `None` means that the table contains null, which the management API does not accept.
fn hash(arguments: &Arguments) -> Option<Option<u32>> {
    let contains_any =
        |predicate: fn(&ArgumentValue) -> bool| arguments.values().any(|value| contains(value, predicate));
    if contains_any(|value| matches!(value, ArgumentValue::Table(_))) {
        // The field order of a nested table varies.
        return None;
    }
    if contains_any(|value| matches!(value, ArgumentValue::Null)) {
        return Some(None);
    }
    let mut hash = Hash(0);
    for (name, value) in arguments {
        hash.tuple(3);
        hash.binary(name);
        hash.typed(value);
    }
    hash.nil();
    Some(Some(hash.0))
}

/// Returns true if `value` or a value nested in `value` satisfies `predicate`.
fn contains(value: &ArgumentValue, predicate: fn(&ArgumentValue) -> bool) -> bool {
    predicate(value)
        || match value {
            ArgumentValue::List(values) => values.iter().any(|value| contains(value, predicate)),
            ArgumentValue::Table(values) => values.values().any(|value| contains(value, predicate)),
            ArgumentValue::Null
            | ArgumentValue::Boolean(_)
            | ArgumentValue::Integer(_)
            | ArgumentValue::Float(_)
            | ArgumentValue::Text(_) => false,
        }
}

/// Encodes a hash in the format of `rabbit_misc:base64url`: URL-safe base64 without padding.
fn base64(hash: u32) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = u64::from(hash) << 4;
    let digit = |index: u32| char::from(DIGITS[(bits >> (30 - 6 * index)) as usize & 63]);
    (0..6).map(digit).collect()
}

/// The state of a `phash2` computation.
struct Hash(u32);

/// Returns the n-th constant of `make_hash2`. The constants distinguish kinds of terms.
const fn constant(n: u32) -> u32 {
    0x9e37_79b9_u32.wrapping_mul(n)
}

impl Hash {
    /// Hashes a typed value such as `{long, 1}`, without the enclosing tuple.
    fn typed(&mut self, value: &ArgumentValue) {
        match value {
            ArgumentValue::Null | ArgumentValue::Table(_) => {}
            ArgumentValue::Boolean(value) => {
                self.atom("bool");
                self.atom(if *value { "true" } else { "false" });
            }
            ArgumentValue::Integer(value) => {
                self.atom("long");
                self.integer(*value);
            }
            ArgumentValue::Float(value) => {
                self.atom("double");
                self.float(value.0);
            }
            ArgumentValue::Text(value) => {
                self.atom("longstr");
                self.binary(value);
            }
            ArgumentValue::List(values) => {
                self.atom("array");
                for value in values {
                    self.tuple(2);
                    self.typed(value);
                }
                self.nil();
            }
        }
    }

    fn tuple(&mut self, arity: u32) {
        self.words(arity, 0, constant(9));
    }

    /// Hashes the empty list, which terminates every list.
    fn nil(&mut self) {
        self.words(2, 0, constant(2));
    }

    fn atom(&mut self, name: &str) {
        let hash = name.bytes().fold(0_u32, |hash, byte| {
            let hash = (hash << 4).wrapping_add(byte.into());
            let high = hash & 0xf000_0000;
            hash ^ (high >> 24) ^ high
        });
        self.words(hash, 0, constant(3));
    }

    #[expect(clippy::cast_possible_truncation, reason = "the value is split into two 32-bit halves")]
    fn integer(&mut self, value: i64) {
        let size = value.unsigned_abs();
        if !(-(1 << 27)..1 << 27).contains(&value) {
            let constant = constant(if value < 0 { 10 } else { 11 });
            return self.words(size as u32, (size >> 32) as u32, constant);
        }
        if value < 0 {
            self.words(size as u32, 0, constant(1));
        }
        self.words(value as u32, 0, constant(1));
    }

    #[expect(clippy::cast_possible_truncation, reason = "the value is split into two 32-bit halves")]
    fn float(&mut self, value: f64) {
        // Negative zero equals zero.
        let bits = if value == 0.0 { 0 } else { value.to_bits() };
        self.words((bits >> 32) as u32, bits as u32, constant(12));
    }

    /// Hashes the bytes of a binary with Bob Jenkins' hash function.
    fn binary(&mut self, text: &str) {
        let bytes = text.as_bytes();
        self.0 = self.0.wrapping_add(constant(13));
        if bytes.is_empty() {
            return;
        }
        let word = |bytes: &[u8], from: usize, length: usize| {
            let bytes = bytes.iter().skip(from).take(length);
            bytes.enumerate().fold(0_u32, |word, (index, byte)| word | u32::from(*byte) << (8 * index))
        };
        let (mut a, mut b) = (constant(1), constant(1));
        let blocks = bytes.chunks_exact(12);
        let rest = blocks.remainder();
        for block in blocks {
            a = a.wrapping_add(word(block, 0, 4));
            b = b.wrapping_add(word(block, 4, 4));
            self.0 = self.0.wrapping_add(word(block, 8, 4));
            self.mix(&mut a, &mut b);
        }
        // The lowest byte of the third word is reserved for the length.
        #[expect(clippy::cast_possible_truncation, reason = "Erlang truncates the length, too")]
        let length = bytes.len() as u32;
        a = a.wrapping_add(word(rest, 0, 4));
        b = b.wrapping_add(word(rest, 4, 4));
        self.0 = self.0.wrapping_add(length).wrapping_add(word(rest, 8, 3) << 8);
        self.mix(&mut a, &mut b);
    }

    fn words(&mut self, first: u32, second: u32, constant: u32) {
        self.mix(&mut first.wrapping_add(constant), &mut second.wrapping_add(constant));
    }

    fn mix(&mut self, a: &mut u32, b: &mut u32) {
        let c = &mut self.0;
        for (first, second, third) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] {
            *a = a.wrapping_sub(*b).wrapping_sub(*c) ^ (*c >> first);
            *b = b.wrapping_sub(*c).wrapping_sub(*a) ^ (*a << second);
            *c = c.wrapping_sub(*a).wrapping_sub(*b) ^ (*b >> third);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Float;

    /// The expected values are results of `erlang:phash2(TERM, 1 bsl 32)`.
    #[test]
    fn hash_equals_erlang_phash2() {
        let of = |pairs: &[(&str, ArgumentValue)]| {
            let arguments = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            hash(&arguments).flatten()
        };
        let list = ArgumentValue::List(vec![1.into(), "q".into()]);
        assert_eq!(of(&[("n", 5.into())]), Some(4_221_216_127));
        assert_eq!(of(&[("n", "x".into()), ("z", ArgumentValue::Boolean(true))]), Some(2_889_202_015));
        assert_eq!(of(&[("a", list)]), Some(3_524_300_210));
        assert_eq!(of(&[("n", ArgumentValue::Float(Float(1.5)))]), Some(2_342_755_402));
        assert_eq!(of(&[("n", ArgumentValue::Null)]), None);
    }

    #[test]
    fn bindings_with_types_that_http_cannot_create_are_detected() {
        let arguments: Arguments = [("n".to_owned(), 5.into())].into();
        assert_eq!(base64(4_221_216_127), "-5qlfw");
        assert_eq!(is_reproducible_over_http("a.b~-5qlfw", &arguments), Some(true));
        assert_eq!(is_reproducible_over_http("a.b~AAAAAA", &arguments), Some(false));
        assert_eq!(is_reproducible_over_http("a.b", &Arguments::new()), Some(true));
        let nested: Arguments = [("t".to_owned(), ArgumentValue::Table([("n".to_owned(), 5.into())].into()))].into();
        assert_eq!(is_reproducible_over_http("~AAAAAA", &nested), None);
    }
}
