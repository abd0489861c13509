//! Parses durations (`1h30m`) into milliseconds and sizes (`64KiB`) into bytes, and checks ages (`7D`). For common
//! notations that topo does not accept, such as `1.5h`, `PT30S` or `1Gi`, the error is a hint with the accepted
//! notation.

use crate::model::units as shown;

/// The names of units, each with its value in milliseconds or bytes.
type Units = &'static [(&'static str, i64)];

/// The units for durations, in milliseconds. Months and years have no fixed length, so durations do not support them.
const DURATION: Units =
    &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

/// The units for sizes, in bytes. Decimal units are powers of 1000, and binary units are powers of 1024.
const SIZE: Units = &[
    ("B", 1),
    ("KB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// The pattern for durations in the JSON Schema. The parser accepts the same notation.
pub(crate) const DURATION_PATTERN: &str = "^([0-9]+(ms|s|m|h|d|w))+$";
/// The pattern for sizes in the JSON Schema. The parser accepts the same notation.
pub(crate) const SIZE_PATTERN: &str = "^[0-9]+(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$";
/// The pattern for ages in the JSON Schema: the broker's pattern for `x-max-age`, plus the `d` unit.
pub(crate) const MAX_AGE_PATTERN: &str = "^[0-9]+[YMDdhms]$";

/// Parses a duration such as `500ms` or `1h30m` into milliseconds. The error contains a hint if one is available.
pub(crate) fn duration(text: &str) -> Result<i64, Option<String>> {
    let mut total = 0_i64;
    let mut rest = text;
    while !rest.is_empty() {
        let (value, after) = leading_value(rest, DURATION).ok_or_else(|| duration_hint(text))?;
        total = total.checked_add(value).ok_or(None)?;
        rest = after;
    }
    if text.is_empty() { Err(duration_hint(text)) } else { Ok(total) }
}

/// Parses a size such as `64KiB` into bytes. The error contains a hint if one is available.
pub(crate) fn size(text: &str) -> Result<i64, Option<String>> {
    match leading_value(text, SIZE) {
        Some((bytes, "")) => Ok(bytes),
        Some(_) | None => Err(size_hint(text)),
    }
}

/// Converts an age to RabbitMQ's notation: `7d` becomes `7D`. The error contains a hint if one is available.
pub(crate) fn max_age(text: &str) -> Result<String, Option<String>> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        match &text[digits.len()..] {
            "Y" | "M" | "D" | "h" | "m" | "s" => return Ok(text.to_owned()),
            "d" => return Ok(format!("{digits}D")),
            _ => {}
        }
    }
    Err(max_age_hint(text))
}

/// Parses the number and the unit at the start of a string. Returns the value and the rest of the string.
fn leading_value(text: &str, units: Units) -> Option<(i64, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: i64 = text[..digits].parse().ok()?;
    let rest = &text[digits..];
    let unit_length = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
    let (_, length) = units.iter().find(|(unit, _)| *unit == &rest[..unit_length])?;
    Some((number.checked_mul(*length)?, &rest[unit_length..]))
}

/// Returns a hint for an invalid duration, if its meaning is clear.
fn duration_hint(text: &str) -> Option<String> {
    if let Some(positive) = text.strip_prefix('-').filter(|positive| duration(positive).is_ok()) {
        return Some(format!("durations cannot be negative: write {positive}"));
    }
    let together: String = text.split_whitespace().collect();
    if together != text && duration(&together).is_ok() {
        return Some(format!("write {together}"));
    }
    if let Some(time) = fraction(text, &duration_unit).or_else(|| iso(text)).or_else(|| clock(text)) {
        return in_one_unit(time).map(|time| format!("write {time}"));
    }
    let (number, word) = number_and_unit(text);
    if number.is_empty() {
        return None;
    }
    if word.starts_with(['.', ',']) {
        return Some("use whole numbers, such as 1h30m or 500ms".to_owned());
    }
    if word == "M" {
        return Some(format!("write {number}m for minutes, or use days for months, such as 30d"));
    }
    if matches!(word.to_ascii_lowercase().as_str(), "y" | "year" | "years" | "month" | "months") {
        return Some("the longest unit is `w`; use days".to_owned());
    }
    if let Some((unit, _)) = duration_unit(word) {
        // If the number is too large, the unit is not the problem.
        return Some(format!("write {number}{unit}")).filter(|_| !text.ends_with(&format!("{number}{unit}")));
    }
    let next = if text.contains('m') { "s" } else { "m" };
    let has_missing_unit = text.ends_with(|c: char| c.is_ascii_digit()) && duration(&format!("{text}{next}")).is_ok();
    has_missing_unit.then(|| format!("add a unit to the last number: write {text}{next}"))
}

