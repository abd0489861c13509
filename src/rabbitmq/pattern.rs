//! Evaluates policy patterns as the broker does.
//!
//! The broker runs `re:run(Name, Pattern)` without `unicode` (`rabbit_policy:matches`, all versions). A pattern is
//! therefore an unanchored PCRE over bytes. As of 4.2.8 and 4.3.2, the broker sets a match limit of 50,000
//! (`rabbit_re`). A result that topo cannot predict is `None`.

use pcre2::bytes::{Regex, RegexBuilder};
use std::cell::Cell;

/// The prefix that topo adds to every pattern to limit the matching time. RabbitMQ has used the same match limit since
/// 4.2.8 and 4.3.2. A name has at most 255 bytes. The heap limit is in KiB.
const LIMITS: &str = "(*LIMIT_MATCH=50000)(*LIMIT_HEAP=20000)";

/// The number of names that can exhaust the match limit before topo stops evaluating a pattern. Each such
/// match takes about a millisecond, and there can be thousands of names.
const MAX_EXHAUSTED: u32 = 20;

/// The errors that every PCRE version reports, by PCRE2 error code (`pcre2.h`). Other errors can depend on the version.
const VERSION_INDEPENDENT_ERRORS: [(i32, &str); 5] = [
    (101, "a trailing backslash"),
    (106, "a missing `]`"),
    (109, "nothing to repeat before a quantifier"),
    (114, "a missing `)`"),
    (122, "an unmatched `)`"),
];

/// Describes the error in a pattern; `None` if some brokers may accept the pattern.
pub fn pattern_error(text: &str) -> Option<&'static str> {
    let error = RegexBuilder::new().utf(false).ucp(false).build(&format!("{LIMITS}{text}")).err()?;
    VERSION_INDEPENDENT_ERRORS.iter().find(|(code, _)| *code == error.code()).map(|(_, problem)| *problem)
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    shape: Shape,
    /// The regular expression; `None` if topo does not need it or cannot evaluate it as the broker does.
    regex: Option<Regex>,
    /// True if names with non-ASCII bytes can match differently on the broker. Erlang's PCRE uses Latin-1 character
    /// tables (`pcre_latin_1_table.c`), in which `\w` matches the first byte of `é`. topo uses the tables of the C
    /// locale.
    uses_tables: bool,
    /// The number of names that have exhausted the match limit.
    exhausted: Cell<u32>,
}

/// A property that all matching names have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Only this name matches, with or without a trailing newline.
    Exact(String),
    /// Every matching name begins with this prefix.
    Prefix(String),
    /// No common property is known.
    Any,
}

impl Pattern {
    /// Compiles a pattern.
    pub fn new(text: &str) -> Self {
        let shape = shape(text);
        // Policies for a single queue are common and often generated. Their patterns need no regular expression.
        let regex = match shape {
            Shape::Exact(_) => None,
            Shape::Prefix(_) | Shape::Any if depends_on_version(text) => None,
            Shape::Prefix(_) | Shape::Any => {
                RegexBuilder::new().utf(false).ucp(false).build(&format!("{LIMITS}{text}")).ok()
            }
        };
        Self { shape, regex, uses_tables: uses_tables(text), exhausted: Cell::new(0) }
    }

    /// Returns whether a name matches the pattern on the broker; `None` if topo cannot predict the result.
    pub fn matches(&self, name: &str) -> Option<bool> {
        match &self.shape {
            // `$` also matches before a newline at the end.
            Shape::Exact(exact) => Some(name.strip_suffix('\n').unwrap_or(name) == exact),
            Shape::Prefix(_) | Shape::Any if self.uses_tables && !name.is_ascii() => None,
            Shape::Prefix(_) | Shape::Any if self.exhausted.get() >= MAX_EXHAUSTED => None,
            Shape::Prefix(_) | Shape::Any => {
                let matches = self.regex.as_ref()?.is_match(name.as_bytes()).ok();
                self.exhausted.set(self.exhausted.get() + u32::from(matches.is_none()));
                matches
            }
        }
    }

    /// Returns true if topo can evaluate the pattern.
    pub fn is_readable(&self) -> bool {
        self.regex.is_some() || matches!(self.shape, Shape::Exact(_))
    }

