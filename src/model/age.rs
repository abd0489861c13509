//! Parses ages in RabbitMQ's notation: digits and a unit, such as `7D`.

/// A day, in milliseconds.
const DAY: i128 = 86_400_000;

/// Returns the milliseconds of an age, or `None` if the broker does not accept the text as an age.
///
/// The broker checks ages in arguments and policies in the same way (`rabbit_amqqueue:check_max_age`, 3.9 to 4.3). It
/// refuses zero and ignores the text after a line break. A year has 365 days, and a month 30 (`unit_value_in_ms`).
pub fn age(text: &str) -> Option<i128> {
    let line = text.split('\n').next().unwrap_or_default();
    let unit = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &line[..line.len() - unit.len()];
    let length = match unit {
        "Y" => 365 * DAY,
        "M" => 30 * DAY,
        "D" => DAY,
        "h" => 3_600_000,
        "m" => 60_000,
        "s" => 1000,
        _ => return None,
    };
    // Erlang's integers are unbounded.
    let number = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(i128::MAX) };
    (number > 0).then(|| number.saturating_mul(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_consist_of_digits_and_a_unit() {
        assert_eq!(age("7D"), age("168h"));
        assert_eq!(age("007m"), Some(420_000));
        assert_eq!(age("1Y"), Some(365 * DAY));
        assert_eq!(age("7D\nx"), age("7D"));
        assert!(age("99999999999999999999999999999999999999999s").is_some());
        for text in ["", "D", "7", "0D", "7d", "7 D", "-7D", "7DD", "1h30m", "é", "7é", "\n7D"] {
            assert_eq!(age(text), None, "{text:?}");
        }
    }
}
