//! Renders the table of known clients as `docs/clients/`. A test compares the result with the committed pages, and
//! `TOPO_UPDATE=1` updates the pages.

use super::{Framework, KNOWN_CLIENTS, KnownClient, OnCancel, OnMissing, Outcome, Reaction};
use std::fmt::Write as _;

const INTRODUCTION: &str = "\
# Client libraries and frameworks

On this page, you can look up how a client reacts when topo migrates its queue. The broker then cancels the consumers of the queue. Whether a
worker continues, exits, hangs or causes a rollback depends on its client library. A plan names the clients of each migrated queue and
states how they react. Each client has a page with advice.

This page is generated from the table that topo itself uses. Tests compare the table with the real clients.

The columns of the table:

- **product**: the value of `product` in the client properties of the connection, by which topo recognizes the library. A plan lists all
  clients that share a product, unless the queues in the vhost identify the client.
- **declares the queue**: the state of a worker that declares the queue with the old arguments.
- **does not declare it**: the state of a worker that uses the queue without declaring it, or that declares the new arguments.

If a row contains two states, the second state applies to a worker that uses the queue while it does not exist. On RabbitMQ 4.0 and later,
and for classic queues on 3.8, the queue is usually missing for less than 50 ms. On 3.9 to 3.13, and for quorum queues on 3.8, it is missing
for about 0.5 s, so the second state applies to every worker with a consumer. Sometimes, RabbitMQ 3.8 itself subscribes the consumers of a
classic queue to the new queue. The workers with these consumers continue, regardless of the client.

A worker *causes a rollback* if it declares the old queue again before topo declares the new queue. topo deletes this queue once more. After
the second declaration, topo rolls back the migration, and the worker continues to use the old queue. If the worker declares the queue only
once, or too late, the migration succeeds, and the worker exits or hangs.

| client | product | declares the queue | does not declare it |
|---|---|---|---|
";

const OTHERS: &str = "
A plan names every other client with its product and version, and states that its reaction is unknown.

To prepare workers for a change to their queue:

1. Configure the workers so that they use the queue without declaring it. Each client's page shows the option. Stop the
   workers that would cause a rollback and do not have this option.
2. Apply the plan.
3. Restart the workers that exit or hang.
";

/// Returns the overview in Markdown: `docs/clients/README.md`.
pub fn overview() -> String {
    let mut text = INTRODUCTION.to_owned();
    for client in KNOWN_CLIENTS {
        let declaring = outcomes(client, true);
        let passive = if client.without_declaration.is_none() { "–".to_owned() } else { outcomes(client, false) };
        let _ = writeln!(
            text,
            "| [{}]({}.md) | `{}` | {declaring} | {passive} |",
            client.name, client.page, client.library.product
        );
    }
    text + OTHERS
}

/// Returns the page of a client in Markdown: `docs/clients/PAGE.md`.
pub fn page(client: &KnownClient) -> String {
    let KnownClient { name, library, .. } = client;
    let mut text = format!("# {name}\n\n");
    let others: Vec<&str> =
        KNOWN_CLIENTS.iter().filter(|it| it.library == *library && it.name != *name).map(|it| it.name).collect();
    let _ = write!(
        text,
        "This page describes how {name} workers react when topo changes their queues. Their connections report `{}` as the product.",
        library.product
    );
    if !client.sibling_queues.is_empty() {
        let suffixes: Vec<String> = client.sibling_queues.iter().map(|it| format!("`Q{it}`")).collect();
        let _ = write!(
            text,
            " topo recognizes {name} if the queues {} exist in addition to a queue `Q`.",
            suffixes.join(" and ")
        );
    } else if !others.is_empty() {
        let _ = write!(
            text,
            " {} report{} the same product.",
            join_names(&others),
            if others.len() == 1 { "s" } else { "" }
        );
    }
    let _ = write!(
        text,
        "\n\n- **When the queue is deleted:** {}.\n- **When the queue does not exist yet (404):** {}.\n\
         - **When a running worker declares the queue with different arguments (406):** {}.\n\
         - **When a worker declares the queue with different arguments on startup:** {}.\n\
         - **To skip the declaration:** {}.\n{}- **Type of an integer in a 406 error:** `{}` for the value 1000.\n\n\
         ## Declared objects\n\n{}\n\n{}## Advice\n\n{}\n",
        cancel_text(client.on_cancel),
        missing_text(client),
        mismatch_text(client),
        reaction_text(client.at_start),
        client.without_declaration.unwrap_or("not possible"),
        configuration_line(client),
        library.integer_type,
        client.declares,
        transient_text(client),
        client.advice,
    );
    text
}

