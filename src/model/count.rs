//! Formats numbers and counts for users.

/// Formats a number with thousands separators: `1,204`.
pub fn number(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a count with its noun, whose plural is formed with `s`: `1 message`, `1,204 messages`.
pub fn count(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(value), if value == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_thousands_separators() {
        assert_eq!(number(0), "0");
        assert_eq!(number(999), "999");
        assert_eq!(number(1_204), "1,204");
        assert_eq!(number(1_000_000), "1,000,000");
        assert_eq!(count(1, "message"), "1 message");
    }
}
