//! Finds headers that match one binding from each wanted set and no unwanted binding.
//!
//! Additional headers never prevent a binding from matching. Therefore, the search tries only the headers that the
//! chosen wanted bindings require.

use super::budget::{Budget, TooComplex};
use crate::model::message_headers::{BCC, CC};
use crate::model::{ArgumentValue, Arguments, Binding, BrokerVersion};
use crate::rabbitmq::routing::Certainty;
use crate::rabbitmq::routing::message::{Headers, compared_headers, is_same};
use std::collections::BTreeMap;

/// The maximum number of combinations of bindings and headers that a search tries.
const MAX_CHOICES: usize = 5_000;

/// The required headers; `None` for any value.
type Required<'a> = BTreeMap<&'a str, Option<&'a ArgumentValue>>;

/// Returns headers that match one binding from each wanted set and no unwanted binding; `None` if there are no such
/// headers.
pub(super) fn find_headers(
    wanted: &[Vec<&Binding>],
    unwanted: &[&Binding],
    (version, budget): (BrokerVersion, &Budget),
) -> Result<Option<Arguments>, TooComplex> {
    let mut search = HeaderSearch { wanted, unwanted, version, choices: 0, budget };
    search.choose(0, &Required::new())
}

struct HeaderSearch<'a> {
    wanted: &'a [Vec<&'a Binding>],
    unwanted: &'a [&'a Binding],
    version: BrokerVersion,
    choices: usize,
    budget: &'a Budget,
}

impl<'a> HeaderSearch<'a> {
    /// Chooses a binding from each wanted set, starting with the set at index `number`.
    fn choose(&mut self, number: usize, required: &Required<'a>) -> Result<Option<Arguments>, TooComplex> {
        self.choices += 1;
        self.budget.take(1 + self.unwanted.len() / 8)?;
        if self.choices > MAX_CHOICES {
            return Err(TooComplex);
        }
        let wanted = self.wanted;
        let Some(bindings) = wanted.get(number) else {
            return self.accepted(required);
        };
        for binding in bindings {
            for option in options(binding, self.version) {
                if let Some(required) = self.with(required, option)?
                    && let Some(found) = self.choose(number + 1, &required)?
                {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }

    /// Adds required headers. Returns `None` if a header would need to have two different values.
    fn with(
        &self,
        required: &Required<'a>,
        more: Vec<(&'a str, Option<&'a ArgumentValue>)>,
    ) -> Result<Option<Required<'a>>, TooComplex> {
        let mut all = required.clone();
        for (name, value) in more {
            let known = all.entry(name).or_insert(value);
            match (*known, value) {
                (Some(one), Some(other)) => match is_same(one, other, self.version) {
                    Certainty::Always => {}
                    Certainty::Never => return Ok(None),
                    Certainty::Perhaps => return Err(TooComplex),
                },
                (None, Some(_)) => *known = value,
                (Some(_) | None, None) => {}
            }
        }
        Ok(Some(all))
    }

    fn accepted(&self, required: &Required<'a>) -> Result<Option<Arguments>, TooComplex> {
        // The values of these headers are lists of routing keys, and the broker removes the BCC header.
        if [CC, BCC].iter().any(|name| required.contains_key(*name)) {
            return Err(TooComplex);
        }
        let headers: Arguments = required
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.cloned().unwrap_or_else(|| self.fresh_value(name))))
            .collect();
        let exact = Headers::exactly(&headers);
        for binding in self.unwanted {
            match exact.matches(&binding.arguments, self.version) {
                Certainty::Always => return Ok(None),
                Certainty::Never => {}
                Certainty::Perhaps => return Err(TooComplex),
            }
        }
        Ok(Some(headers))
    }

    /// Returns a value that no unwanted binding requires for a header.
    fn fresh_value(&self, name: &str) -> ArgumentValue {
        let is_used = |word: &str| {
            let is_value =
                |binding: &&Binding| binding.arguments.get(name).and_then(ArgumentValue::as_text) == Some(word);
            self.unwanted.iter().any(is_value)
        };
        let mut words = std::iter::once("x".to_owned()).chain((1..).map(|number: u64| format!("x{number}")));
        words.find(|word| !is_used(word)).unwrap_or_default().as_str().into()
    }
}

/// Returns the alternative sets of headers that make a message match a binding.
fn options(binding: &Binding, version: BrokerVersion) -> Vec<Vec<(&str, Option<&ArgumentValue>)>> {
    let (is_any, compared) = compared_headers(&binding.arguments, version);
    let each = compared.map(|(name, value)| (name.as_str(), Some(value).filter(|it| **it != ArgumentValue::Null)));
    if is_any { each.map(|one| vec![one]).collect() } else { vec![each.collect()] }
}
