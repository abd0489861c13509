//! Generates families of similar definitions, some current and some desired, so that every pair is a useful case. A
//! seed always generates the same families.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use topo::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument, ValueKind};
use topo::model::{Object, QueueName, QueueType};
use topo::rabbitmq::{BrokerProfile, refusals};

use super::queues::{Definition, Live, Width};
use crate::support::Random;

/// Definitions that are compared with each other.
#[derive(Clone, Debug)]
pub(super) struct Family {
    pub(super) lives: Vec<Live>,
    pub(super) desired: Vec<Definition>,
}

/// The number of pairs of a family.
pub(super) const PAIRS: usize = 4 * 12;

const TEN_YEARS: i64 = 315_360_000_000;
/// Arguments that no broker supports. The second one differs from a known argument only in case.
const UNKNOWN: [&str; 3] = ["x-foo", "x-Message-TTL", "tier"];

/// Returns true if topo predicts that the queue can be declared. The test detects wrong predictions.
pub(super) fn can_be_made(definition: &Definition, profile: &BrokerProfile) -> bool {
    refusals(&Object::Queue(QueueName::from("q"), definition.queue()), profile).is_empty()
}

/// Returns common values of a current queue, none of which makes the broker delete the queue.
pub(super) fn usual(known: &KnownArgument) -> Vec<Value> {
    match known.value {
        ValueKind::Duration(..) => vec![json!(600_000), json!(3_600_000), json!(86_400_001), json!(TEN_YEARS)],
        ValueKind::Size(_) => vec![json!(1_000_000), json!(1_048_576), json!(2_000_000_000)],
        ValueKind::Count(least, most) => {
            // The minimum, the maximum and some values between them; -1 and 0 have a special meaning.
            let last = if most == i64::MAX { 1000 } else { most };
            vec![json!(least), json!(last), json!((least + last) / 2), json!(least + 1)]
        }
        ValueKind::Boolean => vec![json!(true), json!(false)],
        ValueKind::Text => vec![json!("a"), json!("dead.exchange"), json!("")],
        ValueKind::OneOf(words) => words.iter().map(|word| json!(word)).collect(),
        ValueKind::MaxAge => {
            ["7D", "168h", "604800s", "1Y", "365D", "12M", "360D", "07D", "90m"].map(|age| json!(age)).into()
        }
    }
}

/// Returns values at and beyond the limits of the broker.
fn unusual(random: &mut Random, known: &KnownArgument) -> Value {
    let of_kind = match known.value {
        ValueKind::Duration(least, _) => {
            vec![json!(least), json!(least - 1), json!(-1), json!(TEN_YEARS + 1), json!(TEN_YEARS * 2)]
        }
        ValueKind::Size(most) => {
            vec![json!(0), json!(-1), json!(most), json!(most.saturating_add(1))]
        }
        ValueKind::Count(least, most) => {
            vec![json!(least - 1), json!(-2), json!(most), json!(most.saturating_add(1)), json!(0)]
        }
        ValueKind::Boolean => vec![json!("true"), json!(1), json!(0)],
        ValueKind::Text => vec![json!(5), json!(true)],
        ValueKind::OneOf(_) => vec![json!("other"), json!(""), json!("CLASSIC"), json!(2)],
        ValueKind::MaxAge => ["7d", "0D", "7", "D", "", "1h30m", "-1D", "7 D", "7W", "7D\n", "7D\nx", "7\nD"]
            .map(|age| json!(age))
            .into(),
    };
    let junk =
        [json!(5.0), json!(5.5), json!("5"), json!(true), json!([1, "a"]), json!({"a": 1}), json!(5), json!("x")];
    match random.below(10) {
        0..=6 => random.pick(&of_kind).clone(),
        7 => respelled(random, &usual(known)[0]),
        // Rare, because HTTP cannot declare a queue with this value.
        8 if random.chance(15) => Value::Null,
        // The only value that cannot be tested: 3.10.8 never responds to a float here.
        8 | 9 if known.name == "x-queue-master-locator" => json!([1, "a"]),
        8 | 9 => random.pick(&junk).clone(),
        _ => unreachable!("below 10"),
    }
}

/// Returns a similar value of a different type, or a different text.
fn respelled(random: &mut Random, value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) if random.chance(50) => json!(whole as f64),
            Some(whole) => json!(whole.to_string()),
            None => json!(number.as_f64().unwrap() as i64),
        },
        Value::Bool(value) if random.chance(50) => json!(value.to_string()),
        Value::Bool(value) => json!(i64::from(*value)),
        Value::String(text) => text.parse::<i64>().map_or_else(|_| json!(text.to_uppercase()), |number| json!(number)),
        Value::Null | Value::Array(_) | Value::Object(_) => json!("5"),
    }
}

