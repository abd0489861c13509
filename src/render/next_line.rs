//! Builds the command to run after a plan: one line to paste.

use crate::model::Address;
use crate::plan::Blockers;
use std::collections::BTreeSet;

/// What to type next: the command that applies it with the flags that allow its hazards; where a recreate would lift
/// the rest, the plan with that recreate, because it has hazards of its own; where only an edit helps, that.
pub fn next_line(apply: &str, obstacles: &Blockers) -> String {
    if obstacles.blocks.is_empty() {
        return paste_line(apply, obstacles);
    }
    let flags: Option<Vec<&str>> = obstacles.blocks.iter().map(|block| block.flag.as_deref()).collect();
    match (flags, apply.strip_prefix("topo apply")) {
        (Some(flags), Some(rest)) if !rest.starts_with(" --plan") => {
            let rest =
                obstacles.blocks.iter().fold(rest.to_owned(), |rest, block| without_recreate(&rest, &block.address));
            format!("topo plan{rest} {}", flags.join(" "))
        }
        (_, _) => "Resolve the blockers above before applying.".to_owned(),
    }
}

/// A line without what it said of the recreate of that object: another way is on its way in.
fn without_recreate(line: &str, address: &Address) -> String {
    let flag = format!(" --recreate {address}=");
    match line.split_once(&flag) {
        Some((before, behind)) => {
            let rest = behind.find(' ').map_or("", |end| &behind[end..]);
            format!("{before}{rest}")
        }
        None => line.to_owned(),
    }
}

/// The command that applies it, with the literal flags that allow its hazards.
pub fn paste_line(apply: &str, obstacles: &Blockers) -> String {
    let mut line = apply.to_owned();
    let mut given = BTreeSet::new();
    // One object can have one hazard twice, for two reasons.
    for flag in obstacles.hazards.iter().map(|hazard| hazard.flag()) {
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
    fn another_way_to_recreate_takes_the_place_of_the_one_that_was_said() {
        let address = Address::of(&"v".into(), &ObjectId::Queue("q".into()));
        let flag = Some("--recreate queues/v/q=migrate".to_owned());
        let block = Block { address, text: String::new(), remedy: None, flag };
        let obstacles = Blockers { blocks: vec![block], hazards: Vec::new() };
        for (said, expected) in [
            ("topo apply a.yaml --recreate queues/v/q=ifEmpty", "topo plan a.yaml --recreate queues/v/q=migrate"),
            (
                "topo apply --recreate queues/v/q=ifEmpty --recreate queues/v/qq=discard --prune",
                "topo plan --recreate queues/v/qq=discard --prune --recreate queues/v/q=migrate",
            ),
            ("topo apply a.yaml", "topo plan a.yaml --recreate queues/v/q=migrate"),
        ] {
            assert_eq!(next_line(said, &obstacles), expected);
        }
    }
}
