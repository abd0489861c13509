//! `topo rules`: lists the lint rules with their severities.

use super::arguments::ExplainFormat;
use super::failure::{Exit, Failure};
use super::output;
use crate::lint::{RULES, Rule};
use crate::render::style::wrap;
use clap::Args;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(super) struct RulesArguments {
    /// Output format
    #[arg(long, value_enum, default_value_t, env = "TOPO_FORMAT")]
    pub(super) format: ExplainFormat,
}

/// The format version of the JSON document of `topo rules`.
const RULES_FORMAT_VERSION: u32 = 1;
/// The indentation of a rule's summary.
const RULE_INDENT: &str = "    ";

pub(super) fn run(arguments: &RulesArguments) -> Result<Exit, Failure> {
    output::print(&match arguments.format {
        ExplainFormat::Text => rules_text(output::width()),
        ExplainFormat::Json => {
            let rules: Vec<Value> = RULES.iter().map(|rule| rule_document(rule)).collect();
            format!("{:#}\n", json!({ "formatVersion": RULES_FORMAT_VERSION, "rules": rules }))
        }
    })?;
    Ok(Exit::Done)
}

fn rule_document(rule: &Rule) -> Value {
    json!({
        "name": rule.name,
        "severity": rule.severity.as_str(),
        "otherSeverities": rule.other_severities.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
        "isOptional": rule.is_optional,
        "summary": rule.summary,
    })
}

fn rules_text(width: usize) -> String {
    let longest = RULES.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for rule in RULES {
        let level = rule.level();
        let words: Vec<String> = rule.summary.split(' ').map(str::to_owned).collect();
        let summary = wrap(&words, " ", width.saturating_sub(RULE_INDENT.len())).join(&format!("\n{RULE_INDENT}"));
        text.push_str(&format!("{:longest$}  {level}\n{RULE_INDENT}{summary}\n", rule.name));
    }
    text + "\nTo explain a rule: topo explain RULE\nTo change its level: --lint RULE=LEVEL, or `lint:` in a spec\n"
}
