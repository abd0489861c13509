//! `topo rules`: lists the lint rules with their severities.

use super::exit::Exit;
use super::failure::Failure;
use super::offline_arguments::{ExplainFormat, RulesArguments};
use super::output;
use crate::lint::{RULES, Rule};
use crate::render::style::wrap;
use serde_json::{Value, json};

/// The version of the document's shape.
const FORMAT_VERSION: u32 = 1;
const INDENT: &str = "    ";

pub(super) fn run(arguments: &RulesArguments) -> Result<Exit, Failure> {
    output::print(&match arguments.format {
        ExplainFormat::Text => text(output::width()),
        ExplainFormat::Json => {
            let rules: Vec<Value> = RULES.iter().map(|rule| document(rule)).collect();
            format!("{:#}\n", json!({ "formatVersion": FORMAT_VERSION, "rules": rules }))
        }
    })?;
    Ok(Exit::Done)
}

fn document(rule: &Rule) -> Value {
    json!({
        "name": rule.name,
        "severity": rule.severity.as_str(),
        "otherSeverities": rule.sometimes.iter().map(|it| it.as_str()).collect::<Vec<_>>(),
        "isOptional": rule.is_optional,
        "summary": rule.summary,
    })
}

fn text(width: usize) -> String {
    let longest = RULES.iter().map(|rule| rule.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for rule in RULES {
        let level = rule.level();
        let words: Vec<String> = rule.summary.split(' ').map(str::to_owned).collect();
        let summary = wrap(&words, " ", width.saturating_sub(INDENT.len())).join(&format!("\n{INDENT}"));
        text.push_str(&format!("{:longest$}  {level}\n{INDENT}{summary}\n", rule.name));
    }
    text + "\nTo explain a rule: topo explain RULE\nTo change its level: --lint RULE=LEVEL, or `lint:` in a spec\n"
}
