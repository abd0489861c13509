//! Decides whether a plan may be applied: an [`ApprovedPlan`] exists only if no blockers remain.

use super::action::{Action, Guard};
use super::document::{Block, ChangeKind, Plan};
use super::hazard::{Hazard, HazardKind, NotAHazard};
use crate::model::count::count;
use crate::model::{Address, Glob};
use std::fmt;
use std::str::FromStr;

/// A hazard that `--allow` allows, with its addresses and the maximum number of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// The hazard.
    pub hazard: HazardKind,
    /// The addresses for which the hazard is allowed; `None` for all addresses.
    pub addresses: Option<Glob>,
    /// The maximum number of messages that may be lost; `None` for any number, including an unknown number.
    pub messages: Option<u64>,
}

/// An error in the value of `--allow`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowanceError {
    /// The hazard does not exist.
    #[error(transparent)]
    Hazard(#[from] NotAHazard),
    /// The limit is not a number.
    #[error(
        "`{0}` is not a number of messages; write HAZARD[@ADDRESS][:N], for example message-loss@queues/shop/orders:100"
    )]
    Bound(String),
    /// The address is empty.
    #[error("an empty address allows nothing; write HAZARD[@ADDRESS][:N]")]
    NoAddress,
}

/// The allowances from one `--allow HAZARD[,HAZARD…][@ADDRESS-GLOB][:N]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowances(pub Vec<Allowance>);

impl FromStr for Allowances {
    type Err = AllowanceError;

    fn from_str(text: &str) -> Result<Self, AllowanceError> {
        // Names are percent-encoded in addresses, so a `:` or `@` is always a separator.
        let (rest, messages) = match text.rsplit_once(':') {
            Some((rest, bound)) => {
                let bound = bound.parse().map_err(|_| AllowanceError::Bound(bound.to_owned()))?;
                (rest, Some(bound))
            }
            None => (text, None),
        };
        let (hazards, addresses) = match rest.split_once('@') {
            Some((_, "")) => return Err(AllowanceError::NoAddress),
            Some((hazards, glob)) => (hazards, Some(Glob::new(glob))),
            None => (rest, None),
        };
        hazards
            .split(',')
            .map(|hazard| Ok(Allowance { hazard: hazard.trim().parse()?, addresses: addresses.clone(), messages }))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// Formats the allowance as a value for `--allow`.
impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hazard.as_str())?;
        if let Some(addresses) = &self.addresses {
            write!(f, "@{}", addresses.as_str())?;
        }
        match self.messages {
            Some(messages) => write!(f, ":{messages}"),
            None => Ok(()),
        }
    }
}

impl Allowance {
    fn covers(&self, kind: HazardKind, address: &Address) -> bool {
        self.hazard == kind && self.addresses.as_ref().is_none_or(|glob| glob.matches(address.as_str()))
    }

    /// Returns true if the allowance allows this hazard. An unknown number of lost messages exceeds every limit.
    fn allows(&self, hazard: &Hazard) -> bool {
        self.covers(hazard.kind, &hazard.address)
            && match (self.messages, hazard.messages) {
                (None, _) => true,
                (Some(bound), Some(messages)) => messages <= bound,
                (Some(_), None) => !hazard.kind.loses_messages(),
            }
    }
}

/// The blockers of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blockers {
    /// Blockers that `--allow` does not resolve: they require an edit or a different flag.
    pub blocks: Vec<Block>,
    /// The number of blocks that report a conflict.
    pub conflicts: usize,
    /// Hazards that must be allowed but are not.
    pub hazards: Vec<Hazard>,
}

impl Blockers {
    /// Returns true if nothing blocks the plan.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.hazards.is_empty()
    }

    /// Returns the number of blockers.
    pub fn len(&self) -> usize {
        self.blocks.len() + self.hazards.len()
    }
}

