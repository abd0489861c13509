//! Formats values with their units for users. Parses durations (`30s`) and ages in RabbitMQ's notation (`7D`).

use super::arguments::ArgumentValue;
use super::known_arguments::{KnownArgument, Unit};

/// Returns the unit of an argument (`x-message-ttl`) or policy key (`message-ttl`); [`Unit::None`] for an unknown name.
pub fn unit_of(name: &str) -> Unit {
    KnownArgument::named(name).or_else(|| KnownArgument::of_policy_key(name)).map_or(Unit::None, KnownArgument::unit)
}

/// Formats a value. A string is quoted if it is empty, looks like a value of a different type, or contains special
/// characters. For example, the broker distinguishes `"30000"` from `30000`.
pub fn value_text(value: &ArgumentValue) -> String {
    match value.as_text().filter(|text| is_ambiguous(text)) {
        Some(text) => format!("{text:?}"),
        None => value.to_string(),
    }
}

/// Formats the value of an argument or policy key. If the value has a unit, appends the duration or the size: `30000
/// (30s)`.
pub fn with_unit(name: &str, value: &ArgumentValue) -> String {
    let bare = value_text(value);
    let meaning = value.as_integer().and_then(|number| match unit_of(name) {
        Unit::Milliseconds => duration(number),
        Unit::Bytes => size(number),
        Unit::None => None,
    });
    match meaning {
        Some(meaning) => format!("{bare} ({meaning})"),
        None => bare,
    }
}

fn is_ambiguous(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "-_./:#*@%+".contains(c);
    text.is_empty()
        || text.parse::<f64>().is_ok()
        || ["true", "false", "null"].contains(&text)
        || !text.chars().all(plain)
}

/// Formats milliseconds as days, hours, minutes, seconds and milliseconds: `30s`, `1m30s`, `7d`. Returns `None` for
/// zero and negative numbers.
pub fn duration(milliseconds: i64) -> Option<String> {
    if milliseconds <= 0 {
        return None;
    }
    let mut rest = milliseconds;
    let mut text = String::new();
    for (unit, length) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)] {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    Some(text)
}

/// Parses the output of [`duration`] into milliseconds; `None` for any other string.
pub fn milliseconds(text: &str) -> Option<i64> {
    let mut total = 0_i64;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let after_digits = &rest[digits..];
        let unit_length = after_digits.len() - after_digits.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let length = match &after_digits[..unit_length] {
            "d" => 86_400_000,
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1000,
            "ms" => 1,
            _ => return None,
        };
        total = total.checked_add(rest[..digits].parse::<i64>().ok()?.checked_mul(length)?)?;
        rest = &after_digits[unit_length..];
    }
    Some(total).filter(|total| duration(*total).as_deref() == Some(text))
}

/// Formats bytes in the largest exact unit, binary or decimal, whichever is shorter: `64KiB`, `1GiB`, `20GB`. Returns
/// `None` if the number is not positive, or not a multiple of any unit.
pub fn size(bytes: i64) -> Option<String> {
    if bytes <= 0 {
        return None;
    }
    let binary = [("TiB", 1_i64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let decimal = [("TB", 1_000_000_000_000_i64), ("GB", 1_000_000_000), ("MB", 1_000_000)];
    let in_largest = |units: &[(&str, i64)]| {
        let (unit, length) = units.iter().find(|(_, length)| bytes % length == 0)?;
        Some(format!("{}{unit}", bytes / length))
    };
    let digits = |text: &String| text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
    // If both have the same number of digits, the binary unit is returned, because memory is measured in binary units.
    [in_largest(&binary), in_largest(&decimal)].into_iter().flatten().min_by_key(digits)
}

/// A day, in milliseconds.
const DAY: i128 = 86_400_000;

/// Parses an age into milliseconds; `None` if the broker does not accept the string as an age.
///
/// The broker checks ages in arguments and policies in the same way (`rabbit_amqqueue:check_max_age`, 3.9 to 4.3). It
/// refuses zero and ignores the text after a line break. A year has 365 days, and a month has 30 days
/// (`unit_value_in_ms`).
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
    fn formatted_durations_are_parsed_unchanged() {
        for number in [1, 999, 5000, 90_000, 3_600_000, 86_400_001, 315_360_000_000] {
            assert_eq!(milliseconds(&duration(number).unwrap()), Some(number));
        }
        for text in ["", "5", "0s", "90s", "05s", "1s1m", "5x", "s", "99999999999999999999s"] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_have_the_shortest_exact_unit() {
        for (bytes, written) in [
            (20_000_000_000, "20GB"),
            (1_000_000_000_000, "1TB"),
            (64_000_000, "64MB"),
            (1_024_000, "1000KiB"),
            (64 << 20, "64MiB"),
            (5 << 40, "5TiB"),
        ] {
            assert_eq!(size(bytes).as_deref(), Some(written));
        }
        assert_eq!(size(1_000_001), None);
    }

    #[test]
    fn values_are_followed_by_their_meaning() {
        assert_eq!(with_unit("x-message-ttl", &30_000.into()), "30000 (30s)");
        assert_eq!(with_unit("message-ttl", &90_000.into()), "90000 (1m30s)");
        assert_eq!(with_unit("x-max-length-bytes", &(1_i64 << 30).into()), "1073741824 (1GiB)");
        assert_eq!(with_unit("x-message-ttl", &"30000".into()), "\"30000\"");
        assert_eq!(with_unit("x-max-length", &5.into()), "5");
    }
}

#[cfg(test)]
mod age_tests {
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
