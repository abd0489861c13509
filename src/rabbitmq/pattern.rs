//! Patterns of policies, evaluated as the broker evaluates them.
//!
//! The broker runs `re:run(Name, Pattern)` without `unicode` (`rabbit_policy:matches`, all versions; with a limit of 50,000
//! matches since 4.3, `rabbit_re`): PCRE over bytes, not anchored. What cannot be told here is said: `None`.

use pcre2::bytes::{Regex, RegexBuilder};
use std::cell::Cell;

/// In front of every pattern, so that none takes for ever: 50,000 is the broker's own limit since 4.3, and a name has 255
/// bytes at most. The heap is in KiB.
const LIMITS: &str = "(*LIMIT_MATCH=50000)(*LIMIT_HEAP=20000)";

/// How many names may exhaust the limit before a pattern is taken for one that cannot be told: each of them costs about
/// a millisecond, and there may be thousands of names.
const PATIENCE: u32 = 20;

/// What makes a pattern wrong to every PCRE, by the codes of PCRE2 (`pcre2.h`); others may be a matter of the version.
const WRONG_EVERYWHERE: [(i32, &str); 5] = [
    (101, "a trailing backslash"),
    (106, "a missing `]`"),
    (109, "nothing to repeat before a quantifier"),
    (114, "a missing `)`"),
    (122, "a `)` without its `(`"),
];

/// What is wrong with a pattern that no broker takes.
pub fn mistake(text: &str) -> Option<&'static str> {
    let error = RegexBuilder::new().utf(false).ucp(false).build(&format!("{LIMITS}{text}")).err()?;
    WRONG_EVERYWHERE.iter().find(|(code, _)| *code == error.code()).map(|(_, what)| *what)
}

/// A pattern that has been read.
#[derive(Clone, Debug)]
pub struct Pattern {
    shape: Shape,
    /// `None` where the broker may read it, but not the library here.
    regex: Option<Regex>,
    /// Whether bytes beyond ASCII can match otherwise on the broker: Erlang's PCRE has the character tables of Latin-1
    /// (`pcre_latin_1_table.c`), where `\w` takes the first byte of `é`; here they are those of C.
    uses_tables: bool,
    /// How many names have exhausted the limit.
    exhausted: Cell<u32>,
}

/// What every name that matches looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// This name, and no other.
    Exact(String),
    /// It begins so.
    Prefix(String),
    /// Anything.
    Any,
}

impl Pattern {
    /// Reads a pattern.
    pub fn new(text: &str) -> Self {
        let shape = shape(text);
        // One policy a queue is common, and generated: those need no regular expression.
        let regex = match shape {
            Shape::Exact(_) => None,
            Shape::Prefix(_) | Shape::Any if depends_on_version(text) => None,
            Shape::Prefix(_) | Shape::Any => {
                RegexBuilder::new().utf(false).ucp(false).build(&format!("{LIMITS}{text}")).ok()
            }
        };
        Self { shape, regex, uses_tables: uses_tables(text), exhausted: Cell::new(0) }
    }

    /// Whether the broker takes a name for matching; `None` where that cannot be told here.
    pub fn matches(&self, name: &str) -> Option<bool> {
        match &self.shape {
            // `$` is also before a newline at the end.
            Shape::Exact(exact) => Some(name.strip_suffix('\n').unwrap_or(name) == exact),
            Shape::Prefix(_) | Shape::Any if self.uses_tables && !name.is_ascii() => None,
            Shape::Prefix(_) | Shape::Any if self.exhausted.get() >= PATIENCE => None,
            Shape::Prefix(_) | Shape::Any => {
                let matches = self.regex.as_ref()?.is_match(name.as_bytes()).ok();
                self.exhausted.set(self.exhausted.get() + u32::from(matches.is_none()));
                matches
            }
        }
    }

    /// Whether it can be read at all.
    pub fn is_readable(&self) -> bool {
        self.regex.is_some() || matches!(self.shape, Shape::Exact(_))
    }

