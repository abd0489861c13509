//! Suggests names for an unknown one.

use super::failure::Failure;
use crate::model::VhostName;
use crate::model::count::number;
use crate::model::printable::clean;
use crate::spec::closest;
use std::collections::BTreeSet;

/// The maximum number of names that are suggested for a part of a name.
const MOST_NAMES: usize = 5;

/// The maximum number of vhosts that are listed if one is missing.
const MOST_VHOSTS: usize = 8;

/// Returns a hint with the name that was probably intended: the one with a similar spelling, otherwise those that
/// contain it.
pub(super) fn hint(asked: &str, known: &BTreeSet<String>) -> Option<String> {
    let names = || known.iter().map(String::as_str);
    if let Some(near) = closest(asked, names()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let with_it: Vec<&str> = names().filter(|name| name.contains(asked)).take(MOST_NAMES).collect();
    match &with_it[..] {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        several => Some(format!("did you mean one of `{}`?", several.join("`, `"))),
    }
}

/// Returns the failure for a missing vhost, with the one that was probably intended, or those that exist.
pub(super) fn no_such_vhost(vhost: &VhostName, known: &[VhostName]) -> Failure {
    let vhost = vhost.as_str();
    let failure = Failure::failed(format!("vhost `{}` does not exist", clean(vhost)));
    if let Some(near) = closest(vhost, known.iter().map(VhostName::as_str)) {
        return failure.hint(format!("did you mean `{}`?", clean(near)));
    }
    let shown: Vec<String> = known.iter().take(MOST_VHOSTS).map(|it| format!("`{}`", clean(it.as_str()))).collect();
    let more = match known.len().checked_sub(MOST_VHOSTS) {
        Some(more) if more > 0 => format!(" and {} more", number(more as u64)),
        Some(_) | None => String::new(),
    };
    if shown.is_empty() { failure } else { failure.hint(format!("existing vhosts: {}{more}", shown.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hint_names_one_or_several_matches() {
        let known = ["orders.dead", "orders.mail", "rest"].map(str::to_owned).into();
        let hint = |asked: &str| hint(asked, &known).unwrap_or_default();
        assert_eq!(hint("rset"), "did you mean `rest`?");
        assert_eq!(hint("dead"), "did you mean `orders.dead`?");
        assert_eq!(hint("ders."), "did you mean one of `orders.dead`, `orders.mail`?");
        assert_eq!(hint("billing"), "");
    }
}
