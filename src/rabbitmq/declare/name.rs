//! Predicts refusals of names, and names that the broker would change.

use super::Refusal;

/// The prefix of names that are reserved for the broker.
const RESERVED: &str = "amq.";

/// Returns the refusals of a queue or exchange with this name.
pub(super) fn declared(name: &str, kind: &str) -> Vec<Refusal> {
    let mut found: Vec<Refusal> = dot_segment(name).into_iter().collect();
    found.extend(line_breaks(name, kind));
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

/// Refuses names that HTTP cannot transmit. cowboy decodes a path and then removes dot segments (`cowboy_router:split_path`),
/// as HTTP clients do.
pub(super) fn dot_segment(name: &str) -> Option<Refusal> {
    matches!(name, "." | "..").then(|| {
        Refusal::new("name", "an HTTP request cannot contain a name that is a dot segment of a path")
            .hint("use another name")
    })
}

/// Refuses names with line breaks. `rabbit_channel:strip_cr_lf` silently removes line breaks from the names of queues and
/// exchanges (all versions, also at the ends of a binding, but not in the names of policies).
pub(super) fn line_breaks(name: &str, kind: &str) -> Option<Refusal> {
    name.contains(['\r', '\n']).then(|| {
        let text = format!(
            "the broker removes line breaks from the name of {} {kind}, so another object would be created",
            article(kind)
        );
        Refusal::new("name", text).hint("use a name without line breaks")
    })
}
