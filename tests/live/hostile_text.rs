//! Tests hostile names on a real broker: topo sends them unchanged, and escapes them in all output.

use crate::cli::hostile_text::{COMMANDS, HIDDEN, harmless, quoted};
use crate::support::{Fault, Node, Proxy, Topo, puts};

/// Returns a spec with a queue with retries. The generated names contain the name of the queue.
fn spec(name: &str, limit: u32) -> String {
    let (name, key) = (quoted(name), quoted(&format!("k{HIDDEN}\r\n::error title=pwned::k{COMMANDS}")));
    format!(
        "owns: ['*']\nexchanges: {{{name}: {{type: topic}}}}\nqueues:\n  {name}:\n    type: classic\n    \
         maxPriority: {limit}\n    retry: {{delays: [5s]}}\n    deadLetter: dead\n    \
         bindings: [{{exchange: {name}, routingKey: {key}}}]\ndeadLetterQueues: {{dead: {{type: classic}}}}\n"
    )
}

#[test]
fn hostile_names_are_sent_unchanged_and_printed_escaped() {
    let vhost = Node::shared().vhost("hostile");
    let name = format!("q{HIDDEN}{COMMANDS}");
    let topo = Topo::new(&vhost).spec(&spec(&name, 5)).env("COLUMNS", "60");
    harmless(topo.run(["apply"]));
    harmless(topo.run(["apply", "-y", "-v"])).expect_code(0);
    assert_eq!(vhost.names("queues"), ["dead".to_owned(), name.clone(), format!("{name}.retry.1.5s")]);
    harmless(topo.run(["plan", "--detailed-exitcode"])).expect_code(0).expect_text("No changes");
    topo.rewrite(&spec(&name, 6));
    for format in ["text", "json", "markdown", "github"] {
        harmless(topo.run(["plan", "--prune", "--format", format])).expect_code(0);
    }
    let migrate = ["apply", "-y", "--recreate", "queues/*=migrate", "--format"];
    for format in ["text", "json"] {
        harmless(topo.run(migrate.into_iter().chain([format])));
    }
    harmless(topo.run(["export", "--vhost", vhost.name()])).expect_code(0);
    topo.rewrite("owns: ['*']\n");
    harmless(topo.run(["apply", "-y", "--prune", "--allow=mass-delete,routing-gap"])).expect_code(0);
    assert_eq!(vhost.names("queues"), [""; 0]);
}

#[test]
fn broker_errors_cannot_contain_workflow_commands() {
    let vhost = Node::shared().vhost("reasons");
    let reason = format!("no\r\n::error title=pwned::{HIDDEN}\n\n  ::add-mask::x{COMMANDS}");
    for status in [400, 401, 404, 500] {
        let proxy = Proxy::to(Node::shared());
        proxy.add(puts().path("/queues/").but("topo.lock"), Fault::Reason(status, reason.clone()));
        let topo = Topo::new(&vhost).through(&proxy).spec("queues: {q: {type: classic}}\n");
        for format in ["text", "json"] {
            let output = harmless(topo.run(["apply", "-y", "--format", format]));
            assert!(output.says("no: "), "{output}");
        }
    }
}