    /// The one name that it is for, if it is for one alone.
    pub fn only_name(&self) -> Option<&str> {
        match &self.shape {
            Shape::Exact(name) => Some(name),
            Shape::Prefix(_) | Shape::Any => None,
        }
    }

    /// What every name that matches begins with, as far as that is more than nothing.
    pub fn only_start(&self) -> Option<&str> {
        match &self.shape {
            Shape::Exact(start) | Shape::Prefix(start) => Some(start),
            Shape::Any => None,
        }
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }
}

/// What can be said of every match without looking at names. In doubt: anything.
fn shape(text: &str) -> Shape {
    let Some(rest) = text.strip_prefix('^') else { return Shape::Any };
    let mut literal = String::new();
    let mut chars = rest.char_indices();
    let rest = loop {
        let Some((at, c)) = chars.next() else { break "" };
        match c {
            '\\' => match chars.next() {
                // A backslash before what is neither letter nor digit is the character itself; before others, a class.
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
    // An alternative outside of all groups begins anew. Where brackets are not what they look like, nothing is counted.
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

/// Whether it asks for kinds of characters, or ignores case.
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

/// Whether what it matches depends on the PCRE: Erlang up to 27 has PCRE 8, Erlang 28 and topo have PCRE2. Which Erlang a
/// broker runs on does not follow from its version.
fn depends_on_version(text: &str) -> bool {
    has_odd_repetition(text) || recurses(text)
}

/// Whether a group is called from elsewhere: `(?1)`, `(?-1)`, `(?R)`, `(?&n)`, `(?P>n)`, `\g<n>`. PCRE 8 never goes back into
/// such a call to try another way; PCRE2 does, from 10.30 on.
fn recurses(text: &str) -> bool {
    let calls = text.match_indices("(?").any(|(at, _)| {
        let inside = &text[at + 2..];
        let number = inside.strip_prefix(['+', '-']).unwrap_or(inside);
        number.starts_with(|c: char| c.is_ascii_digit()) || ["R", "&", "P>"].iter().any(|call| inside.starts_with(call))
    });
    calls || text.contains(r"\g<") || text.contains(r"\g'")
}

/// Whether it repeats with `{,3}` or `{1, 3}`: that is text to PCRE 8, and a repetition to PCRE2 from 10.43 on.
fn has_odd_repetition(text: &str) -> bool {
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
    fn what_no_pcre_takes_is_a_mistake() {
        for wrong in ["(", "a)", "*", "[a", "a\\"] {
            assert!(mistake(wrong).is_some(), "{wrong}");
        }
        for fine in ["", "^a$", "a{,3}", "(?!x)", "(?R)?", "\\y"] {
            assert_eq!(mistake(fine), None, "{fine}");
        }
    }

    #[test]
    fn a_pattern_that_takes_too_long_is_given_up() {
        let pattern = Pattern::new("^(a+)+$|x0");
        let told = (0..1000).filter(|n| pattern.matches(&format!("{}{n}", "a".repeat(100))).is_some()).count();
        assert_eq!((told, pattern.exhausted.get()), (0, PATIENCE));
    }

    #[test]
    fn patterns_are_pcre_over_bytes() {
        for (pattern, name, expected) in [
            ("rder", "orders", Some(true)),
            (r"^(?!amq\.).*", "amq.gen", Some(false)),
            (r"^(?!amq\.).*", "orders", Some(true)),
            (r"\Qa.b\E$", "a.b", Some(true)),
            (r"\Qa.b\E$", "axb", Some(false)),
            // Another way through the group that is called: not to every PCRE.
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
            // Erlang's tables are not ours: in ASCII they agree.
            (r"^\w+$", "orders", Some(true)),
            (r"^\w+$", "é", None),
            ("(?i)É", "é", None),
            ("a{,3}b", "ab", None),
            ("a{2,}b", "aab", Some(true)),
            // Not read, and not taking for ever.
            ("(", "(", None),
            ("^(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", None),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn shapes_never_promise_too_much() {
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
