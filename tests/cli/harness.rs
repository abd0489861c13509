//! Tests the runner of the binary, with a shell instead of the binary.

use std::panic::catch_unwind;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Topo, child};

fn shell() -> Topo {
    Topo::of(Path::new("/bin/sh"))
}

fn panic_of(run: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *catch_unwind(run).unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn topo_can_be_run() {
    Topo::offline().run(["--version"]).expect_code(0);
}

#[test]
fn streams_code_files_and_environment_are_set() {
    let shell = shell().env("TOPO_X", "y").file("sub/a.txt", "b").input("typed");
    let output = shell.run(["-c", "cat; cat sub/a.txt; echo $TOPO_X$COLUMNS >&2; echo new >out; exit 3"]);
    let output = output.expect_code(3).expect_text("typedb").expect_no_text("secret");
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("typedb", "y100\n"));
    assert_eq!(shell.read("out"), "new\n");
    let names = shell.run(["-c", "env | cut -d= -f1 | sort | tr '\\n' ' '"]).expect_code(0);
    // The shell itself sets PWD, and some shells set OLDPWD, SHLVL and _.
    assert!(!names.stdout.contains("PATH") && !names.stdout.contains("CARGO"), "{names}");
}

#[test]
fn wrong_code_prints_both_streams() {
    let panic = panic_of(|| drop(shell().run(["-c", "echo out; echo err >&2; exit 2"]).expect_code(3)));
    for part in ["expected exit code 3", "exit code Some(2)", "--- stdout\nout", "--- stderr\nerr"] {
        assert!(panic.contains(part), "{panic}");
    }
}

#[test]
fn hanging_run_is_killed_and_printed() {
    let started = Instant::now();
    let panic = panic_of(|| {
        let shell = shell().timeout(Duration::from_millis(300));
        drop(shell.run(["-c", "echo begun; exec /bin/sleep 100"]));
    });
    assert!(panic.contains("not over in time") && panic.contains("begun"), "{panic}");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn run_can_be_interrupted() {
    let running = shell().timeout(Duration::from_secs(20)).start(["-c", "exec /bin/sleep 100"]);
    running.signal("INT");
    assert_eq!(running.wait().code, None);
}

/// A shell cannot trap a signal that it ignores from its start.
#[test]
fn a_script_can_trap_a_signal() {
    let status = child("bash").args(["-c", "trap 'exit 7' INT; kill -s INT $$; exit 1"]).status().unwrap();
    assert_eq!(status.code(), Some(7));
}

/// `tests/run &` in a script, or `nohup cargo test &`, makes the tests ignore the signal.
#[test]
fn children_can_be_interrupted_where_the_tests_ignore_the_signal() {
    let suite = std::env::current_exe().unwrap();
    let output = Command::new("/bin/sh")
        .args(["-c", "trap '' INT QUIT HUP; exec \"$0\" \"$@\""])
        .arg(suite)
        .args(["--exact", "cli::harness::run_can_be_interrupted", "cli::harness::a_script_can_trap_a_signal"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("2 passed"), "{printed}");
}

#[test]
fn spec_gets_its_header() {
    let topo = Topo::offline().spec("queues: {}");
    assert_eq!(topo.read("topology.yaml"), "version: 1\nvhost: \"/\"\nqueues: {}");
    topo.rewrite("version: 1\nvhost: a\n");
    assert_eq!(topo.read("topology.yaml"), "version: 1\nvhost: a\n");
}
