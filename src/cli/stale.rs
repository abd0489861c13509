//! Refuses a plan that is not the one that was reviewed.

use super::arguments::ApplyArguments;
use super::exit::Exit;
use super::failure::Failure;
use crate::plan::Plan;
use crate::plan::fingerprint::{Staleness, staleness};

/// That the plan has the fingerprint of `--expect`.
pub(super) fn expected(arguments: &ApplyArguments, plan: &Plan) -> Result<(), Failure> {
    match &arguments.expect {
        Some(expected) if *expected != plan.fingerprint && !plan.is_empty() => Err(Failure::failed(format!(
            "the plan is not the one that was expected: its fingerprint is {}, not {expected}; nothing was changed",
            plan.fingerprint
        ))
        .exit(Exit::Stale)
        .hint("look at what is different now: topo plan")),
        Some(_) | None => Ok(()),
    }
}

/// The same steps, or what is left of them; else it is stale.
pub(super) fn fresh(saved: &Plan, now: &Plan) -> Result<(), Failure> {
    match staleness(saved, now) {
        Staleness::Same | Staleness::Rest => Ok(()),
        Staleness::Stale(news) => {
            let mut failure =
                Failure::failed("the broker no longer matches the plan; nothing was changed").exit(Exit::Stale);
            for new in news.iter().take(10) {
                failure = failure.because(format!("not in the plan: {new}"));
            }
            if news.len() > 10 {
                failure = failure.because(format!("and {} more", news.len() - 10));
            }
            Err(failure.hint("plan again, and look at what is different: topo plan"))
        }
    }
}
