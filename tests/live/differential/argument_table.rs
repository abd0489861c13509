//! Lists the behavior of brokers for each queue argument. The list is written manually.
//!
//! Sources: `rabbit_amqqueue:declare_args()`, `capabilities()` and the checks of the queue types, at the tags v3.8.9,
//! v3.10.8, v4.0.5 and v4.3.5, and experiments.
//!
//! The list is independent of topo's own table. A run declares queues for every entry on the broker and must observe
//! every listed verdict. If an entry is missing in either table, the test fails with its name.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use topo::model::known_arguments::{KNOWN_ARGUMENTS, KnownArgument};
use topo::model::{BrokerVersion, Object, QueueName, QueueType};
use topo::plan::Verdict;
use topo::rabbitmq::{BrokerProfile, refusals};

use super::generate::Family;
use super::queues::{Definition, Live};

/// The versions of the columns.
const VERSIONS: [&str; 4] = ["3.8.9", "3.10.8", "4.0.5", "4.3.6"];

/// The list of arguments. Each line has two values that every version with the argument accepts, and an invalid value.
/// For each version, it has one symbol each for classic queues, quorum queues and streams:
///
/// - `C` is compared on a redeclaration, and its value is validated; `c` is compared, with any value;
/// - `D` is stored and never compared, and its value is validated; `d` is stored, with any value;
/// - `-` is refused; `.` means that the queue type does not exist.
const LIST: &str = "
x-queue-type                    TYPE         OTHER          other   CC. CCC CCC CCC
x-expires                       600000       3600000        0       C-. CC- CC- CC-
x-message-ttl                   600000       3600000        -1      C-. CC- CC- CC-
x-dead-letter-exchange          a            b              5       CC. CC- CC- CC-
x-dead-letter-routing-key       a            b              5       CC. CC- CC- CC-
x-dead-letter-strategy          at-most-once at-least-once  other   dd. -C- -C- -C-
x-delivery-limit                5            6              five    dd. -c- -c- -c-
x-max-length                    10           20             -1      CC. CC- CC- CC-
x-max-length-bytes              1000000      2000000        -1      CC. CCC CCC CCC
x-max-in-memory-length          10           20             -1      CC. -C- -C- -C-
x-max-in-memory-bytes           10           20             -1      CC. -C- -C- -C-
x-max-priority                  1            5              256     C-. C-- C-- C--
x-overflow                      drop-head    reject-publish other   C-. CC- CC- CC-
x-queue-mode                    default      lazy           other   C-. C-- C-- c--
x-queue-version                 2            1              3       dd. C-- C-- C--
x-single-active-consumer        true         false          5       CC. CC- CC- CC-
x-queue-master-locator          client-local random         other   Dd. C-- c-- ---
x-queue-leader-locator          client-local random         other   dd. -CC CCC CCC
x-quorum-initial-group-size     1            3              0       CC. -C- -C- -C-
x-quorum-target-group-size      3            5              other   dd. ddd ddd ddd
x-consumer-timeout              600000       700000         -1      dd. ddd ddd -C-
x-consumer-disconnected-timeout 600000       700000         -1      dd. ddd ddd -C-
x-delayed-retry-type            all          failed         other   dd. ddd ddd -c-
x-delayed-retry-min             1000         2000           other   dd. ddd ddd -c-
x-delayed-retry-max             1000         2000           other   dd. ddd ddd -c-
x-max-age                       7D           1Y             7d      dd. --C --C --C
x-stream-max-segment-size-bytes 1000000      2000000        -1      dd. --C --C --C
x-stream-filter-size-bytes      16           255            15      dd. ddd ddD --C
x-initial-cluster-size          1            3              0       dd. --C --C --C
";

/// The behavior of a version for an argument on a queue type.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) kind: QueueType,
    symbol: char,
    /// A valid value, a different valid value, and an invalid value.
    values: [Value; 3],
}

fn value(text: &str, kind: QueueType) -> Value {
    match text {
        "TYPE" => json!(kind.as_str()),
        "OTHER" => json!(if kind == QueueType::Classic { QueueType::Quorum } else { QueueType::Classic }.as_str()),
        text => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    }
}