/// Returns a hint for an invalid size, if its meaning is clear.
fn size_hint(text: &str) -> Option<String> {
    if let Some(bytes) = fraction(text, &size_unit) {
        return shown::size(bytes).map(|size| format!("use whole numbers: write {size}"));
    }
    let (number, word) = number_and_unit(text);
    let initial = word.chars().next().filter(|_| !number.is_empty())?.to_ascii_uppercase();
    if initial == 'B' {
        return Some(format!("write {number}B"));
    }
    let binary = || format!("{number}{initial}iB");
    let decimal = || format!("{number}{initial}B");
    match word.to_ascii_lowercase().get(1..)? {
        // Kubernetes omits the `B` but distinguishes binary and decimal units.
        "i" | "ibibyte" | "ebibyte" | "ibibytes" | "ebibytes" => Some(format!("write {}", binary())),
        "" | "b" | "ib" | "ilobyte" | "egabyte" | "igabyte" | "erabyte" | "ilobytes" | "egabytes" | "igabytes"
        | "erabytes"
            if "KMGT".contains(initial) =>
        {
            Some(format!("write {} (powers of 1024) or {} (powers of 1000)", binary(), decimal()))
        }
        _ => None,
    }
    .filter(|_| "KMGT".contains(initial))
}

/// Returns a hint for an invalid age, if its meaning is clear.
fn max_age_hint(text: &str) -> Option<String> {
    let (number, word) = number_and_unit(text);
    let known = match word {
        "M" => Some(format!("{number}M")),
        _ => match word.to_ascii_lowercase().as_str() {
            "w" | "week" | "weeks" => {
                number.parse::<i64>().ok().and_then(|weeks| weeks.checked_mul(7)).map(|days| format!("{days}D"))
            }
            "y" | "year" | "years" => Some(format!("{number}Y")),
            "month" | "months" => Some(format!("{number}M")),
            "d" | "day" | "days" => Some(format!("{number}D")),
            "h" | "hour" | "hours" => Some(format!("{number}h")),
            "m" | "min" | "mins" | "minute" | "minutes" => Some(format!("{number}m")),
            "s" | "sec" | "secs" | "second" | "seconds" => Some(format!("{number}s")),
            _ if duration(text).is_ok() => {
                return Some("use one number and one unit, such as 90m".to_owned());
            }
            _ => None,
        },
    };
    known.filter(|_| !number.is_empty()).map(|known| format!("write {known}"))
}

/// Formats a duration in the largest unit, up to days, that divides it exactly. Returns `None` if the duration is not
/// positive.
fn in_one_unit(milliseconds: i64) -> Option<String> {
    let units = ["d", "h", "m", "s", "ms"].into_iter().filter_map(duration_unit);
    let (unit, length) =
        units.into_iter().find(|(_, length)| milliseconds % length == 0).filter(|_| milliseconds > 0)?;
    Some(format!("{}{unit}", milliseconds / length))
}

fn number_and_unit(text: &str) -> (&str, &str) {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (&text[..digits], text[digits..].trim())
}

/// Returns the unit for a word, and its length in milliseconds.
fn duration_unit(word: &str) -> Option<(&'static str, i64)> {
    Some(match word.to_ascii_lowercase().as_str() {
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => ("ms", 1),
        "s" | "sec" | "secs" | "second" | "seconds" => ("s", 1000),
        "m" | "min" | "mins" | "minute" | "minutes" => ("m", 60_000),
        "h" | "hr" | "hrs" | "hour" | "hours" => ("h", 3_600_000),
        "d" | "day" | "days" => ("d", 86_400_000),
        "w" | "week" | "weeks" => ("w", 604_800_000),
        _ => return None,
    })
}

fn size_unit(word: &str) -> Option<(&'static str, i64)> {
    let whole = word.strip_suffix('i').map_or_else(|| word.to_owned(), |word| format!("{word}iB"));
    size(&format!("1{whole}")).ok().map(|bytes| ("", bytes))
}

