//! Parses durations (`1h30m`) and sizes (`64KiB`) into milliseconds and bytes. `unit_hints` explains invalid ones.

use super::unit_hints;

/// A unit and its length in milliseconds or bytes.
type Units = &'static [(&'static str, i64)];

/// Units in milliseconds. Months and years are missing because they have no fixed length.
const DURATION: Units =
    &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

/// Units in bytes: decimal units are powers of 1000, binary units are powers of 1024.
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

/// The pattern of durations in the schema; the parser accepts exactly these.
pub(crate) const DURATION_PATTERN: &str = "^([0-9]+(ms|s|m|h|d|w))+$";
/// The pattern of sizes in the schema; the parser accepts exactly these.
pub(crate) const SIZE_PATTERN: &str = "^[0-9]+(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$";
/// The broker's pattern of `x-max-age`, extended by `d`.
pub(crate) const MAX_AGE_PATTERN: &str = "^[0-9]+[YMDdhms]$";

/// Parses `500ms` or `1h30m` into milliseconds; otherwise returns a hint, if there is one.
pub(crate) fn duration(text: &str) -> Result<i64, Option<String>> {
    let mut total = 0_i64;
    let mut rest = text;
    while !rest.is_empty() {
        let (part, behind) = part(rest, DURATION).ok_or_else(|| unit_hints::duration(text))?;
        total = total.checked_add(part).ok_or(None)?;
        rest = behind;
    }
    if text.is_empty() { Err(unit_hints::duration(text)) } else { Ok(total) }
}

/// Parses `64KiB` into bytes; otherwise returns a hint, if there is one.
pub(crate) fn size(text: &str) -> Result<i64, Option<String>> {
    match part(text, SIZE) {
        Some((bytes, "")) => Ok(bytes),
        Some(_) | None => Err(unit_hints::size(text)),
    }
}

/// Parses an age into RabbitMQ's notation: `7d` becomes `7D`.
pub(crate) fn max_age(text: &str) -> Result<String, Option<String>> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        match &text[digits.len()..] {
            "Y" | "M" | "D" | "h" | "m" | "s" => return Ok(text.to_owned()),
            "d" => return Ok(format!("{digits}D")),
            _ => {}
        }
    }
    Err(unit_hints::max_age(text))
}

/// Splits a number with its unit from the start of the text.
fn part(text: &str, units: Units) -> Option<(i64, &str)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: i64 = text[..digits].parse().ok()?;
    let rest = &text[digits..];
    let unit_length = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
    let (_, length) = units.iter().find(|(unit, _)| *unit == &rest[..unit_length])?;
    Some((number.checked_mul(*length)?, &rest[unit_length..]))
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
            ("2M", Some("write 2m for minutes, or days such as 30d for months")),
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
    fn ages_have_units_of_rabbitmq() {
        assert_eq!(max_age("7D"), Ok("7D".to_owned()));
        assert_eq!(max_age("7d"), Ok("7D".to_owned()));
        assert_eq!(max_age("90m"), Ok("90m".to_owned()));
        assert_eq!(max_age("2w"), Err(Some("write 14D".to_owned())));
        assert_eq!(max_age("5min"), Err(Some("write 5m".to_owned())));
        assert_eq!(max_age("7"), Err(None));
        assert_eq!(max_age("1h30m"), Err(Some("use one number and one unit, such as 90m".to_owned())));
    }
}
