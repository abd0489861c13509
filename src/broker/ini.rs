//! Parses the subset of Python's `configparser` INI format that connection files use.
//!
//! A value extends to the end of its line, so a comment cannot follow it. Quotes and backslashes are literal.

use std::collections::BTreeMap;

/// A section's keys, in lowercase as in `configparser`, and their values. If a key is repeated, the last value applies.
pub(super) type Section = BTreeMap<String, String>;

/// A syntax error in an INI file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct IniError {
    /// The line number, starting at 1.
    pub(super) line: usize,
    /// The problem on that line.
    pub(super) reason: &'static str,
}

/// Parses the sections, and returns them in the order in which they first occur. Repeated sections are merged.
pub(super) fn sections(text: &str) -> Result<Vec<(String, Section)>, IniError> {
    let mut sections: Vec<(String, Section)> = Vec::new();
    let mut current = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let error = |reason| IniError { line: index + 1, reason };
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let (name, _) = rest.rsplit_once(']').ok_or_else(|| error("missing `]`"))?;
            let existing = sections.iter().position(|(existing, _)| existing == name);
            current = Some(existing.unwrap_or(sections.len()));
            if existing.is_none() {
                sections.push((name.to_owned(), Section::new()));
            }
            continue;
        }
        let (key, value) = line.split_once(['=', ':']).ok_or_else(|| error("expected `KEY = VALUE`"))?;
        if key.trim().is_empty() {
            return Err(error("missing key"));
        }
        let section = current.and_then(|at| sections.get_mut(at));
        let (_, section) = section.ok_or_else(|| error("expected a section `[NODE]` before the first key"))?;
        section.insert(key.trim().to_lowercase(), value.trim().to_owned());
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_parsed_like_configparser() {
        let text = "\u{feff}; a comment\n[a b]\nKey: 1 = 2 # 3\r\n  indented=\n[c]\nx = \"y\\n\"\n[a b]\nkey = 4\n";
        let read = sections(text).unwrap();
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a b", "c"]);
        assert_eq!(read[0].1, [("indented", ""), ("key", "4")].map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        assert_eq!(read[1].1["x"], "\"y\\n\"");
        assert_eq!(sections("[a]\nkey: 1 = 2 # 3\n").unwrap()[0].1["key"], "1 = 2 # 3");
        assert_eq!(sections(""), Ok(Vec::new()));
    }

    #[test]
    fn errors_contain_the_line() {
        for (text, line) in [("[a", 1), ("[a]\nhost", 2), ("\n[a]\n\n= 1", 4), ("host = a", 1)] {
            assert_eq!(sections(text).map_err(|error| error.line), Err(line), "{text}");
        }
    }
}
