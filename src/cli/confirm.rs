//! Asks a person. What can lose something is not answered by a habit of typing `y`.

use super::failure::Failure;
use super::output::tell;
use crate::plan::Plan;
use std::io::{BufRead, IsTerminal};

/// Whether somebody is there to be asked.
pub(super) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a question, and returns whether the answer was yes.
pub(super) fn is_yes(question: &str) -> Result<bool, Failure> {
    tell(question);
    Ok(matches!(&*answer()?, "y" | "Y" | "yes"))
}

/// The line that is typed, without blanks around it; empty at the end of the input.
fn answer() -> Result<String, Failure> {
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::failed("cannot read the answer").because(error.to_string()))?;
    Ok(answer.trim().to_owned())
}

/// Asks, and says whether the answer was yes. Where messages can be lost, the answer is the vhost's name.
pub(super) fn ask(plan: &Plan) -> Result<bool, Failure> {
    let loses = plan.hazards().any(|hazard| hazard.kind.loses_messages());
    let vhosts: Vec<&str> = plan.vhosts.iter().map(|part| part.vhost.as_str()).collect();
    let expected = vhosts.join(",");
    if !loses {
        return is_yes(&format!("Apply this to {}? [y/N] ", plan.target.url));
    }
    tell(&format!("Messages are lost by this. Type the vhost's name ({expected}) to go on: "));
    // No vhost has an empty name.
    Ok(answer()? == expected)
}