    /// Returns the only name that the pattern matches, ignoring a trailing newline; `None` if the pattern may match
    /// several names.
    pub fn only_name(&self) -> Option<&str> {
        match &self.shape {
            Shape::Exact(name) => Some(name),
            Shape::Prefix(_) | Shape::Any => None,
        }
    }

    /// Returns the common prefix of all matching names; `None` if no common prefix is known.
    pub fn common_prefix(&self) -> Option<&str> {
        match &self.shape {
            Shape::Exact(prefix) | Shape::Prefix(prefix) => Some(prefix),
            Shape::Any => None,
        }
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }
}

/// Determines the common property of all matching names from the pattern; [`Shape::Any`] if it is unclear.
fn shape(text: &str) -> Shape {
    let Some(rest) = text.strip_prefix('^') else { return Shape::Any };
    let mut literal = String::new();
    let mut chars = rest.char_indices();
    let rest = loop {
        let Some((at, c)) = chars.next() else { break "" };
        match c {
            '\\' => match chars.next() {
                // A backslash makes punctuation literal. Before an alphanumeric character, it starts a sequence with a
                // special meaning.
                Some((_, escaped)) if escaped.is_ascii() && !escaped.is_ascii_alphanumeric() => literal.push(escaped),
                Some(_) | None => break &rest[at..],
            },
            '.' | '[' | ']' | '{' | '}' | '(' | ')' | '*' | '+' | '?' | '|' | '^' | '$' => break &rest[at..],
            c => literal.push(c),
        }
    };
    if rest == "$" {
        return Shape::Exact(literal);
    }
    if rest.starts_with(['*', '+', '?', '{']) {
        literal.pop();
    }
    // An alternative outside all groups does not have to begin with the prefix. If parentheses may be literal or part
    // of a comment, topo assumes that every alternative is outside all groups.
    let mut depth = 0_usize;
    let unclear = ['[', '\\', '#'].iter().any(|c| rest.contains(*c));
    let alternative = rest.chars().any(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '|' && (depth == 0 || unclear)
    });
    if literal.is_empty() || alternative { Shape::Any } else { Shape::Prefix(literal) }
}

/// Returns true if a pattern's matches depend on character tables: if the pattern contains `\w`, `\b`, `\s`, one of
/// their negations, or a POSIX class, or ignores case.
fn uses_tables(text: &str) -> bool {
    let mut escaped = false;
    let classes = text.chars().any(|c| {
        let found = escaped && matches!(c, 'w' | 'W' | 'b' | 'B' | 's' | 'S');
        escaped = !escaped && c == '\\';
        found
    });
    let ignores_case = text.match_indices("(?").any(|(at, _)| {
        let flags = text[at + 2..].chars().take_while(|c| c.is_ascii_alphabetic() || matches!(c, '^' | '-'));
        flags.into_iter().any(|c| c == 'i')
    });
    classes || ignores_case || text.contains("[:")
}

/// Returns true if a pattern's matches depend on the PCRE version. Erlang 27 and earlier use PCRE 8. Erlang 28 and topo
/// use PCRE2. The broker version does not determine the Erlang version.
fn depends_on_version(text: &str) -> bool {
    has_ambiguous_repetition(text) || recurses(text)
}

/// Returns true if a pattern calls a group: `(?1)`, `(?-1)`, `(?R)`, `(?&n)`, `(?P>n)`, `\g<n>`. PCRE 8 never
/// backtracks into such a call, but PCRE2 10.30 and later do.
fn recurses(text: &str) -> bool {
    let calls = text.match_indices("(?").any(|(at, _)| {
        let inside = &text[at + 2..];
        let number = inside.strip_prefix(['+', '-']).unwrap_or(inside);
        number.starts_with(|c: char| c.is_ascii_digit()) || ["R", "&", "P>"].iter().any(|call| inside.starts_with(call))
    });
    calls || text.contains(r"\g<") || text.contains(r"\g'")
}