/// Formats the counts: `1 conflict and 2 hazards`, `3 blockers`, or `1 conflict, 2 other blockers and 1 hazard`.
impl fmt::Display for Blockers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let other_blocks = self.blocks.len() - self.conflicts;
        let blocker = if self.conflicts > 0 { "other blocker" } else { "blocker" };
        let counts = [(self.conflicts, "conflict"), (other_blocks, blocker), (self.hazards.len(), "hazard")];
        let parts = counts.into_iter().filter(|(number, _)| *number > 0);
        let parts: Vec<String> = parts.map(|(number, word)| count(number as u64, word)).collect();
        match parts.split_last() {
            Some((last, before)) if !before.is_empty() => write!(f, "{} and {last}", before.join(", ")),
            Some(_) | None => f.write_str(&parts.join(", ")),
        }
    }
}

/// Returns the blockers that remain in a plan with these allowances.
pub fn blockers_of(plan: &Plan, allowed: &[Allowance]) -> Blockers {
    let open = |hazard: &&Hazard| hazard.must_be_allowed && !allowed.iter().any(|one| one.allows(hazard));
    let is_conflict = |block: &&Block| {
        let mut changes = plan.vhosts.iter().flat_map(|part| &part.changes);
        changes.any(|change| change.kind == ChangeKind::Conflict && change.address == block.address)
    };
    Blockers {
        blocks: plan.blocks().cloned().collect(),
        conflicts: plan.blocks().filter(is_conflict).count(),
        hazards: plan.hazards().filter(open).cloned().collect(),
    }
}

/// Returns a line for each allowance with an address that matches no hazard in a plan, and for each limit that is too
/// small. The line contains the reason, and a value to use instead if there is one. All allowances are checked
/// together, because several allowances may cover the same hazard.
pub fn allowances_without_effect(plan: &Plan, allowed: &[Allowance]) -> Vec<String> {
    let open = blockers_of(plan, allowed).hazards;
    allowed.iter().flat_map(|one| warnings_about(plan, &open, one, allowed)).collect()
}

fn warnings_about(plan: &Plan, open: &[Hazard], allowance: &Allowance, allowed: &[Allowance]) -> Vec<String> {
    // Several allowances may be too small for one hazard. Reports only the allowance with the highest limit.
    let has_highest_limit = |hazard: &Hazard| {
        let covering = allowed.iter().filter(|one| one.covers(hazard.kind, &hazard.address));
        covering.max_by_key(|one| one.messages) == Some(allowance)
    };
    let too_small =
        open.iter().filter(|hazard| allowance.covers(hazard.kind, &hazard.address) && has_highest_limit(hazard));
    let mut lines: Vec<String> = too_small.map(|hazard| too_small_text(allowance, hazard)).collect();
    lines.dedup();
    let is_covering = plan.hazards().any(|hazard| allowance.covers(hazard.kind, &hazard.address));
    // An allowance without an address may match nothing: pipelines use the same allowances for every plan.
    if !is_covering && allowance.addresses.is_some() {
        lines.push(no_effect_text(plan, allowance));
    }
    lines
}

fn too_small_text(allowance: &Allowance, hazard: &Hazard) -> String {
    let flag = hazard.flag();
    match hazard.messages {
        Some(messages) => {
            let at_risk = count(messages, "message");
            format!("`--allow {allowance}` is too small for the {at_risk} at risk; use {flag}:{messages}")
        }
        None => {
            format!("`--allow {allowance}` has a limit, but the number of messages at risk is unknown; use {flag}")
        }
    }
}

fn no_effect_text(plan: &Plan, allowance: &Allowance) -> String {
    let mut flags: Vec<String> =
        plan.hazards().filter(|hazard| hazard.kind == allowance.hazard).map(Hazard::flag).collect();
    flags.dedup();
    match flags.as_slice() {
        [] => format!("`--allow {allowance}` has no effect: the plan contains no `{}` hazard", allowance.hazard),
        [only] => format!("`--allow {allowance}` has no effect: there is no such hazard at that address; use {only}"),
        [first, second] => {
            format!(
                "`--allow {allowance}` has no effect: there is no such hazard at that address; use {first} or {second}"
            )
        }
        [first, rest @ ..] => format!(
            "`--allow {allowance}` has no effect: there is no such hazard at that address; use {first} (or one of {} others)",
            rest.len()
        ),
    }
}

