//! Refuses a plan that differs from the reviewed one.

use super::arguments::ApplyArguments;
use super::exit::Exit;
use super::failure::Failure;
use crate::plan::Plan;
use crate::plan::fingerprint::{Staleness, staleness};

/// Refuses a plan without the fingerprint of `--expect`.
pub(super) fn expected(arguments: &ApplyArguments, plan: &Plan) -> Result<(), Failure> {
    match &arguments.expect {
        Some(expected) if *expected != plan.fingerprint && !plan.is_empty() => Err(Failure::failed(format!(
            "the plan does not match --expect: its fingerprint is {}, not {expected}; nothing was changed",
            plan.fingerprint
        ))
        .exit(Exit::Stale)
        .hint("review the new plan: topo plan")),
        Some(_) | None => Ok(()),
    }
}

/// Accepts the same steps, or the remaining ones; otherwise the saved plan is stale.
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
            Err(failure.hint("plan again, and review the differences: topo plan"))
        }
    }
}
