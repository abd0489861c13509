//! Parses the values of flags.

use crate::broker::TransportKind;
use crate::lint::RULES;
use crate::model::record_kinds::{RECORD_KINDS, RecordRow};
use crate::model::version::NotAVersion;
use crate::model::{Address, BrokerVersion, Glob, ObjectKind, OnConflict, RecordKind};
use crate::spec::{Level, Severity, closest};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::ffi::OsString;
use std::str::FromStr;
use std::time::Duration;

/// The value of `--prune`, such as `queues,bindings`.
#[derive(Clone, Debug)]
pub(super) struct PruneKinds(pub(super) Vec<ObjectKind>);

impl FromStr for PruneKinds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = |word: &str| match word.trim() {
            "exchanges" => Ok(ObjectKind::Exchange),
            "queues" => Ok(ObjectKind::Queue),
            "bindings" => Ok(ObjectKind::Binding),
            "policies" => Ok(ObjectKind::Policy),
            other => RecordRow::prunable()
                .find(|row| row.section == other)
                .map(|row| ObjectKind::Record(row.kind))
                .ok_or_else(|| {
                    let records: String = RecordRow::prunable().map(|row| format!(", {}", row.section)).collect();
                    format!(
                        "`{other}` cannot be pruned; expected one of exchanges, queues, bindings, policies{records}"
                    )
                }),
        };
        text.split(',').map(kind).collect::<Result<_, _>>().map(Self)
    }
}

/// The value of `--with`, such as `operatorPolicies` or `all`.
#[derive(Clone, Debug)]
pub(super) struct WithKinds {
    pub(super) kinds: Vec<RecordKind>,
    /// True for `all`.
    pub(super) is_all: bool,
}

impl FromStr for WithKinds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "all" {
            return Ok(Self { kinds: RECORD_KINDS.iter().map(|row| row.kind).collect(), is_all: true });
        }
        let kind = |word: &str| {
            RecordKind::of_section(word.trim()).ok_or_else(|| {
                let known: String = RECORD_KINDS.iter().map(|row| format!("{}, ", row.section)).collect();
                format!("`{word}` is not an optional kind; use {known}or all")
            })
        };
        Ok(Self { kinds: text.split(',').map(kind).collect::<Result<_, _>>()?, is_all: false })
    }
}

/// Replaces `--prune bindings` with `--prune=bindings`, and `--watch 5s` with `--watch=5s`. Otherwise, clap would parse
/// the value as a spec path, and topo would prune all default kinds.
pub(super) fn join_optional_values(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut is_after_separator = false;
    for argument in arguments {
        is_after_separator |= argument == "--";
        let is_value = |flag: &OsString, text: &str| {
            (flag == "--prune" && text.parse::<PruneKinds>().is_ok())
                || (flag == "--watch" && positive_duration(text).is_ok())
        };
        match (joined.last_mut(), argument.to_str()) {
            (Some(flag), Some(text)) if !is_after_separator && is_value(flag, text) => {
                flag.push("=");
                flag.push(text);
            }
            (_, _) => joined.push(argument),
        }
    }
    joined
}

/// The value of `--recreate`, such as `queues/shop/orders=ifEmpty`.
#[derive(Clone, Debug)]
pub(super) struct Recreate(pub(super) Address, pub(super) OnConflict);

impl FromStr for Recreate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, how) =
            text.rsplit_once('=').ok_or("expected ADDRESS=ifEmpty, ADDRESS=migrate or ADDRESS=discard")?;
        let how = match how {
            "ifEmpty" => OnConflict::IfEmpty,
            "migrate" => OnConflict::Migrate,
            "discard" => OnConflict::Discard,
            other => return Err(format!("`{other}` is not one of ifEmpty, migrate or discard")),
        };
        Ok(Self(Address::parse(address)?, how))
    }
}

/// The values of `--transport`.
impl ValueEnum for TransportKind {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Auto, Self::Amqp, Self::Shovel]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Auto => "AMQP; a shovel if AMQP is not available or cannot carry a message",
            Self::Amqp => "AMQP, with topo as the client",
            Self::Shovel => "A shovel on the broker; requires rabbitmq_shovel and rabbitmq_shovel_management",
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}

pub(super) fn glob(text: &str) -> Result<Glob, String> {
    if text.contains('/') || text == "*" {
        Ok(Glob::new(text))
    } else {
        Err(format!("`{text}` is not an address; use the form queues/VHOST/NAME, as printed in plans"))
    }
}

/// The rule name in `--lint` that selects every rule.
pub(super) const ALL_RULES: &str = "all";

pub(super) fn level(text: &str) -> Result<(String, Level), String> {
    let (rule, word) = text.split_once('=').ok_or("expected RULE=off, RULE=info, RULE=warning or RULE=error")?;
    if rule != ALL_RULES && !RULES.iter().any(|known| known.name == rule) {
        return Err(match closest(rule, RULES.iter().map(|known| known.name)) {
            Some(near) => format!("`{rule}` is not a rule; did you mean `{near}`?"),
            None => {
                format!("`{rule}` is not a rule; `topo rules` lists all rules, and `{ALL_RULES}` selects all of them")
            }
        });
    }
    let level = Level::named(word).ok_or_else(|| format!("`{word}` is not one of {}", Level::WORDS.join(", ")))?;
    Ok((rule.to_owned(), level))
}

pub(super) fn severity(word: &str) -> Result<Severity, String> {
    let level = Level::named(word).and_then(Level::severity);
    level.ok_or_else(|| format!("`{word}` is not one of error, warning or info"))
}

pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected NAME=VALUE".to_owned()),
    }
}

pub(super) fn whole_number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "not a whole number; use a number such as 2".to_owned())
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| "not a duration; use, for example, 500ms, 30s or 5m".to_owned())
}

pub(super) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be greater than zero; use, for example, 500ms, 30s or 5m".to_owned()),
        time => Ok(time),
    }
}

/// A RabbitMQ version as typed. A series such as `3.10` means the newest known release in that series.
#[derive(Clone, Debug)]
pub(super) struct TypedVersion {
    /// The text as typed.
    pub(super) text: String,
    /// The parsed version.
    pub(super) version: BrokerVersion,
}

impl TypedVersion {
    /// Returns the version as typed. For a series, returns its newest known release instead, such as `3.10.25, the
    /// newest known 3.10 release`.
    pub(super) fn description(&self) -> String {
        let (text, version) = (&self.text, self.version);
        if *text == version.series() && BrokerVersion::newest_of(version.major, version.minor).is_some() {
            format!("{version}, the newest known {text} release")
        } else {
            text.clone()
        }
    }
}

/// Parses a RabbitMQ version, and keeps the typed text. Refuses a version that topo does not support.
pub(super) fn typed_version(text: &str) -> Result<TypedVersion, String> {
    Ok(TypedVersion { text: text.to_owned(), version: broker_version(text)? })
}

/// Parses a RabbitMQ version. Refuses a version that topo does not support.
pub(super) fn broker_version(text: &str) -> Result<BrokerVersion, String> {
    let version: BrokerVersion = text.parse().map_err(|error: NotAVersion| error.to_string())?;
    if version.is_supported() {
        return Ok(version);
    }
    let (oldest, newest) = (BrokerVersion::OLDEST_SUPPORTED.series(), BrokerVersion::NEWEST_KNOWN.series());
    Err(format!("topo supports RabbitMQ {oldest} to {newest}, and treats later versions as {newest}"))
}
