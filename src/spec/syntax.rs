//! Explains invalid YAML: replaces the messages of the YAML library, and adds hints for routing keys, patterns and
//! variables. Also locates mistakes that the library reports at a much later position: an unclosed bracket, a tab that
//! indents a line, and a colon without a space after it.

use super::diagnostic::Diagnostic;
use super::explained::key_names;
use super::node::Location;
use super::scalar::{MAX_DEPTH, MAX_NODES};
use crate::model::count::number;
use crate::model::printable::is_secret_key;

/// YAML's limit on the length of a key without a leading `? `, in characters.
const MAX_KEY_LENGTH: usize = 1024;

/// Creates the diagnostic for an error from the YAML library.
pub(super) fn diagnostic(text: &str, at: Location, error_text: String) -> Diagnostic {
    let line = text.lines().nth(at.line.saturating_sub(1)).unwrap_or_default();
    let has = |words: &[&str]| words.iter().any(|word| error_text.contains(word));
    let error = |message: &str| Diagnostic::error("syntax", message, at);
    if has(&["unknown anchor"]) {
        let at = word(text, at);
        let name = text.get(at.start + 1..at.end).unwrap_or_default();
        let diagnostic = Diagnostic::error("syntax", "this alias has no anchor", at);
        let before = line.get(..at.column.saturating_sub(1)).unwrap_or_default();
        if before.trim_end().ends_with("<<:") {
            return diagnostic.hint(format!("define the anchor `&{name}` earlier in this file"));
        }
        // The message does not repeat the text, because the text may be a password.
        return diagnostic.hint("`*` starts an alias in YAML: put a string that starts with `*` in quotes");
    }
    if has(&["scanning an anchor or alias"]) {
        return error("an alias (`*`) or anchor (`&`) without a name")
            .hint("put a string that starts with this character in quotes");
    }
    if let Some(tab) = tab(text, at).filter(|_| has(&["tabs disallowed", "found a tab"])) {
        return Diagnostic::error("syntax", "YAML cannot be indented with tabs", tab)
            .hint("replace the tab with spaces");
    }
    if has(&["recursive references"]) {
        return error("this alias refers to itself").hint("an alias cannot be used inside its own anchor");
    }
    if has(&["Depth", "recursion limit"]) {
        return Diagnostic::error(
            "too-large",
            format!("mappings and lists are nested more than {MAX_DEPTH} levels deep"),
            at,
        )
        .hint("reduce the nesting; topo does not read the file");
    }
    if has(&["Nodes {", "Events {", "ScalarBytes {"]) {
        let message = format!("this file has more than {} values", number(MAX_NODES as u64));
        return Diagnostic::error("too-large", message, at).hint("split the file; topo does not read it");
    }
    if has(&["alias replay", "budget", "limit", "exceeded"]) {
        return Diagnostic::error("too-large", "the aliases in this file expand to too many values", at)
            .hint("use fewer aliases; topo does not read the file");
    }
    if line.contains("${") && has(&["flow"]) {
        return Diagnostic::error("syntax", error_text, at)
            .hint("put a variable in quotes inside `{ }` and `[ ]`: \"${NAME}\"");
    }
    if has(&["`%'", "`@'", "``'"]) {
        let at = word(text, at);
        let sign = text.get(at.start..=at.start).unwrap_or_default();
        let message = if sign == "`" {
            "a string cannot start with a backtick in YAML".to_owned()
        } else {
            format!("a string cannot start with `{sign}` in YAML")
        };
        return Diagnostic::error("syntax", message, at).hint("put a string that starts with this character in quotes");
    }
    if has(&["unexpected character"]) && has(&["{0}"]) {
        return error("the file contains a NUL character").hint("save the file as UTF-8 text");
    }
    let is_key_missing = has(&["mapping values are not allowed", "simple key", "did not find expected key"]);
    if let Some(diagnostic) = missing_space(text, at).filter(|_| is_key_missing) {
        return diagnostic;
    }
    if has(&["mapping values are not allowed"]) {
        return error("unexpected `: `")
            .hint("put a string that contains `: ` in quotes, or correct the indentation of this line");
    }
    if has(&["null into string"]) {
        return error("a key cannot be null").hint("put the key in quotes if it is a name");
    }
    if has(&["unknown escape character"]) {
        return error("unknown escape sequence in double quotes")
            .hint("use single quotes, where `\\` is an ordinary character: '^orders\\.'");
    }
    if has(&["unclosed quote"]) {
        return error("this quote is not closed").hint("close it, or use the other kind of quotes");
    }
    if has(&["merge value must be"]) {
        return error("expected a mapping for `<<`").hint("put the anchor before a mapping: `&name {type: quorum}`");
    }
    if let Some(key) = long_key(text, at).filter(|_| has(&["unclosed bracket", "expected ',' or", "simple key"])) {
        return Diagnostic::error("syntax", format!("this key is longer than {MAX_KEY_LENGTH} characters"), key)
            .hint("YAML limits keys to this length, and RabbitMQ limits names to 255 bytes");
    }
    if let Some(comment) = comment_in_brackets(text, at, &error_text) {
        let at = word(text, Location::spanning(at.file, text, comment..comment + 1));
        return Diagnostic::error("syntax", "`#` starts a comment, so the bracket before it is not closed", at)
            .hint("put a string that starts with `#` in quotes");
    }
    // If a list follows an unclosed bracket, the library reports the error at the `-` of the list.
    let is_dash_inside = has(&["only valid inside a block"]) && innermost_open_bracket(text, at).is_some();
    if is_dash_inside || has(&["unclosed bracket", "did not find expected ',' or"]) {
        return unclosed_bracket(text, at);
    }
    if has(&["only valid inside a block"]) {
        return error("unexpected `- `").hint("align this `-` with the other list items, or put the string in quotes");
    }
    if has(&["expected string scalar"]) {
        return error("expected a string as the key, found a list or a mapping")
            .hint("remove `? `, or put the key in quotes");
    }
    if has(&["block mapping, did not find expected key", "block collection, did not find expected '-'"]) {
        return error("inconsistent indentation").hint("align this line with the lines around it");
    }
    Diagnostic::error("syntax", error_text, at)
}

