//! Exchanges that are refused.

use super::Refusal;
use crate::behaviour::Dialect;
use crate::model::Exchange;

pub(super) fn refusals(exchange: &Exchange, dialect: &Dialect) -> Vec<Refusal> {
    let known = &dialect.exchange_types;
    if known.is_empty() || known.contains(&exchange.kind) {
        return Vec::new();
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    vec![Refusal {
        subject: "type".to_owned(),
        text: format!("the broker knows no exchange type `{}`", exchange.kind),
        hint: Some(format!("enable the plugin that brings it, or use one of {}", names.join(", "))),
    }]
}