/// Returns the entries of a version.
pub(super) fn listed(version: BrokerVersion) -> Vec<Entry> {
    let is_it = |listed: &&str| {
        let listed: BrokerVersion = listed.parse().unwrap();
        (listed.major, listed.minor) == (version.major, version.minor)
    };
    let column = VERSIONS.iter().position(is_it);
    let column = column.unwrap_or_else(|| panic!("no arguments are listed for RabbitMQ {version}"));
    let mut entries = Vec::new();
    for line in LIST.lines().filter(|line| !line.is_empty()) {
        let words: Vec<&'static str> = line.split_whitespace().collect();
        let [name, one, other, none] = [words[0], words[1], words[2], words[3]];
        for (kind, symbol) in QueueType::ALL.into_iter().zip(words[4 + column].chars()).filter(|(_, it)| *it != '.') {
            let values = [one, other, none].map(|text| value(text, kind));
            entries.push(Entry { name, kind, symbol, values });
        }
    }
    entries
}

impl Entry {
    /// Returns the possible verdicts.
    pub(super) fn verdicts(&self) -> BTreeSet<Verdict> {
        match self.symbol {
            'C' => [Verdict::Equal, Verdict::Conflict, Verdict::Invalid].into(),
            'c' => [Verdict::Equal, Verdict::Conflict].into(),
            'D' => [Verdict::Equal, Verdict::Drift, Verdict::Invalid].into(),
            'd' => [Verdict::Equal, Verdict::Drift].into(),
            '-' => [Verdict::Invalid].into(),
            other => panic!("unknown symbol `{other}`"),
        }
    }

    /// Returns a queue of this type with the argument, or without it if there is no value.
    fn queue(&self, value: Option<&Value>) -> Definition {
        let mut arguments = Map::new();
        arguments.insert("x-queue-type".to_owned(), json!(self.kind.as_str()));
        // The argument is refused without an exchange. Streams refuse the exchange, too.
        if self.name == "x-dead-letter-routing-key" && self.kind != QueueType::Stream {
            arguments.insert("x-dead-letter-exchange".to_owned(), json!("a"));
        }
        arguments.extend(value.map(|value| (self.name.to_owned(), value.clone())));
        Definition::durable(arguments)
    }

    /// Returns all pairs of definitions to compare for the argument.
    pub(super) fn family(&self) -> Family {
        let [one, other, none] = self.values.each_ref().map(|value| self.queue(Some(value)));
        let bare = self.queue(None);
        let (live, desired) =
            if self.symbol == '-' { (bare, vec![one]) } else { (one.clone(), vec![one, other, none, bare]) };
        Family { lives: vec![Live { definition: live, widths: None }], desired }
    }

    /// Returns the symbol according to topo's table.
    fn symbol_in_topo(&self, profile: &BrokerProfile) -> char {
        let is_refused = |value: &Value| {
            let object = Object::Queue(QueueName::from("q"), self.queue(Some(value)).queue());
            !refusals(&object, profile).is_empty()
        };
        let Some(known) = KnownArgument::named(self.name) else { return '?' };
        let [one, _, none] = &self.values;
        match (is_refused(one), known.is_compared(self.kind, profile.version), is_refused(none)) {
            (true, ..) => '-',
            (false, true, true) => 'C',
            (false, true, false) => 'c',
            (false, false, true) => 'D',
            (false, false, false) => 'd',
        }
    }
}

#[test]
fn argument_table_matches_the_list() {
    let mut wrong = Vec::new();
    for version in VERSIONS {
        let profile = BrokerProfile::of(version.parse().unwrap());
        let entries = listed(profile.version);
        for entry in &entries {
            let symbol = entry.symbol_in_topo(&profile);
            if symbol != entry.symbol {
                let Entry { name, kind, symbol: listed, .. } = entry;
                wrong.push(format!("{version}, {kind} {name}: listed {listed}, topo has {symbol}"));
            }
        }
        let unlisted = KNOWN_ARGUMENTS.iter().filter(|known| entries.iter().all(|entry| entry.name != known.name));
        wrong.extend(unlisted.map(|known| format!("{version}: {} is missing in LIST of {}", known.name, file!())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
