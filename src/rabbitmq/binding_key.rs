//! Whether a binding is one that HTTP can make, to the last AMQP type: the broker lists no types, but its key of a binding
//! is a hash over the arguments with them, and the hash of what HTTP would make of the same arguments can be foreseen.
//!
//! The key is `QUOTED-ROUTING-KEY~HASH` (`rabbit_mgmt_format:pack_binding_props`), the hash `erlang:phash2` of the sorted
//! AMQP table, `[{<<"n">>, long, 1}]`, in base64. It is the same in every Erlang (`make_hash2` in `erts/emulator/beam`).

use crate::model::{ArgumentValue, Arguments};

/// Whether HTTP makes a binding with that key of these arguments; `None` where that cannot be foreseen.
pub fn is_made_by_http(properties_key: &str, arguments: &Arguments) -> Option<bool> {
    if arguments.is_empty() {
        return Some(true);
    }
    let (_, listed) = properties_key.rsplit_once('~')?;
    Some(match hash(arguments)? {
        Some(hash) => listed == base64(hash),
        None => false,
    })
}

/// Of the table that HTTP makes; the inner `None` where it makes none, since it carries no void.
fn hash(arguments: &Arguments) -> Option<Option<u32>> {
    let is_some = |is_it: fn(&ArgumentValue) -> bool| arguments.values().any(|value| holds(value, is_it));
    if is_some(|value| matches!(value, ArgumentValue::Table(_))) {
        // In which order those are kept differs.
        return None;
    }
    if is_some(|value| matches!(value, ArgumentValue::Null)) {
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

fn holds(value: &ArgumentValue, is_it: fn(&ArgumentValue) -> bool) -> bool {
    is_it(value)
        || match value {
            ArgumentValue::List(values) => values.iter().any(|value| holds(value, is_it)),
            ArgumentValue::Table(values) => values.values().any(|value| holds(value, is_it)),
            ArgumentValue::Null
            | ArgumentValue::Boolean(_)
            | ArgumentValue::Integer(_)
            | ArgumentValue::Float(_)
            | ArgumentValue::Text(_) => false,
        }
}

/// As `rabbit_misc:base64url`: without the padding, and safe in an address.
fn base64(hash: u32) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits = u64::from(hash) << 4;
    let digit = |index: u32| char::from(DIGITS[(bits >> (30 - 6 * index)) as usize & 63]);
    (0..6).map(digit).collect()
}

/// What was hashed so far.
struct Hash(u32);

/// The n-th of the constants that tell kinds of terms apart.
const fn constant(n: u32) -> u32 {
    0x9e37_79b9_u32.wrapping_mul(n)
}

impl Hash {
    /// `{long, 1}`, without the tuple around it.
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

    /// The end of a list, which never stands alone here but for the empty array.
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

    #[expect(clippy::cast_possible_truncation, reason = "halves")]
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

    #[expect(clippy::cast_possible_truncation, reason = "halves")]
    fn float(&mut self, value: f64) {
        // There is one zero.
        let bits = if value == 0.0 { 0 } else { value.to_bits() };
        self.words((bits >> 32) as u32, bits as u32, constant(12));
    }

    /// Bob Jenkins' hash of a block.
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
        // The lowest byte is for the length, of which there is no more than fits.
        #[expect(clippy::cast_possible_truncation, reason = "as Erlang does it")]
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

    /// By `erlang:phash2(TERM, 1 bsl 32)`.
    #[test]
    fn it_is_erlangs_hash() {
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
    fn types_that_http_has_not_are_told_apart() {
        let arguments: Arguments = [("n".to_owned(), 5.into())].into();
        assert_eq!(base64(4_221_216_127), "-5qlfw");
        assert_eq!(is_made_by_http("a.b~-5qlfw", &arguments), Some(true));
        assert_eq!(is_made_by_http("a.b~AAAAAA", &arguments), Some(false));
        assert_eq!(is_made_by_http("a.b", &Arguments::new()), Some(true));
        let nested: Arguments = [("t".to_owned(), ArgumentValue::Table([("n".to_owned(), 5.into())].into()))].into();
        assert_eq!(is_made_by_http("~AAAAAA", &nested), None);
    }
}
