//! Builds the command to run after a plan: one line to paste.

use crate::model::Address;
use crate::plan::Blockers;
use std::collections::BTreeSet;

/// Returns the next command: the apply with the flags that allow its hazards. If recreating objects resolves the other
/// blockers, returns the plan command with `--recreate`, because this adds hazards. If only an edit of the spec
/// resolves the blockers, returns a sentence.
pub fn next_command(apply: &str, blockers: &Blockers) -> String {
    if blockers.blocks.is_empty() {
        return paste_line(apply, blockers);
    }
    let flags: Option<Vec<&str>> = blockers.blocks.iter().map(|block| block.flag.as_deref()).collect();
    match (flags, apply.strip_prefix("topo apply")) {
        (Some(flags), Some(rest)) if !rest.starts_with(" --plan") => {
            let rest =
                blockers.blocks.iter().fold(rest.to_owned(), |rest, block| without_recreate(&rest, &block.address));
            format!("topo plan{rest} {}", flags.join(" "))
        }
        (_, _) => "Resolve the blockers above before applying.".to_owned(),
    }
}

/// Removes the `--recreate` flag of an object from a command, because a different one is added.
fn without_recreate(line: &str, address: &Address) -> String {
    let flag = format!(" --recreate {address}=");
    match line.split_once(&flag) {
        Some((before, after)) => {
            let rest = after.find(' ').map_or("", |end| &after[end..]);
            format!("{before}{rest}")
        }
        None => line.to_owned(),
    }
}

/// Returns the apply command with the flags that allow its hazards.
pub fn paste_line(apply: &str, blockers: &Blockers) -> String {
    let mut line = apply.to_owned();
    let mut given = BTreeSet::new();
    // An object can have the same hazard twice, for different reasons.
    for flag in blockers.hazards.iter().map(|hazard| hazard.flag()) {
        if given.insert(flag.clone()) {
            line.push(' ');
            line.push_str(&flag);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ObjectId;
    use crate::plan::Block;

    #[test]
    fn suggested_recreate_replaces_the_given_one() {
        let address = Address::of(&"v".into(), &ObjectId::Queue("q".into()));
        let flag = Some("--recreate queues/v/q=migrate".to_owned());
        let block = Block { address, text: String::new(), remedy: None, flag };
        let blockers = Blockers { blocks: vec![block], conflicts: 0, hazards: Vec::new() };
        for (given, expected) in [
            ("topo apply a.yaml --recreate queues/v/q=ifEmpty", "topo plan a.yaml --recreate queues/v/q=migrate"),
            (
                "topo apply --recreate queues/v/q=ifEmpty --recreate queues/v/qq=discard --prune",
                "topo plan --recreate queues/v/qq=discard --prune --recreate queues/v/q=migrate",
            ),
            ("topo apply a.yaml", "topo plan a.yaml --recreate queues/v/q=migrate"),
        ] {
            assert_eq!(next_command(given, &blockers), expected);
        }
    }
}