struct Draw<'a> {
    random: &'a mut Random,
    profile: &'a BrokerProfile,
    focus: &'static KnownArgument,
    types: Vec<QueueType>,
}

/// Returns the family with this number. Each argument in turn is the central argument.
pub(super) fn family(random: &mut Random, number: usize, profile: &BrokerProfile) -> Family {
    let streams = profile.version.is_at_least(3, 9);
    let types = QueueType::ALL.into_iter().filter(|kind| streams || *kind != QueueType::Stream).collect();
    let focus = &KNOWN_ARGUMENTS[number % KNOWN_ARGUMENTS.len()];
    Draw { random, profile, focus, types }.family()
}

impl Draw<'_> {
    fn family(&mut self) -> Family {
        let base = self.base();
        let mut unknown = base.clone();
        let name = *self.random.pick(&UNKNOWN);
        unknown.arguments.insert(name.to_owned(), json!("some"));
        let drifted = self.drifted(&base);
        let mut other = base.clone();
        if let Some(value) = self.other_value(&base, self.focus) {
            other.arguments.insert(self.focus.name.to_owned(), value);
        } else {
            self.change(&mut other, true);
        }
        let mut lives = vec![base.clone(), unknown.clone(), drifted, other];
        for live in &mut lives[2..] {
            if !can_be_made(live, self.profile) {
                live.clone_from(&base);
            }
        }

        let mut desired: Vec<Definition> = lives.iter().map(|live| self.same_type(live)).collect();
        unknown.arguments.insert(name.to_owned(), json!(7));
        desired.push(unknown);
        let mut bad = base.clone();
        // A definition that is refused if possible, so that every argument is refused at least once.
        for _ in 0..20 {
            bad.arguments.insert(self.focus.name.to_owned(), unusual(self.random, self.focus));
            if !bad.contains_null() && !can_be_made(&bad, self.profile) {
                break;
            }
        }
        desired.push(bad);
        let mut without = base.clone();
        without.arguments.remove(self.focus.name);
        desired.push(without);
        let mut unmanaged = base.clone();
        let kind = *self.random.pick(&self.types);
        unmanaged.arguments.insert("x-queue-type".to_owned(), json!(kind.as_str()));
        let value = self.random.pick(&usual(self.focus)).clone();
        unmanaged.arguments.entry(self.focus.name).or_insert(value);
        desired.push(unmanaged);
        for _ in 0..4 {
            let mut one = self.random.pick(&lives).clone();
            for _ in 0..self.random.below(3) + 1 {
                self.change(&mut one, false);
            }
            desired.push(one);
        }
        let lives = lives.into_iter().map(|definition| self.live(definition)).collect();
        Family { lives, desired }
    }

    /// Returns a queue that can be declared, of a type that supports the central argument if there is one.
    fn base(&mut self) -> Definition {
        let version = self.profile.version;
        let taking: Vec<QueueType> =
            self.types.iter().copied().filter(|kind| self.focus.is_accepted(*kind, version)).collect();
        let kind = if taking.is_empty() { *self.random.pick(&self.types) } else { *self.random.pick(&taking) };
        let mut base = Definition::durable(Map::new());
        let is_default = self.profile.default_queue_type.as_deref().unwrap_or("classic") == kind.as_str();
        if !is_default || self.random.chance(50) {
            base.arguments.insert("x-queue-type".to_owned(), json!(kind.as_str()));
        }
        if kind == QueueType::Classic {
            base.durable = !self.random.chance(10);
            base.auto_delete = self.random.chance(5);
        }
        let mut names = vec![self.focus];
        names.extend([(); 2].map(|()| self.random.pick(KNOWN_ARGUMENTS)));
        for known in names.iter().take(1 + self.random.below(3)) {
            if known.name != "x-queue-type" && (known.is_accepted(kind, version) || self.random.chance(30)) {
                if known.name == "x-dead-letter-routing-key" {
                    base.arguments.entry("x-dead-letter-exchange").or_insert(json!("a"));
                }
                if let Some(value) = self.other_value(&base, known) {
                    base.arguments.insert(known.name.to_owned(), value);
                }
            }
        }
        base
    }

    /// Adds an argument that this broker stores but does not support, if there is one.
    fn drifted(&mut self, base: &Definition) -> Definition {
        let kind = base.queue().queue_type();
        let version = self.profile.version;
        let ignored: Vec<&KnownArgument> = KNOWN_ARGUMENTS
            .iter()
            .filter(|known| kind.is_some_and(|kind| !known.is_compared(kind, version)))
            .filter(|known| {
                let mut with = base.clone();
                with.arguments.insert(known.name.to_owned(), usual(known)[0].clone());
                can_be_made(&with, self.profile)
            })
            .collect();
        let mut drifted = base.clone();
        if ignored.is_empty() {
            self.change(&mut drifted, true);
            return drifted;
        }
        let known = if ignored.iter().any(|known| known.name == self.focus.name) {
            self.focus
        } else {
            *self.random.pick(&ignored)
        };
        let value = self.other_value(base, known).unwrap_or(Value::Bool(true));
        drifted.arguments.insert(known.name.to_owned(), value);
        drifted
    }

    /// Returns a different valid value for a queue.
    fn other_value(&mut self, base: &Definition, known: &KnownArgument) -> Option<Value> {
        let mut values = usual(known);
        values.retain(|value| base.arguments.get(known.name) != Some(value));
        values.retain(|value| {
            let mut with = base.clone();
            with.arguments.insert(known.name.to_owned(), value.clone());
            can_be_made(&with, self.profile)
        });
        (!values.is_empty()).then(|| self.random.pick(&values).clone())
    }

    /// Returns the same queue with or without an explicit type.
    fn same_type(&mut self, live: &Definition) -> Definition {
        let mut same = live.clone();
        let default = self.profile.default_queue_type.as_deref().unwrap_or("classic");
        match live.arguments.get("x-queue-type") {
            Some(kind) if kind == default && self.random.chance(50) => drop(same.arguments.remove("x-queue-type")),
            None if self.random.chance(50) => drop(same.arguments.insert("x-queue-type".to_owned(), json!(default))),
            Some(_) | None => {}
        }
        same
    }

    fn live(&mut self, definition: Definition) -> Live {
        let names: Vec<String> = definition.arguments.keys().cloned().collect();
        let mut width =
            || (*self.random.pick(&[Width::Short, Width::Int, Width::Int, Width::Long]), self.random.chance(25));
        let widths: BTreeMap<String, Width> = names.into_iter().map(|name| (name, width().0)).collect();
        let over_amqp = width().1;
        Live { definition, widths: over_amqp.then_some(widths) }
    }

    /// Changes one field; with `careful`, the queue can still be declared.
    fn change(&mut self, definition: &mut Definition, careful: bool) {
        let there: Vec<String> = definition.arguments.keys().cloned().collect();
        let version = self.profile.version;
        let kind = definition.queue().queue_type();
        let known = match self.random.below(3) {
            0 => self.focus,
            1 => self.random.pick(KNOWN_ARGUMENTS),
            _ => {
                let taken: Vec<&KnownArgument> = KNOWN_ARGUMENTS
                    .iter()
                    .filter(|known| kind.is_some_and(|kind| known.is_accepted(kind, version)))
                    .collect();
                // Empty if the type itself is invalid.
                if taken.is_empty() { self.focus } else { *self.random.pick(&taken) }
            }
        };
        match self.random.below(if careful { 3 } else { 10 }) {
            0 | 3 => {
                let value = self.random.pick(&usual(known)).clone();
                definition.arguments.insert(known.name.to_owned(), value);
            }
            1 | 4 if !there.is_empty() => drop(definition.arguments.remove(self.random.pick(&there))),
            1 | 2 | 4 => {
                let name = *self.random.pick(&UNKNOWN);
                let value =
                    self.random.pick(&[json!(1), json!("some"), json!([1]), json!({"a": "b"}), json!(1.5)]).clone();
                definition.arguments.insert(name.to_owned(), value);
            }
            5 => drop(definition.arguments.insert(known.name.to_owned(), unusual(self.random, known))),
            6 if !there.is_empty() => {
                let name = self.random.pick(&there).clone();
                let value = respelled(self.random, &definition.arguments[&name]);
                definition.arguments.insert(name, value);
            }
            7 => {
                let kinds = ["classic", "quorum", "stream", "mirrored", "undefined", "", "rabbit_quorum_queue"];
                definition.arguments.insert("x-queue-type".to_owned(), json!(self.random.pick(&kinds)));
            }
            8 => definition.durable = !definition.durable,
            _ => definition.auto_delete = !definition.auto_delete,
        }
    }
}
