//! The rules as a page for people, `docs/rules.md`: a test keeps the committed page true, `TOPO_UPDATE=1` writes it.

use super::RULES;
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Rules

What `topo validate` finds in a spec that is correct, and what `topo plan` says of it beside the plan. This page is written from the rules
themselves. An error stops `validate`; a warning is probably not what was meant; an info is good to know. Some rules are
milder or stricter for a version of RabbitMQ, or for the way in which a thing is said: their pages say when.

| rule | severity | what it finds |
|---|---|---|
";

/// The page.
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
    fn the_committed_page_is_this_one() {
        let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules.md");
        let printed = reference();
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&committed, &printed).unwrap();
        }
        let text = std::fs::read_to_string(committed).unwrap_or_default();
        assert!(text == printed, "docs/rules.md is old: run the tests with TOPO_UPDATE=1");
    }

    #[test]
    fn the_spec_knows_the_names() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/spec/rule_names.rs");
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let (head, _) = committed.split_once("= &[\n").expect("it is a list");
        let entry = |rule: &&Rule| format!("    ({:?}, {:?}),\n", rule.name, rule.summary);
        let written = format!("{head}= &[\n{}];\n", RULES.iter().map(entry).collect::<String>());
        if std::env::var_os("TOPO_UPDATE").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        assert!(committed == written, "src/spec/rule_names.rs was old: run the tests with TOPO_UPDATE=1, then again");
    }

    #[test]
    fn every_link_leads_to_a_page() {
        for rule in RULES {
            let file = format!("src/lint/rules/{}.md", rule.name.replace('-', "_"));
            let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(&file)).unwrap_or_default();
            assert_eq!(page, rule.page, "{file}");
        }
    }
}
