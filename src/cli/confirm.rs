//! Asks a person. What can lose something is not answered by a habit of typing `y`.

use super::failure::Failure;
use super::output::tell;
use crate::plan::Plan;
use std::io::{BufRead, IsTerminal};

/// Whether somebody is there to be asked.
pub(super) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks, and says whether the answer was yes. Where messages can be lost, the answer is the vhost's name.
pub(super) fn ask(plan: &Plan) -> Result<bool, Failure> {
    let loses = plan.hazards().any(|hazard| hazard.kind.loses_messages());
    let vhosts: Vec<&str> = plan.vhosts.iter().map(|part| part.vhost.as_str()).collect();
    let expected = vhosts.join(",");
    if loses {
        tell(&format!("Messages are lost by this. Type the vhost's name ({expected}) to go on: "));
    } else {
        tell(&format!("Apply this to {}? [y/N] ", plan.target.url));
    }
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    let read = read.map_err(|error| Failure::failed("cannot read the answer").because(error.to_string()))?;
    let answer = answer.trim();
    Ok(read > 0 && if loses { answer == expected } else { matches!(answer, "y" | "Y" | "yes") })
}
