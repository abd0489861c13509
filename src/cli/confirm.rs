//! Asks for confirmation. A plan that can lose messages requires more than a habitual `y`.

use super::failure::Failure;
use super::output::eprint;
use crate::plan::Plan;
use std::io::{BufRead, IsTerminal};

/// Returns true if a terminal is available for a confirmation.
pub(super) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks a question, and returns true if the answer was yes.
pub(super) fn is_confirmed(question: &str) -> Result<bool, Failure> {
    eprint(question);
    Ok(matches!(&*answer()?, "y" | "Y" | "yes"))
}

/// Reads a line and trims it; empty at the end of the input.
fn answer() -> Result<String, Failure> {
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::failed("cannot read the answer").because(error.to_string()))?;
    Ok(answer.trim().to_owned())
}

/// Asks for confirmation of a plan, and returns true if it was given. If messages can be lost, the answer must be the
/// name of the vhost.
pub(super) fn ask(plan: &Plan) -> Result<bool, Failure> {
    let loses = plan.hazards().any(|hazard| hazard.kind.loses_messages());
    let vhosts: Vec<&str> = plan.vhosts.iter().map(|part| part.vhost.as_str()).collect();
    let expected = vhosts.join(",");
    if !loses {
        return is_confirmed(&format!("Apply these changes to {}? [y/N] ", plan.target.url));
    }
    eprint(&format!("This plan can lose messages. Type the name of the vhost ({expected}) to continue: "));
    // No vhost has an empty name.
    Ok(answer()? == expected)
}