/// A plan without blockers. The guards of its deletions are set according to the allowances.
#[derive(Clone, Debug)]
pub struct ApprovedPlan(Plan);

impl ApprovedPlan {
    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.0
    }
}

/// Approves a plan, or returns its blockers.
pub fn gate(mut plan: Plan, allowed: &[Allowance]) -> Result<ApprovedPlan, Box<(Plan, Blockers)>> {
    let blockers = blockers_of(&plan, allowed);
    if !blockers.is_empty() {
        return Err(Box::new((plan, blockers)));
    }
    for part in plan.parts_mut() {
        for step in &mut part.steps {
            // A retired tier (`Guard::Drained`) becomes empty on its own, so its guard does not change.
            if let Action::DeleteQueue { guard: guard @ Guard::Empty, .. } = &mut step.action {
                let is_at_risk = part.hazards.iter().any(|hazard| {
                    hazard.kind == HazardKind::MessageLoss && hazard.address == step.address && hazard.must_be_allowed
                });
                // A queue that is empty in the plan keeps its guard, regardless of the allowances.
                if is_at_risk {
                    *guard = widest_guard(allowed, &step.address);
                }
            }
        }
    }
    Ok(ApprovedPlan(plan))
}

/// Returns the least restrictive guard that the allowances permit for a deletion.
fn widest_guard(allowed: &[Allowance], address: &Address) -> Guard {
    let bounds = allowed.iter().filter(|one| one.covers(HazardKind::MessageLoss, address)).map(|one| one.messages);
    let mut guard = Guard::Empty;
    for bound in bounds {
        guard = match (guard, bound) {
            (_, None) | (Guard::Nothing, _) => Guard::Nothing,
            (Guard::Empty | Guard::Drained, Some(bound)) => Guard::AtMost(bound),
            (Guard::AtMost(known), Some(bound)) => Guard::AtMost(known.max(bound)),
        };
    }
    guard
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowances_are_parsed() {
        let one = |text: &str| text.parse::<Allowances>().map(|allowances| allowances.0);
        let plain = |hazard, addresses: Option<&str>, messages| Allowance {
            hazard,
            addresses: addresses.map(Glob::new),
            messages,
        };
        assert_eq!(one("message-loss"), Ok(vec![plain(HazardKind::MessageLoss, None, None)]));
        assert_eq!(
            one("routing-gap,consumer-disruption@queues/shop/a%2Fb"),
            Ok(vec![
                plain(HazardKind::RoutingGap, Some("queues/shop/a%2Fb"), None),
                plain(HazardKind::ConsumerDisruption, Some("queues/shop/a%2Fb"), None)
            ])
        );
        assert_eq!(one("message-loss@queues/*:5"), Ok(vec![plain(HazardKind::MessageLoss, Some("queues/*"), Some(5))]));
        assert!(one("message-loss:many").unwrap_err().to_string().contains("`many` is not a number"));
        assert!(one("mesage-loss").unwrap_err().to_string().contains("message-loss"));
        assert_eq!(one("message-loss@"), Err(AllowanceError::NoAddress));
    }

    #[test]
    fn unknown_number_exceeds_every_limit() {
        let address: Address = serde_json::from_str("\"queues/v/q\"").unwrap();
        let hazard = |messages| Hazard {
            kind: HazardKind::MessageLoss,
            address: address.clone(),
            text: String::new(),
            messages,
            must_be_allowed: true,
        };
        let bounded = &"message-loss:5".parse::<Allowances>().unwrap().0[0];
        assert!(bounded.allows(&hazard(Some(5))));
        assert!(!bounded.allows(&hazard(Some(6))));
        assert!(!bounded.allows(&hazard(None)));
        assert!("message-loss".parse::<Allowances>().unwrap().0[0].allows(&hazard(None)));
    }
}
