//! Reports a disagreement between topo and a broker: reduces the case and writes a scenario.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Topo;

/// The time limit for a reduction.
const SHRINKING: Duration = Duration::from_secs(60);

/// A disagreement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wrong {
    /// The failed check. A smaller case must fail the same check.
    pub(super) check: &'static str,
    pub(super) text: String,
}

impl Wrong {
    pub(super) fn new(check: &'static str, text: impl Into<String>) -> Self {
        Self { check, text: text.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.text)
    }
}

/// Removes properties while the same check fails. `smaller` returns the case without each property in turn.
pub(super) fn smallest<Case>(
    mut case: Case,
    mut wrong: Wrong,
    smaller: impl Fn(&Case) -> Vec<Case>,
    play: impl Fn(&Case) -> Result<(), Wrong>,
) -> (Case, Wrong) {
    let deadline = Instant::now() + SHRINKING;
    'smaller: loop {
        for candidate in smaller(&case) {
            if Instant::now() > deadline {
                return (case, wrong);
            }
            if let Err(again) = play(&candidate)
                && again.check == wrong.check
            {
                (case, wrong) = (candidate, again);
                continue 'smaller;
            }
        }
        return (case, wrong);
    }
}

/// A file for `tests/scenarios`; `TOPO_UPDATE=1` writes the plan into it. A case that a spec or HTTP cannot represent
/// belongs in a unit test; the remark states this.
pub(super) struct Scenario {
    pub(super) wrong: Wrong,
    pub(super) remark: String,
    pub(super) live: Value,
    pub(super) spec: Value,
}

impl Scenario {
    /// Returns the spec as YAML, with one key per line and each value as JSON.
    fn yaml(&self) -> String {
        let keys = self.spec.as_object().expect("a spec is a map");
        keys.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remark = if self.remark.is_empty() { String::new() } else { format!("\n{}\n", self.remark) };
        let Wrong { check, text } = &self.wrong;
        write!(
            f,
            "# {check}\n\n{text}\n{remark}\n```json live\n{}\n```\n\n```yaml spec\n{}```\n\n```text plan exit 2\n```\n",
            self.live,
            self.yaml()
        )
    }
}

/// Expects this text for an artificial disagreement, with a valid spec.
pub(super) fn expect_scenario(scenario: &Scenario, text: &str) {
    assert_eq!(scenario.to_string(), text);
    Topo::offline().spec(&scenario.yaml()).run(["validate"]).expect_code(0);
}
