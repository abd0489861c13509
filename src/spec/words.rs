//! Suggests the known word that is closest to an unknown one, and joins words for messages.

/// Returns the closest known word, if it is close enough.
pub(crate) fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |word: &str| word.replace(['-', '_', ' '], "").to_lowercase();
    let distance = |candidate: &str| {
        // `message-ttl` and `MessageTTL` are `messageTtl` in a different style.
        if plain(candidate) == plain(word) { 0 } else { strsim::damerau_levenshtein(candidate, word) }
    };
    let known: Vec<&str> = known.into_iter().collect();
    let near = known
        .iter()
        .copied()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).clamp(1, 4))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    // `warn` is the beginning of only one word.
    let mut longer = known.into_iter().filter(|candidate| word.len() >= 3 && candidate.starts_with(word));
    near.or_else(|| longer.next().filter(|_| longer.next().is_none()))
}

/// Joins words for a message: `` `a`, `b` or `c` ``.
pub(crate) fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    joined(words, "or")
}

/// Joins words for a message: `` `a`, `b` and `c` ``.
pub(crate) fn listed_all<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    joined(words, "and")
}

fn joined<'a>(words: impl IntoIterator<Item = &'a str>, conjunction: &str) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} {conjunction} {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_and_other_spellings_are_recognized() {
        let known = ["messageTtl", "maxLength", "maxLengthBytes", "type"];
        assert_eq!(closest("mesageTtl", known), Some("messageTtl"));
        assert_eq!(closest("message-ttl", known), Some("messageTtl"));
        assert_eq!(closest("max_length_bytes", known), Some("maxLengthBytes"));
        assert_eq!(closest("tpye", known), Some("type"));
        assert_eq!(closest("colour", known), None);
        assert_eq!(closest("mess", known), Some("messageTtl"));
        assert_eq!(closest("max", known), None);
        assert_eq!(listed(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(listed(["a"]), "`a`");
        assert_eq!(listed_all(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
