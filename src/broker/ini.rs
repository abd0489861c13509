//! Parses the INI of Python's `configparser`, as far as connection files need it: values end with the line, quotes and
//! backslashes are literal, and a value cannot be followed by a comment.

use std::collections::BTreeMap;

/// A section's keys, in small letters as `configparser` makes them, with their values. Of two values, the last.
pub(super) type Section = BTreeMap<String, String>;

/// A line that is none of INI.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotIni {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) reason: &'static str,
}

/// The sections in the order in which they begin.
pub(super) fn sections(text: &str) -> Result<Vec<(String, Section)>, NotIni> {
    let mut sections: Vec<(String, Section)> = Vec::new();
    let mut current = None;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let refused = |reason| NotIni { line: index + 1, reason };
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let (name, _) = rest.rsplit_once(']').ok_or_else(|| refused("`]` is missing"))?;
            let known = sections.iter().position(|(known, _)| known == name);
            current = Some(known.unwrap_or(sections.len()));
            if known.is_none() {
                sections.push((name.to_owned(), Section::new()));
            }
            continue;
        }
        let (key, value) = line.split_once(['=', ':']).ok_or_else(|| refused("`KEY = VALUE` is expected"))?;
        if key.trim().is_empty() {
            return Err(refused("the value has no key"));
        }
        let section = current.and_then(|at| sections.get_mut(at));
        let (_, section) = section.ok_or_else(|| refused("no section `[NODE]` precedes it"))?;
        section.insert(key.trim().to_lowercase(), value.trim().to_owned());
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_as_python_reads_it() {
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
    fn a_line_that_is_none() {
        for (text, line) in [("[a", 1), ("[a]\nhost", 2), ("\n[a]\n\n= 1", 4), ("host = a", 1)] {
            assert_eq!(sections(text).map_err(|error| error.line), Err(line), "{text}");
        }
    }
}
