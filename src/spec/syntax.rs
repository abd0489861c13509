//! What is no YAML at all: the library's sentence into one for people, with the traps that routing keys, patterns and
//! variables set. Also where what was meant began, because a bracket that nobody closes shows up much later.

use super::diagnostic::Diagnostic;
use super::position::Location;
use super::whitespace;
use super::yaml::{DEEPEST, MOST_NODES};
use crate::model::count::number;

/// A key without `? ` in front, in characters, by YAML's own words.
const LONGEST_KEY: usize = 1024;

/// The diagnostic for what the library says of a place.
pub(super) fn diagnostic(text: &str, at: Location, sentence: String) -> Diagnostic {
    let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
    let error = |message: &str| Diagnostic::error("syntax", message, at);
    if has(&["unknown anchor"]) {
        let at = word(text, at);
        let name = text.get(at.start + 1..at.end).unwrap_or_default();
        let diagnostic = Diagnostic::error("syntax", "this alias has no anchor", at);
        if line.contains("<<") {
            return diagnostic.hint(format!("write `&{name}` before what it stands for, earlier in this file"));
        }
        let shown = if name.is_empty() { ".orders" } else { name };
        return diagnostic.hint(format!("`*` starts an alias in YAML: put text in quotes, \"*{shown}\""));
    }
    if has(&["scanning an anchor or alias"]) {
        return error("`*` starts an alias, and `&` an anchor, and here neither has a name")
            .hint("put text that starts with this character in quotes");
    }
    if let Some(tab) = whitespace::tab(text, at).filter(|_| has(&["tabs disallowed", "found a tab"])) {
        return Diagnostic::error("syntax", "a tab cannot indent YAML", tab).hint("replace the tab with spaces");
    }
    if has(&["recursive references"]) {
        return error("this alias refers to itself").hint("an alias cannot stand inside of its own anchor");
    }
    if has(&["Depth", "recursion limit"]) {
        return Diagnostic::error("too-large", format!("tables and lists are nested more than {DEEPEST} deep"), at)
            .hint("no spec needs that; the file is refused, not read");
    }
    if has(&["Nodes {", "Events {", "ScalarBytes {"]) {
        let message = format!("this file has more than {} values", number(MOST_NODES as u64));
        return Diagnostic::error("too-large", message, at).hint("no spec needs that; the file is refused, not read");
    }
    if has(&["alias replay", "budget", "limit", "exceeded"]) {
        return Diagnostic::error("too-large", "the aliases of this file stand for far more than it says", at)
            .hint("no spec needs that; the file is refused, not expanded");
    }
    if line.contains("${") && has(&["flow"]) {
        return Diagnostic::error("syntax", sentence, at).hint("put \"${NAME}\" in quotes inside `{ }` and `[ ]`");
    }
    if has(&["`%'", "`@'", "``'"]) {
        let at = word(text, at);
        let sign = text.get(at.start..=at.start).unwrap_or_default();
        let message = if sign == "`" {
            "a backtick starts no text in YAML".to_owned()
        } else {
            format!("`{sign}` starts no text in YAML")
        };
        return Diagnostic::error("syntax", message, at).hint("put text that starts with this character in quotes");
    }
    if has(&["unexpected character"]) && has(&["{0}"]) {
        return error("there is a NUL in the file").hint("is it a text file, in UTF-8?");
    }
    let is_key_missing = has(&["mapping values are not allowed", "simple key", "did not find expected key"]);
    if let Some(diagnostic) = whitespace::missing_space(text, at).filter(|_| is_key_missing) {
        return diagnostic;
    }
    if has(&["mapping values are not allowed"]) {
        return error("a `: ` where no key can be")
            .hint("put text that holds `: ` in quotes, or mend the indentation of this line");
    }
    if has(&["null into string"]) {
        return error("a key cannot be null").hint("put it in quotes if it is a name");
    }
    if has(&["unknown escape character"]) {
        return error("`\\` starts an escape in double quotes, and there is none like this")
            .hint("in single quotes a `\\` is a `\\`: '^orders\\.'");
    }
    if has(&["unclosed quote"]) {
        return error("this quote is not closed").hint("close it, or put the text in the other kind of quotes");
    }
    if has(&["merge value must be"]) {
        return error("`<<` takes a table, and this is none")
            .hint("put the anchor before a table: `&name {type: quorum}`");
    }
    if let Some(key) = long_key(text, at).filter(|_| has(&["unclosed bracket", "expected ',' or", "simple key"])) {
        return Diagnostic::error("syntax", format!("this key is longer than {LONGEST_KEY} characters"), key)
            .hint("YAML knows no longer keys, and RabbitMQ no name of more than 255 bytes");
    }
    if let Some(comment) = comment_in_brackets(text, at, &sentence) {
        let at = word(text, Location::spanning(at.file, text, comment..comment + 1));
        let meant = text.get(at.start..at.end).unwrap_or_default();
        return Diagnostic::error("syntax", "`#` starts a comment in YAML, so the bracket before it is not closed", at)
            .hint(format!("put text that starts with `#` in quotes: \"{meant}\""));
    }
    // A list's `-` shows up behind a bracket that is open still.
    let is_dash_inside = has(&["only valid inside a block"]) && open_brackets(text, at).is_some();
    if is_dash_inside || has(&["unclosed bracket", "did not find expected ',' or"]) {
        return bracket(text, at);
    }
    if has(&["only valid inside a block"]) {
        return error("a `- ` where no list can be")
            .hint("indent it like the list it belongs to, or put the text in quotes");
    }
    if has(&["expected string scalar"]) {
        return error("a key is a text, and this is a list or a table").hint("remove `? `, or put the key in quotes");
    }
    if has(&["block mapping, did not find expected key", "block collection, did not find expected '-'"]) {
        return error("this line is indented like nothing above it").hint("indent it like its neighbours");
    }
    Diagnostic::error("syntax", sentence, at)
}