/// Returns the text with the invalid character replaced, so that the rest of the file can be read. Positions in the
/// text remain valid. Returns `None` if replacing one character cannot repair the file.
pub(super) fn repair(text: &str, at: Location, error_text: &str) -> Option<String> {
    if let Some(comment) = comment_in_brackets(text, at, error_text) {
        let mut text = text.to_owned();
        text.replace_range(comment..=comment, "_");
        return Some(text);
    }
    let mut repairable = ["unknown anchor", "scanning an anchor or alias", "unexpected character"].iter();
    let is_sign = text.get(at.start..).is_some_and(|rest| rest.starts_with(['*', '&', '%', '@', '`']));
    let is_merge = text.get(..at.start).is_some_and(|before| before.trim_end().ends_with("<<:"));
    if !repairable.any(|known| error_text.contains(known)) || !is_sign || is_merge {
        return None;
    }
    let mut text = text.to_owned();
    text.replace_range(at.start..=at.start, "_");
    Some(text)
}

/// Returns the position of a `#` that hides a closing bracket, as in `{routingKey: #.x}`.
fn comment_in_brackets(text: &str, at: Location, error_text: &str) -> Option<usize> {
    let open = ["unclosed bracket", "did not find expected ',' or", "only valid inside a block"];
    if !open.iter().any(|known| error_text.contains(known)) {
        return None;
    }
    let is_opening = text.get(at.start..).is_some_and(|rest| rest.starts_with(['{', '[']));
    let start = if is_opening { at.start } else { innermost_open_bracket(text, at)?.0.start };
    let line = text.get(start..)?.lines().next()?;
    // In an intentional comment, a space follows the `#`, and no key directly precedes the `#`.
    let found = line
        .match_indices(": #")
        .find(|(at, sign)| line[at + sign.len()..].starts_with(|c: char| !c.is_whitespace() && c != '#'));
    found.map(|(at, sign)| start + at + sign.len() - 1)
}

/// Returns the location of the key at or directly before a position, if the key exceeds YAML's limit.
fn long_key(text: &str, at: Location) -> Option<Location> {
    let rest = text.get(at.start..)?;
    let before = text.get(..at.start)?;
    let back = before.trim_end_matches(|c: char| !c.is_whitespace() && !"{[,".contains(c)).len();
    let start = if rest.starts_with([',', '}', ']', ':']) || rest.is_empty() { back } else { at.start };
    let word = text.get(start..)?.split(|c: char| c.is_whitespace() || ":{}[],".contains(c)).next()?;
    let line = before[..start.min(before.len())].matches('\n').count() + 1;
    let column = text[..start].rsplit('\n').next()?.chars().count() + 1;
    let key = Location { file: at.file, start, end: start + word.len(), line, column };
    (word.chars().count() > MAX_KEY_LENGTH).then_some(key)
}

