//! Positions in the text of a spec.

/// A range of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The index of the file, in the order in which the files were given.
    pub file: usize,
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl Location {
    /// Returns the beginning of a file.
    pub fn start_of(file: usize) -> Self {
        Self { file, start: 0, end: 0, line: 1, column: 1 }
    }

    /// Returns a range of this text.
    pub(crate) fn spanning(file: usize, text: &str, range: std::ops::Range<usize>) -> Self {
        let before = text.get(..range.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { file, start: range.start, end: range.end, line, column }
    }

    /// Returns the character at a line and column of this text, both from 1, or the end of a shorter text.
    pub fn at(file: usize, text: &str, line: usize, column: usize) -> Self {
        let mut start = 0;
        let mut rest = text;
        for _ in 1..line {
            match rest.find('\n') {
                Some(end) => {
                    start += end + 1;
                    rest = &rest[end + 1..];
                }
                None => {
                    start = text.len();
                    rest = "";
                }
            }
        }
        let found = rest.char_indices().take_while(|(_, c)| *c != '\n').nth(column.saturating_sub(1));
        match found {
            Some((offset, c)) => Self { file, start: start + offset, end: start + offset + c.len_utf8(), line, column },
            None => {
                let end = start + rest.find('\n').unwrap_or(rest.len());
                Self { file, start: end, end, line, column }
            }
        }
    }
}

/// A value with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Its position.
    pub at: Location,
}

impl<T> Sourced<T> {
    /// Creates a value with its position.
    pub fn new(value: T, at: Location) -> Self {
        Self { value, at }
    }
}

/// A value of a mapping, with the positions of its key and of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyed<T> {
    /// The value.
    pub value: T,
    /// The position of its key.
    pub key_at: Location,
    /// The position of the value.
    pub at: Location,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let location = Location::at(0, "a: 1\né: x\n", 2, 4);
        assert_eq!((location.start, location.end), (9, 10));
        assert_eq!(Location::at(0, "a", 7, 1), Location { file: 0, start: 1, end: 1, line: 7, column: 1 });
    }
}