/// The text without what is wrong there, so that the rest of the file can be read: a character of the same length stands where
/// one is that starts no text. `None` where that would make something else of the file.
pub(super) fn without(text: &str, at: Location, sentence: &str) -> Option<String> {
    if let Some(comment) = comment_in_brackets(text, at, sentence) {
        let mut text = text.to_owned();
        text.replace_range(comment..=comment, "_");
        return Some(text);
    }
    let is_start = ["unknown anchor", "scanning an anchor or alias", "unexpected character"].iter();
    let is_sign = text.get(at.start..).is_some_and(|rest| rest.starts_with(['*', '&', '%', '@', '`']));
    let is_merge = text.get(..at.start).is_some_and(|before| before.trim_end().ends_with("<<:"));
    if !is_start.clone().any(|known| sentence.contains(known)) || !is_sign || is_merge {
        return None;
    }
    let mut text = text.to_owned();
    text.replace_range(at.start..=at.start, "_");
    Some(text)
}

/// The `#` of `{routingKey: #.x}`, where a bracket is not closed because of it.
fn comment_in_brackets(text: &str, at: Location, sentence: &str) -> Option<usize> {
    let open = ["unclosed bracket", "did not find expected ',' or", "only valid inside a block"];
    if !open.iter().any(|known| sentence.contains(known)) {
        return None;
    }
    let is_opening = text.get(at.start..).is_some_and(|rest| rest.starts_with(['{', '[']));
    let start = if is_opening { at.start } else { open_brackets(text, at)?.0.start };
    let line = text.get(start..)?.lines().next()?;
    // A comment that is meant for one has a blank behind its sign, and no key in front.
    let found = line
        .match_indices(": #")
        .find(|(at, sign)| line[at + sign.len()..].starts_with(|c: char| !c.is_whitespace() && c != '#'));
    found.map(|(at, sign)| start + at + sign.len() - 1)
}

/// A key before that place which is longer than YAML's may be.
fn long_key(text: &str, at: Location) -> Option<Location> {
    let rest = text.get(at.start..)?;
    let before = text.get(..at.start)?;
    let back = before.trim_end_matches(|c: char| !c.is_whitespace() && !"{[,".contains(c)).len();
    let start = if rest.starts_with([',', '}', ']', ':']) || rest.is_empty() { back } else { at.start };
    let word = text.get(start..)?.split(|c: char| c.is_whitespace() || ":{}[],".contains(c)).next()?;
    let line = before[..start.min(before.len())].matches('\n').count() + 1;
    let column = text[..start].rsplit('\n').next()?.chars().count() + 1;
    let key = Location { file: at.file, start, end: start + word.len(), line, column };
    (word.chars().count() > LONGEST_KEY).then_some(key)
}

/// The place up to the end of the word that starts there.
fn word(text: &str, at: Location) -> Location {
    let rest = text.get(at.start..).unwrap_or_default();
    let length = rest.find(|c: char| c.is_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
    Location { end: at.start + length.max(at.end - at.start), ..at }
}

/// A bracket that is not closed, or not before something else comes.
fn bracket(text: &str, at: Location) -> Diagnostic {
    let scanned = open_brackets(text, at);
    let is_opening = text.get(at.start..).is_some_and(|rest| rest.starts_with(['{', '[']));
    let open = if is_opening { Some((at, text[at.start..].starts_with('{'))) } else { scanned };
    let Some((open, is_table)) = open else {
        return Diagnostic::error("syntax", "this is not what stands between brackets in YAML", at);
    };
    let (what, close) = if is_table { ("{", "}") } else { ("[", "]") };
    let line = text.lines().nth(open.line.saturating_sub(1)).unwrap_or_default();
    let hint = if line.contains(" #") {
        format!("` #` starts a comment in YAML: put text such as \"#\" in quotes; or add `{close}`")
    } else if text.lines().nth(at.line.saturating_sub(1)).is_some_and(|line| line.contains(": ")) {
        format!("add `{close}`, or a comma between two entries")
    } else {
        format!("add `{close}`")
    };
    let diagnostic = Diagnostic::error("syntax", format!("this `{what}` is not closed"), open).hint(hint);
    diagnostic.also(at, "until here")
}

/// The innermost bracket that is open at a place; quotes and comments are passed over.
fn open_brackets(text: &str, at: Location) -> Option<(Location, bool)> {
    let mut open: Vec<(Location, bool)> = Vec::new();
    let (mut quote, mut before, mut line, mut column) = (None, '\n', 1, 0);
    let mut is_comment = false;
    for (start, c) in text.char_indices().take_while(|(start, _)| *start < at.start) {
        column += 1;
        let starts_token = before.is_whitespace() || "{[,".contains(before);
        match (quote, c) {
            (_, '\n') => (line, column, is_comment) = (line + 1, 0, false),
            (_, _) if is_comment => {}
            (Some(open), _) => {
                if c == open && !(c == '"' && before == '\\') {
                    quote = None;
                }
            }
            (None, '"' | '\'') if starts_token => quote = Some(c),
            (None, '#') if before.is_whitespace() => is_comment = true,
            // Inside of plain text a bracket is text, as in `^[a-z]`.
            (None, '{' | '[') if starts_token || !open.is_empty() => {
                open.push((Location { file: at.file, start, end: start + 1, line, column }, c == '{'));
            }
            (None, '}' | ']') => {
                open.pop();
            }
            (None, _) => {}
        }
        before = c;
    }
    open.pop()
}