/// Converts a decimal number with a unit (`1.5h`) to milliseconds or bytes. Returns `None` if the string does not have
/// this form, or if the result is not an integer.
fn fraction(text: &str, unit: &dyn Fn(&str) -> Option<(&'static str, i64)>) -> Option<i64> {
    let (whole, rest) = text.split_once(['.', ','])?;
    let (digits, word) = number_and_unit(rest);
    let (_, length) = unit(word).filter(|_| !digits.is_empty())?;
    let scale = 10_i128.pow(u32::try_from(digits.len()).ok().filter(|length| *length <= 9)?);
    let number = whole.parse::<u32>().ok().map(i128::from)? * scale + digits.parse::<i128>().ok()?;
    let total = number * i128::from(length);
    if total % scale == 0 { i64::try_from(total / scale).ok() } else { None }
}

/// Parses an ISO 8601 duration: `PT1H30M`, `P7D`.
fn iso(text: &str) -> Option<i64> {
    let (date, time) = text.strip_prefix('P')?.split_once('T').unwrap_or((text.strip_prefix('P')?, ""));
    let date = date.to_ascii_lowercase();
    let plain = format!("{date}{}", time.to_ascii_lowercase());
    // Months and years have no fixed length.
    duration(&plain).ok().filter(|_| !date.contains(['m', 'y', 'h', 's']))
}

/// Parses hours, minutes and seconds: `00:05:00`.
fn clock(text: &str) -> Option<i64> {
    let numbers: Option<Vec<i64>> = text.split(':').map(|number| number.parse::<u32>().ok().map(i64::from)).collect();
    match numbers?.as_slice() {
        [hours, minutes, seconds] => Some(((hours * 60 + minutes) * 60 + seconds) * 1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        for (text, expected) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("2w", 1_209_600_000),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        for (text, hint) in [
            ("30sec", Some("write 30s")),
            ("5 minutes", Some("write 5m")),
            ("7D", Some("write 7d")),
            ("2M", Some("write 2m for minutes, or use days for months, such as 30d")),
            ("1y", Some("the longest unit is `w`; use days")),
            ("soon", None),
            ("", None),
            ("99999999999999999w", None),
        ] {
            assert_eq!(duration(text), Err(hint.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn sizes_are_parsed() {
        for (text, expected) in [("64KiB", 65_536), ("1GiB", 1 << 30), ("10MB", 10_000_000), ("5B", 5)] {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        let hint = "write 1GiB (powers of 1024) or 1GB (powers of 1000)";
        for text in ["1G", "1gb", "1gib", "1 GiB"] {
            assert_eq!(size(text), Err(Some(hint.to_owned())), "{text}");
        }
        assert_eq!(size("many"), Err(None));
    }

    #[test]
    fn ages_use_rabbitmq_units() {
        assert_eq!(max_age("7D"), Ok("7D".to_owned()));
        assert_eq!(max_age("7d"), Ok("7D".to_owned()));
        assert_eq!(max_age("90m"), Ok("90m".to_owned()));
        assert_eq!(max_age("2w"), Err(Some("write 14D".to_owned())));
        assert_eq!(max_age("5min"), Err(Some("write 5m".to_owned())));
        assert_eq!(max_age("7"), Err(None));
        assert_eq!(max_age("1h30m"), Err(Some("use one number and one unit, such as 90m".to_owned())));
    }
}

#[cfg(test)]
mod hint_tests {
    use super::*;

    #[test]
    fn only_common_notations_have_a_hint() {
        for (text, expected) in [
            ("5.5s", "write 5500ms"),
            ("1,5h", "write 90m"),
            ("PT30S", "write 30s"),
            ("P1DT12H", "write 36h"),
            ("00:05:00", "write 5m"),
            ("1m30", "add a unit to the last number: write 1m30s"),
            ("-5s", "durations cannot be negative: write 5s"),
            ("1h 30m", "write 1h30m"),
            ("1M", "write 1m for minutes, or use days for months, such as 30d"),
            ("0.0001s", "use whole numbers, such as 1h30m or 500ms"),
        ] {
            assert_eq!(duration_hint(text).as_deref(), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("1Gi", "write 1GiB"),
            ("1.5GiB", "use whole numbers: write 1536MiB"),
            ("1.5Gi", "use whole numbers: write 1536MiB"),
            ("1 gigabyte", "write 1GiB (powers of 1024) or 1GB (powers of 1000)"),
            ("2 mebibytes", "write 2MiB"),
        ] {
            assert_eq!(size_hint(text).as_deref(), Some(expected), "{text}");
        }
        for (text, expected) in [("7 D", "write 7D"), ("3 M", "write 3M"), ("3 m", "write 3m")] {
            assert_eq!(max_age_hint(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(
            [duration_hint("P1M"), duration_hint("soon"), size_hint("1Kbogus"), max_age_hint("x")],
            [None, None, None, None]
        );
    }
}
