//! Tests effects of the environment on a run: full disks, closed outputs, and signals in a container.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::lock::{LONG, put_lock};
use crate::support::{Fault, Node, Output, Proxy, Running, Topo, Vhost, deletes, until};

const QUEUE: &str = "queues: {orders: {type: classic}}\n";

/// Returns a shell in which `$TOPO` is the binary under test.
fn shell(vhost: &Vhost<'_>) -> Topo {
    let topo = Topo::of(Path::new("/bin/bash")).url(&vhost.node().url());
    topo.env("TOPO", env!("CARGO_BIN_EXE_topo")).env("PATH", "/usr/bin:/bin")
}

fn run(topo: &Topo, vhost: &Vhost<'_>, spec: &str, script: &str) -> Output {
    topo.rewrite(&format!("version: 1\nvhost: {}\n{spec}", vhost.name()));
    topo.run(["-c", script])
}

#[test]
fn unwritable_report_exits_with_4_after_changes() {
    let vhost = Node::shared().vhost("full");
    let topo = shell(&vhost);
    let early = run(&topo, &vhost, QUEUE, "$TOPO apply --yes > /dev/full").expect_code(1);
    early.expect_error("cannot write to standard output");
    assert!(vhost.names("queues").is_empty());
    let late = run(&topo, &vhost, QUEUE, "$TOPO apply --yes --format json > /dev/full").expect_code(4);
    late.expect_error("cannot write to standard output").expect_text("the report was lost, but the changes were made");
    assert_eq!(vhost.names("queues"), ["orders"]);
}

#[test]
fn unwritable_report_of_a_broken_lock_exits_with_4() {
    let vhost = Node::shared().vhost("full-lock");
    let topo = shell(&vhost);
    for (format, to) in [("text", ""), ("json", "--format json")] {
        put_lock(&vhost, "topo.lock", "me@far-away", LONG);
        let script = format!("$TOPO lock --vhost {} --break --yes {to} > /dev/full", vhost.name());
        let output = topo.run(["-c", &script]).expect_code(4);
        output.expect_error("cannot write to standard output");
        assert!(vhost.queue("topo.lock").is_null(), "{format}");
        // Without changes, the result is not partial.
        topo.run(["-c", &script]).expect_code(1);
    }
}

