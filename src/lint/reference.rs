//! Renders `docs/rules.md`, the list of all rules. A test compares the committed page with the rendered page.
//! `TOPO_UPDATE=1` updates the page.

use super::RULES;
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Lint rules

On this page, you can look up lint rules. Each rule links to its own page. `topo validate` checks a valid spec against the rules, and
`topo plan` reports the findings with the plan. This page is generated.

An error makes `topo validate` fail, a warning indicates a probable mistake, and an info finding is advisory. A rule with the severity `off` reports nothing
until `lint` or `--lint` sets its level; the table shows its default level in parentheses. The severity of some rules depends on the
RabbitMQ version or on the form of the setting, as the pages of these rules describe.

| rule | severity | what it finds |
|---|---|---|
";

/// Returns the content of `docs/rules.md`.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    for rule in RULES {
        let file = rule.name.replace('-', "_");
        let link = format!("[{}](../src/lint/rules/{file}.md)", rule.name);
        let _ = writeln!(page, "| {link} | {} | {} |", rule.level(), rule.summary);
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::Rule;
    use std::path::Path;

    #[test]
    fn committed_page_is_current() {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
        let printed = reference();
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&committed, &printed).unwrap();
        }
        let text = std::fs::read_to_string(committed).unwrap_or_default();
        assert!(text == printed, "docs/rules.md is outdated: run the tests with TOPO_UPDATE=1");
    }

    #[test]
    fn spec_rule_names_are_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/spec/rule_names.rs");
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let (head, _) = committed.split_once("= &[\n").expect("the file contains a list");
        let entry = |rule: &&Rule| format!("    ({:?}, {:?}),\n", rule.name, rule.summary);
        let current = format!("{head}= &[\n{}];\n", RULES.iter().map(entry).collect::<String>());
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&path, &current).unwrap();
        }
        assert!(
            committed == current,
            "src/spec/rule_names.rs was outdated: run the tests with TOPO_UPDATE=1, then again"
        );
    }

    #[test]
    fn every_link_has_a_page() {
        for rule in RULES {
            let file = format!("src/lint/rules/{}.md", rule.name.replace('-', "_"));
            let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file)).unwrap_or_default();
            assert_eq!(page, rule.page, "{file}");
        }
    }
}