/// Extends a position to the end of its word.
fn word(text: &str, at: Location) -> Location {
    let rest = text.get(at.start..).unwrap_or_default();
    let length = rest.find(|c: char| c.is_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
    Location { end: at.start + length.max(at.end - at.start), ..at }
}

/// Creates the diagnostic for a bracket that is not closed.
fn unclosed_bracket(text: &str, at: Location) -> Diagnostic {
    let scanned = innermost_open_bracket(text, at);
    let is_opening = text.get(at.start..).is_some_and(|rest| rest.starts_with(['{', '[']));
    let open = if is_opening { Some((at, text[at.start..].starts_with('{'))) } else { scanned };
    let Some((open, is_table)) = open else {
        return Diagnostic::error("syntax", "unexpected token between brackets", at);
    };
    let (what, close) = if is_table { ("{", "}") } else { ("[", "]") };
    let line = text.lines().nth(open.line.saturating_sub(1)).unwrap_or_default();
    let hint = if line.contains(" #") {
        format!("` #` starts a comment in YAML: put a string such as \"#\" in quotes, or add `{close}`")
    } else if text.lines().nth(at.line.saturating_sub(1)).is_some_and(|line| line.contains(": ")) {
        format!("add `{close}`, or a comma between two entries")
    } else {
        format!("add `{close}`")
    };
    let diagnostic = Diagnostic::error("syntax", format!("this `{what}` is not closed"), open).hint(hint);
    diagnostic.also(at, "not closed before this")
}

/// Returns the location of the innermost open bracket at a position, and true if the bracket is a brace. Skips quoted
/// strings and comments.
fn innermost_open_bracket(text: &str, at: Location) -> Option<(Location, bool)> {
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
            // Inside a plain string, a bracket is an ordinary character, as in `^[a-z]`.
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

/// Returns the location of the first tabs that indent the line at a position or a later line.
pub(super) fn tab(text: &str, at: Location) -> Option<Location> {
    let skipped = at.line.saturating_sub(1);
    let mut start = text.split_inclusive('\n').take(skipped).map(str::len).sum::<usize>();
    for line in text.split_inclusive('\n').skip(skipped) {
        let content = line.trim_start_matches([' ', '\t']);
        let indentation = &line[..line.len() - content.len()];
        if let Some(tab) = indentation.find('\t').filter(|_| !content.trim().is_empty()) {
            let count = indentation[tab..].bytes().take_while(|byte| *byte == b'\t').count();
            return Some(Location::spanning(at.file, text, start + tab..start + tab + count));
        }
        start += line.len();
    }
    None
}

/// Creates the diagnostic for a missing space, as in `type:quorum`, on the line at a position or on the lines directly
/// above it. Skips comments and empty lines. Returns `None` if there is no missing space.
pub(super) fn missing_space(text: &str, at: Location) -> Option<Diagnostic> {
    let lines: Vec<&str> = text.split_inclusive('\n').take(at.line).collect();
    let mut found = None;
    for (index, line) in lines.iter().enumerate().rev() {
        let content = line.trim();
        match joined_pair(content) {
            Some(pair) => found = Some((index, pair)),
            // The library can report the error on a later line, after comments and empty lines.
            None if index + 1 == lines.len() || content.is_empty() || content.starts_with('#') => {}
            None => break,
        }
    }
    let (index, (key, value)) = found?;
    let before: usize = lines[..index].iter().map(|line| line.len()).sum();
    let start = before + lines[index].find(&format!("{key}:"))?;
    let primary = Location::spanning(at.file, text, start..start + key.len() + 1 + value.len());
    let message = format!("missing space after the colon of `{key}`");
    let hint = if is_secret_key(key) { format!("write `{key}: …`") } else { format!("write `{key}: {value}`") };
    Some(Diagnostic::error("syntax", message, primary).hint(hint))
}

/// Returns the key and the value of an entry that has no space after its colon. Accepts any key before a bracket, but
/// only known spec keys before a plain value, because a plain string can contain a colon.
fn joined_pair(content: &str) -> Option<(&str, &str)> {
    let content = content.strip_prefix("- ").unwrap_or(content);
    let content = content.split(" #").next()?.trim_end();
    let (key, value) = content.split_once(':')?;
    let is_joined = value.starts_with(|c: char| !c.is_whitespace() && c != '/' && c != ':');
    let is_flow = value.starts_with(['{', '[']) && !key.is_empty() && !key.contains(char::is_whitespace);
    let is_plain = !value.contains(": ") && !value.ends_with(':') && key_names().contains(key);
    (is_joined && (is_flow || is_plain)).then_some((key, value))
}