/// Returns true if a pattern contains a sequence such as `{,3}` or `{1, 3}`, which is literal in PCRE 8 and a
/// repetition in PCRE2 10.43 and later.
fn has_ambiguous_repetition(text: &str) -> bool {
    text.match_indices('{').any(|(at, _)| {
        let inside = text[at + 1..].split_once('}').map_or("", |(inside, _)| inside);
        let is_repetition = inside.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | ' '));
        is_repetition && (inside.starts_with(',') || inside.contains(' '))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> Option<bool> {
        Pattern::new(pattern).matches(name)
    }

    #[test]
    fn version_independent_errors_are_described() {
        for wrong in ["(", "a)", "*", "[a", "a\\"] {
            assert!(pattern_error(wrong).is_some(), "{wrong}");
        }
        for fine in ["", "^a$", "a{,3}", "(?!x)", "(?R)?", "\\y"] {
            assert_eq!(pattern_error(fine), None, "{fine}");
        }
    }

    #[test]
    fn slow_pattern_is_abandoned() {
        let pattern = Pattern::new("^(a+)+$|x0");
        let certain = (0..1000).filter(|n| pattern.matches(&format!("{}{n}", "a".repeat(100))).is_some()).count();
        assert_eq!((certain, pattern.exhausted.get()), (0, MAX_EXHAUSTED));
    }

    #[test]
    fn patterns_are_pcre_over_bytes() {
        for (pattern, name, expected) in [
            ("rder", "orders", Some(true)),
            (r"^(?!amq\.).*", "amq.gen", Some(false)),
            (r"^(?!amq\.).*", "orders", Some(true)),
            (r"\Qa.b\E$", "a.b", Some(true)),
            (r"\Qa.b\E$", "axb", Some(false)),
            // Backtracking into a group call depends on the PCRE version.
            (r"^(.|(.)(?1)\2)$", "abcba", None),
            ("^(a|ab)(?1)c$", "aabc", None),
            ("^(?:(?R)|a)$", "a", None),
            ("^(?<n>a|ab)(?&n)c$", "aabc", None),
            ("^(?P<n>a|ab)(?P>n)c$", "aabc", None),
            (r"^(a|ab)\g<1>c$", "aabc", None),
            (r"^(a|ab)\g'-1'c$", "aabc", None),
            ("^(a|ab)(?-1)c$", "aabc", None),
            ("(?-i)(?P<n>a)(?P=n)b", "aab", Some(true)),
            (r"^(a)?(?(1)b|c)$", "ab", Some(true)),
            (r"^(a)?(?(1)b|c)$", "b", Some(false)),
            // `é` is two bytes.
            ("^.$", "é", Some(false)),
            ("^..$", "é", Some(true)),
            ("^é$", "é", Some(true)),
            (r"^\d$", "٣", Some(false)),
            ("", "anything", Some(true)),
            // The character tables of Erlang and topo agree only for ASCII.
            (r"^\w+$", "orders", Some(true)),
            (r"^\w+$", "é", None),
            ("(?i)É", "é", None),
            ("a{,3}b", "ab", None),
            ("a{2,}b", "aab", Some(true)),
            // An invalid pattern, and a match that exceeds the limit.
            ("(", "(", None),
            ("^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", None),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn shapes_describe_every_match() {
        let prefix = |text: &str| Shape::Prefix(text.to_owned());
        for (pattern, expected) in [
            (r"^orders\.work$", Shape::Exact("orders.work".to_owned())),
            (r"^a\|b$", Shape::Exact("a|b".to_owned())),
            ("^$", Shape::Exact(String::new())),
            ("^orders", prefix("orders")),
            ("^orders*", prefix("order")),
            ("^orders?$", prefix("order")),
            ("^é{2}", Shape::Any),
            ("^a|b", Shape::Any),
            ("^a|b$", Shape::Any),
            ("^a(b|c)$", prefix("a")),
            ("^a(b)|c", Shape::Any),
            (r"^a(b[)]|c)", Shape::Any),
            (r"^a\.(b|c)", prefix("a.")),
            (r"^a\d", prefix("a")),
            (r"^a\Q|\E", Shape::Any),
            (r"^a$|b", Shape::Any),
            ("^.*", Shape::Any),
            ("orders", Shape::Any),
            ("(?i)^orders$", Shape::Any),
        ] {
            assert_eq!(shape(pattern), expected, "{pattern}");
        }
        assert_eq!(matches("^$", ""), Some(true));
        assert_eq!(Pattern::new("^a$").only_name(), Some("a"));
    }
}
