//! Names that are near one that nothing has.

use crate::spec::closest;
use std::collections::BTreeSet;

/// So many names are suggested for a part of a name.
const MOST_NAMES: usize = 5;

/// Which of these names was meant, as a hint: the one that is spelt nearly so, else those of which it is a part.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_is_not_one_of_several() {
        let known = ["orders.dead", "orders.mail", "rest"].map(str::to_owned).into();
        let hint = |asked: &str| hint(asked, &known).unwrap_or_default();
        assert_eq!(hint("rset"), "did you mean `rest`?");
        assert_eq!(hint("dead"), "did you mean `orders.dead`?");
        assert_eq!(hint("ders."), "did you mean one of `orders.dead`, `orders.mail`?");
        assert_eq!(hint("billing"), "");
    }
}