#[test]
fn backups_are_private_complete_and_never_overwritten() {
    let vhost = Node::shared().vhost("kept");
    let topo = shell(&vhost);
    run(&topo, &vhost, QUEUE, "$TOPO apply --yes").expect_code(0);
    let removed = "removed: {queues: [orders]}\n";
    let apply = "$TOPO apply --yes --allow message-loss,mass-delete,routing-gap --backup kept/";
    let count = || fs::read_dir(topo.path("kept")).unwrap().count();
    // On a full disk, topo leaves no partial backup and changes nothing.
    let starved = format!("mkdir kept; trap '' XFSZ; (ulimit -f 0; {apply}b.json 2>&1) | cat; exit ${{PIPESTATUS[0]}}");
    let starved = run(&topo, &vhost, removed, &starved).expect_code(1);
    starved.expect_text("the backup could not be written to kept/b.json; nothing was changed");
    assert_eq!(count(), 0);
    topo.write("kept/old.json", "old");
    run(&topo, &vhost, removed, &format!("{apply}old.json")).expect_code(1);
    assert_eq!((topo.read("kept/old.json"), vhost.names("queues")), ("old".to_owned(), vec!["orders".to_owned()]));
    run(&topo, &vhost, removed, &format!("umask 0; {apply}b.json")).expect_code(0);
    assert!(topo.read("kept/b.json").contains("\"orders\""));
    assert_eq!(fs::metadata(topo.path("kept/b.json")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((count(), vhost.names("queues").len()), (2, 0));
}

/// Makes a command process 1, as in a container without an init process. Process 1 receives only signals for which it
/// has a handler.
const NAMESPACE: [&str; 3] = ["--pid", "--fork", "--kill-child"];

/// Returns true if the machine permits namespaces, which require root on most machines.
fn has_namespaces() -> bool {
    let is_allowed =
        Command::new("/usr/bin/unshare").args(NAMESPACE).arg("true").status().is_ok_and(|status| status.success());
    if !is_allowed {
        // Written to the terminal, because the test harness hides the output of passing tests.
        let note =
            "note: a test of topo as the first process is skipped: unshare may not create a PID namespace here\n";
        let _ = std::io::stderr().write_all(note.as_bytes());
    }
    is_allowed
}

/// Sends a signal to process 1 of the namespace, once this process is topo and has a handler.
fn signal(running: &Running, signal: &str) {
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let child = until("topo as a child of unshare", || {
        let children = fs::read_to_string(&children).unwrap();
        let child = children.trim().to_owned();
        let is_topo = fs::read_link(format!("/proc/{child}/exe")).is_ok_and(|it| it.ends_with("topo"));
        (is_topo && handles(&child, signal)).then_some(child)
    });
    assert!(Command::new("kill").args(["-s", signal, &child]).status().unwrap().success());
}

#[test]
fn signals_end_topo_as_the_first_process() {
    if !has_namespaces() {
        return;
    }
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    for command in [&["plan"][..], &["apply", "--yes"], &["export"]] {
        for name in ["TERM", "INT", "HUP"] {
            let topo = Topo::of(Path::new("/usr/bin/unshare")).url(&url).spec(QUEUE);
            let running = topo.start(NAMESPACE.iter().chain(&[env!("CARGO_BIN_EXE_topo")]).chain(command).copied());
            // The connection may belong to the previous run, so the test waits for the child.
            let (_connection, _) = silent.accept().unwrap();
            signal(&running, name);
            running.wait().expect_code(130).expect_error("interrupted; nothing was changed");
        }
    }
}

#[test]
fn signal_during_lock_break_reports_a_possible_change() {
    if !has_namespaces() {
        return;
    }
    let vhost = Node::shared().vhost("broken-off");
    put_lock(&vhost, "topo.lock", "me@far-away", LONG);
    let proxy = Proxy::to(Node::shared()).on(deletes().path("topo.lock"), Fault::HangAfter);
    let topo = Topo::of(Path::new("/usr/bin/unshare")).url(&proxy.url());
    let command = [env!("CARGO_BIN_EXE_topo"), "lock", "--break", "--yes", "--vhost", vhost.name()];
    let running = topo.start(NAMESPACE.into_iter().chain(command));
    until("the deletion", || (proxy.count(&deletes()) > 0).then_some(()));
    until("no lock", || vhost.queue("topo.lock").is_null().then_some(()));
    signal(&running, "TERM");
    running.wait().expect_code(4).expect_error("interrupted; the broker may have been changed");
}

#[test]
fn signals_end_topo_as_the_first_process_that_waits_for_a_file() {
    if !has_namespaces() {
        return;
    }
    let commands = [
        &["validate", "pipe.yaml"][..],
        &["contract", "pipe.yaml"],
        &["explain", "orders", "pipe.yaml"],
        &["graph", "pipe.yaml"],
        &["plan", "pipe.yaml"],
        &["apply", "--yes", "pipe.yaml"],
        &["export", "--definitions", "pipe.yaml"],
    ];
    for command in commands {
        let topo = Topo::of(Path::new("/usr/bin/unshare"));
        assert!(Command::new("mkfifo").arg(topo.path("pipe.yaml")).status().unwrap().success());
        let running = topo.start(NAMESPACE.iter().chain(&[env!("CARGO_BIN_EXE_topo")]).chain(command).copied());
        signal(&running, "TERM");
        running.wait().expect_code(130).expect_error("interrupted; nothing was changed");
    }
}

/// Returns true if a process has a handler for a signal.
fn handles(process: &str, signal: &str) -> bool {
    let number = match signal {
        "HUP" => 1,
        "INT" => 2,
        _ => 15,
    };
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & (1 << (number - 1)) != 0)
}

#[test]
fn suggested_commands_protect_file_names_with_a_leading_dash() {
    let vhost = Node::shared().vhost("dash");
    let topo = Topo::new(&vhost).file("-x.yaml", &format!("version: 1\nvhost: {{vhost}}\n{QUEUE}"));
    topo.run(["plan", "--", "-x.yaml"]).expect_code(0).expect_text("topo apply ./-x.yaml");
    topo.run(["plan", "--out=-plan.json", "--", "-x.yaml"])
        .expect_code(0)
        .expect_text("topo apply --plan ./-plan.json");
    topo.run(["apply", "--plan", "./-plan.json"]).expect_code(0);
}
