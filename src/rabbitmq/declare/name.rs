//! Names that are refused, or that would become other names on their way.

use super::Refusal;

/// The part of the names that a broker keeps for itself.
const RESERVED: &str = "amq.";

/// Returns the refusals of a queue or exchange with this name.
pub(super) fn declared(name: &str, kind: &str) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = carried(name).into_iter().collect();
    found.extend(stripped(name, kind));
    if name.is_empty() {
        found.push(Refusal::new("name", format!("{} {kind} needs a name", article(kind))));
    } else if name.starts_with(RESERVED) {
        // `rabbit_channel:check_name`, all versions: 401 over HTTP, 403 over AMQP.
        let text = format!("names that start with `{RESERVED}` are reserved for the broker");
        found.push(Refusal::new("name", text).hint("use another name"));
    }
    found
}

fn article(kind: &str) -> &'static str {
    if kind.starts_with('e') { "an" } else { "a" }
}

/// cowboy decodes a path and then removes dot segments (`cowboy_router:split_path`), and so does every client before it.
pub(super) fn carried(name: &str) -> Option<Refusal> {
    matches!(name, "." | "..").then(|| {
        Refusal::new("name", "an HTTP request cannot contain a name that is a dot segment of a path")
            .hint("use another name")
    })
}

/// `rabbit_channel:strip_cr_lf` takes line breaks out of the names of queues and exchanges without a word (all versions,
/// also at the ends of a binding; names of policies keep theirs): another object than was asked for.
pub(super) fn stripped(name: &str, kind: &str) -> Option<Refusal> {
    name.contains(['\r', '\n']).then(|| {
        let text = format!(
            "the broker removes line breaks from the name of {} {kind}, so another object would be created",
            article(kind)
        );
        Refusal::new("name", text).hint("use a name without line breaks")
    })
}