/// Returns the line with the command that prints the client's configuration; empty if topo cannot generate it.
fn configuration_line(client: &KnownClient) -> String {
    let framework = Framework::ALL.into_iter().find(|it| it.client().is_some_and(|known| known.page == client.page));
    framework.map_or_else(String::new, |it| {
        format!("- **To print its configuration from a spec:** `topo contract --for {}`.\n", it.as_str())
    })
}

/// Describes the objects that do not belong in a spec.
fn transient_text(client: &KnownClient) -> String {
    if client.transient_objects.is_empty() {
        return String::new();
    }
    let mut text = "`topo export` does not export these objects, and suggests adding them to `ignore`:\n\n\
                    | name | objects | purpose |\n|---|---|---|\n"
        .to_owned();
    for group in client.transient_objects {
        let objects = if group.expires { "queues with `x-expires`" } else { "queues and exchanges" };
        let _ = writeln!(text, "| `{}` | {objects} | {} |", group.glob, group.purpose);
    }
    text + "\n"
}

/// Joins names: `a`, `a and b`, `a, b and c`.
fn join_names(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Formats the outcome for a worker that never uses the missing queue, and the outcome for a worker that does. If the
/// outcomes are identical, writes the outcome only once.
fn outcomes(client: &KnownClient, declares: bool) -> String {
    match [false, true].map(|sees_missing_queue| outcome_text(client.outcome(declares, sees_missing_queue))) {
        [usual, when_missing] if usual == when_missing => usual.to_owned(),
        [usual, when_missing] => format!("{usual}, or {when_missing}"),
    }
}

fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Continues => "continues",
        Outcome::Exits => "exits",
        Outcome::Hangs => "hangs",
        Outcome::CausesRollback => "causes a rollback",
    }
}

fn cancel_text(reaction: OnCancel) -> &'static str {
    match reaction {
        OnCancel::Declares => "the worker declares it again and subscribes",
        OnCancel::Subscribes => "the worker subscribes again",
        OnCancel::Exits => "the worker exits",
        OnCancel::Hangs => "the worker continues to run, but receives no more messages",
        OnCancel::NotCanceled => "the worker continues, because it has no consumer",
    }
}

fn missing_text(client: &KnownClient) -> &'static str {
    match (client.on_cancel, client.on_missing) {
        (OnCancel::Exits | OnCancel::Hangs, OnMissing::Exits) => "a worker exits on startup",
        (_, OnMissing::Exits) => "the worker exits",
        (_, OnMissing::Declares) => "the worker opens a new channel, declares the queue and subscribes",
        (_, OnMissing::Subscribes) => "the worker subscribes again later",
    }
}

fn mismatch_text(client: &KnownClient) -> &'static str {
    match (client.on_cancel, client.on_missing) {
        (OnCancel::Declares, _) | (OnCancel::Subscribes, OnMissing::Declares) => reaction_text(client.on_mismatch),
        (_, _) => "not applicable: a running worker does not declare the queue again",
    }
}

fn reaction_text(reaction: Reaction) -> &'static str {
    match reaction {
        Reaction::Retries => "the worker retries every few seconds and receives no messages",
        Reaction::Exits => "the worker exits",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn committed_pages_are_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/clients");
        let mut pages = vec![("README.md".to_owned(), overview())];
        pages.extend(KNOWN_CLIENTS.iter().map(|client| (format!("{}.md", client.page), page(client))));
        for (name, printed) in &pages {
            if std::env::var_os("TOPO_UPDATE").is_some() {
                std::fs::write(folder.join(name), printed).unwrap();
            }
            let committed = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(committed == *printed, "docs/clients/{name} is outdated: run the tests with TOPO_UPDATE=1");
        }
        let expected: BTreeSet<String> = pages.into_iter().map(|(name, _)| name).collect();
        let present = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        assert_eq!(present.collect::<BTreeSet<_>>(), expected);
    }
}
