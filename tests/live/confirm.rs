//! Checks the confirmation on a terminal before an apply, and errors beside a spinner. `script` (bsdutils, which every
//! Debian contains) provides a terminal.

use std::path::Path;

use crate::support::{Argument, Node, Output, Topo, Vhost};

const SPEC: &str = "queues: {orders: {type: classic}}\n";

/// Returns `script` with the URL of the broker and a spec.
fn terminal(vhost: &Vhost<'_>, spec: &str) -> Topo {
    let vhost_line = serde_json::json!(vhost.name());
    Topo::of(Path::new("/usr/bin/script"))
        .url(&vhost.node().url())
        .env("SHELL", "/bin/sh")
        .file("topology.yaml", &format!("version: 1\nvhost: {vhost_line}\n{spec}"))
}

/// Runs topo on a terminal with this input. The terminal merges standard output and standard error.
pub(super) fn with_input(vhost: &Vhost<'_>, spec: &str, arguments: &str, keys: &str) -> Output {
    let command = format!("{} {arguments}", env!("CARGO_BIN_EXE_topo"));
    terminal(vhost, spec).input(keys).run(["-qec", &command, "/dev/null"])
}

#[test]
fn only_yes_confirms() {
    let vhost = Node::shared().vhost("ask");
    for keys in ["n\n", "\n", "no\n", "yellow\n", "\u{4}"] {
        let output = with_input(&vhost, SPEC, "apply", keys).expect_code(1);
        output.expect_text("[y/N]").expect_text("error: not confirmed; nothing was changed");
        assert!(vhost.names("queues").is_empty(), "{keys:?}");
    }
    for keys in ["y\n", "Y\n", "yes\n"] {
        let output = with_input(&vhost, SPEC, "apply", keys).expect_code(0);
        output
            .expect_text(&format!("Apply these changes to {}? [y/N]", vhost.node().url()))
            .expect_text("Applied: 1 of 1 step done.");
        vhost.http().delete(&vhost.path("queues", &["orders"])).expect_status(204);
    }
}

#[test]
fn empty_or_blocked_plan_needs_no_confirmation() {
    let vhost = Node::shared().vhost("ask-not");
    with_input(&vhost, SPEC, "apply --yes", "").expect_code(0).expect_no_text("[y/N]").expect_text("Applied");
    with_input(&vhost, SPEC, "apply", "").expect_code(0).expect_no_text("[y/N]").expect_text("No changes.");
    // A blocked plan needs no confirmation.
    let refused = "queues: {orders: {type: classic, messageTtl: 30s}}\n";
    with_input(&vhost, refused, "apply", "y\n").expect_code(3).expect_no_text("[y/N]");
}

#[test]
fn lock_is_deleted_after_confirmation() {
    let vhost = Node::shared().vhost("ask-lock");
    let lock = serde_json::json!({"durable": true, "arguments": {"x-topo-holder": "me@away", "x-topo-token": "its"}});
    vhost.http().put(&vhost.path("queues", &["topo.lock"]), &lock).expect_status(201);
    let line = format!("lock --break --vhost {}", vhost.name());
    for keys in ["n\n", "\n", "\u{4}"] {
        let output = with_input(&vhost, SPEC, &line, keys).expect_code(1);
        output.expect_text("Delete the lock of me@away on").expect_text("not confirmed; the lock was not deleted");
        assert!(!vhost.queue("topo.lock").is_null(), "{keys:?}");
    }
    with_input(&vhost, SPEC, &line, "y\n").expect_code(0).expect_text("deleted the lock of me@away");
    assert!(vhost.queue("topo.lock").is_null());
    // Without a lock, topo does not ask for confirmation.
    with_input(&vhost, SPEC, &line, "").expect_code(0).expect_no_text("[y/N]");
}

#[test]
fn message_loss_requires_the_name_of_the_vhost() {
    let vhost = Node::shared().vhost("ask-more");
    let spec = "queues: {orders: {type: classic, messageTtl: 30s, onConflict: discard}}\n";
    let amqp = vhost.amqp();
    amqp.declare_queue("orders", &[("x-message-ttl", Argument::LongInt(60_000))]).unwrap();
    amqp.fill("orders", 1);
    let apply = "apply --allow message-loss,routing-gap,consumer-disruption";
    for keys in ["y\n", "\n", "yes\n", "other\n"] {
        let output = with_input(&vhost, spec, apply, keys).expect_code(1);
        output
            .expect_text(&format!("Type the name of the vhost ({}) to continue:", vhost.name()))
            .expect_text("not confirmed");
        assert_eq!(amqp.ready("orders"), 1, "{keys:?}");
    }
    with_input(&vhost, spec, apply, &format!("{}\n", vhost.name())).expect_code(0);
    assert_eq!(amqp.ready("orders"), 0);
    assert_eq!(vhost.queue("orders")["arguments"]["x-message-ttl"], 30_000);
}

/// topo reads the broker and the spec concurrently, so an error can occur while the terminal shows the spinner.
#[test]
fn error_replaces_the_spinner() {
    let vhost = Node::shared().vhost("spinner");
    let topo = terminal(&vhost, "queues: {orders: {type: clasic}}\n").env("TERM", "xterm");
    let command = format!("{} plan", env!("CARGO_BIN_EXE_topo"));
    // A fast error can occur before the spinner is shown.
    let shown = (0..20).find_map(|_| {
        let output = topo.run(["-qec", &command, "/dev/null"]).expect_code(65);
        let (before, _) = output.stdout.split_once("error[").unwrap_or_else(|| panic!("{output}"));
        let spinner = before.rfind("reading http")?;
        Some(before[spinner..].to_owned())
    });
    let shown = shown.expect("a spinner before an error");
    assert!(shown.contains("\u{1b}[2K"), "the line is not cleared: {shown:?}");
}
