//! Recognizes a definitions file of RabbitMQ that is given as a spec.

use super::SourceFile;
use super::diagnostic::Diagnostic;
use super::position::Location;

/// Keys that the broker writes at the top of every definitions file.
const OF_THE_BROKER: [&str; 3] = ["\"rabbit_version\"", "\"rabbitmq_version\"", "\"rabbitmq_definition_format\""];
/// Lists of objects in such a file.
const LISTS: [&str; 4] = ["\"vhosts\"", "\"queues\"", "\"exchanges\"", "\"bindings\""];

/// Returns an error if the file is a definitions file. Its content is not checked, because it is JSON with other keys
/// than those of a spec.
pub(super) fn refused(index: usize, file: &SourceFile) -> Option<Diagnostic> {
    let text = file.text.trim_start_matches('\u{feff}').trim_start();
    if !text.starts_with('{') || text.contains("\"version\"") && !OF_THE_BROKER.iter().any(|key| text.contains(key)) {
        return None;
    }
    let is_one = OF_THE_BROKER.iter().any(|key| text.contains(key))
        || LISTS.iter().filter(|key| text.contains(*key)).count() >= 2 && text.contains("\"vhost\"");
    let message = format!("`{}` is a definitions file of RabbitMQ, not a spec", file.name);
    let hint = format!("convert it to a spec with `topo export --definitions {}`", argument(&file.name));
    is_one.then(|| Diagnostic::error("definitions", message, Location::start_of(index)).hint(hint))
}

/// Formats a file name as an argument for a shell, with quotes if the shell would split or expand it.
fn argument(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%".contains(c);
    match name {
        "<stdin>" => "-".to_owned(),
        plain if plain.chars().all(is_plain) && !plain.starts_with('-') => plain.to_owned(),
        other => format!("'{}'", other.replace('\'', r"'\''")),
    }
}
