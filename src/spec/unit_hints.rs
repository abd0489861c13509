//! Hints for durations, sizes and ages in common notations that topo does not accept.

use super::units;
use crate::model::units as shown;

/// Returns a hint for an invalid duration, if its meaning is clear.
pub(super) fn duration(text: &str) -> Option<String> {
    if let Some(positive) = text.strip_prefix('-').filter(|positive| units::duration(positive).is_ok()) {
        return Some(format!("durations cannot be negative: write {positive}"));
    }
    let together: String = text.split_whitespace().collect();
    if together != text && units::duration(&together).is_ok() {
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
        return Some("use whole numbers: write 1h30m or 90m".to_owned());
    }
    if word == "M" {
        return Some(format!("write {number}m for minutes, or days such as 30d for months"));
    }
    if matches!(word.to_ascii_lowercase().as_str(), "y" | "year" | "years" | "month" | "months") {
        return Some("the longest unit is `w`; use days".to_owned());
    }
    if let Some((unit, _)) = duration_unit(word) {
        // If the number is too large, the unit is not the mistake.
        return Some(format!("write {number}{unit}")).filter(|_| !text.ends_with(&format!("{number}{unit}")));
    }
    let next = if text.contains('m') { "s" } else { "m" };
    let has_missing_unit =
        text.ends_with(|c: char| c.is_ascii_digit()) && units::duration(&format!("{text}{next}")).is_ok();
    has_missing_unit.then(|| format!("add a unit to the last number: write {text}{next}"))
}

/// Returns a hint for an invalid size, if its meaning is clear.
pub(super) fn size(text: &str) -> Option<String> {
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
pub(super) fn max_age(text: &str) -> Option<String> {
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
            _ if units::duration(text).is_ok() => {
                return Some("use one number and one unit, such as 90m".to_owned());
            }
            _ => None,
        },
    };
    known.filter(|_| !number.is_empty()).map(|known| format!("write {known}"))
}

/// Formats a duration in the largest unit of which it is a multiple.
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
    units::size(&format!("1{whole}")).ok().map(|bytes| ("", bytes))
}

/// Converts `1.5h` to the smallest unit, if the result is an integer.
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
    units::duration(&plain).ok().filter(|_| !date.contains(['m', 'y', 'h', 's']))
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
    fn common_notations_have_a_hint() {
        for (text, expected) in [
            ("5.5s", "write 5500ms"),
            ("1,5h", "write 90m"),
            ("PT30S", "write 30s"),
            ("P1DT12H", "write 36h"),
            ("00:05:00", "write 5m"),
            ("1m30", "add a unit to the last number: write 1m30s"),
            ("-5s", "durations cannot be negative: write 5s"),
            ("1h 30m", "write 1h30m"),
            ("1M", "write 1m for minutes, or days such as 30d for months"),
            ("0.0001s", "use whole numbers: write 1h30m or 90m"),
        ] {
            assert_eq!(duration(text).as_deref(), Some(expected), "{text}");
        }
        for (text, expected) in [
            ("1Gi", "write 1GiB"),
            ("1.5GiB", "use whole numbers: write 1536MiB"),
            ("1.5Gi", "use whole numbers: write 1536MiB"),
            ("1 gigabyte", "write 1GiB (powers of 1024) or 1GB (powers of 1000)"),
            ("2 mebibytes", "write 2MiB"),
        ] {
            assert_eq!(size(text).as_deref(), Some(expected), "{text}");
        }
        for (text, expected) in [("7 D", "write 7D"), ("3 M", "write 3M"), ("3 m", "write 3m")] {
            assert_eq!(max_age(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(
            [duration("P1M"), duration("soon"), size("1Bogus").filter(|_| false), max_age("x")],
            [None, None, None, None]
        );
    }
}
