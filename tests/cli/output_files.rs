//! Tests that topo writes output files completely, follows links, and replaces only regular files.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::support::{Output, Topo};

const SPEC: &str = "queues: {orders: {type: classic}}\n";

/// A graph file, which another graph may replace.
const OLD: &str = "digraph topology {\n";

/// Returns a shell in which `topo` is the binary under test.
fn shell() -> Topo {
    let programs = Path::new(env!("CARGO_BIN_EXE_topo")).parent().unwrap();
    Topo::of(Path::new("/bin/bash"))
        .env("PATH", &format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", programs.display()))
        .spec(SPEC)
}

fn ran(topo: &Topo, script: &str) -> Output {
    topo.run(["-c", script]).expect_code(0)
}

fn is_plan(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok_and(|plan| plan["formatVersion"] == 1)
}

/// All options with which topo writes a file.
const WRITERS: [&str; 5] = [
    "plan --against empty --out",
    "plan --against empty --also json=",
    "graph --out",
    "export --definitions definitions.json --force --out",
    "plan --against empty --also markdown=",
];

/// Returns the name with the extension of a spec if the writer requires it.
fn called(writer: &str, name: &str) -> String {
    if writer.starts_with("export") { format!("{name}.yaml") } else { name.to_owned() }
}

fn writer(writer: &str, path: &str) -> String {
    let between = if writer.ends_with('=') { "" } else { " " };
    format!("topo {writer}{between}{path}")
}

fn shell_with_definitions() -> Topo {
    let queue = r#"{"name": "orders", "vhost": "shop", "durable": true, "auto_delete": false, "arguments": {}}"#;
    let text = format!(r#"{{"rabbit_version": "4.0.5", "vhosts": [{{"name": "shop"}}], "queues": [{queue}]}}"#);
    shell().file("definitions.json", &text)
}

#[test]
fn pipe_receives_the_output() {
    let topo = shell_with_definitions();
    ran(&topo, "mkfifo pipe.yaml");
    for one in WRITERS {
        let path = topo.path("pipe.yaml");
        let reader = thread::spawn(move || fs::read_to_string(path).unwrap());
        ran(&topo, &writer(one, "pipe.yaml"));
        assert!(fs::symlink_metadata(topo.path("pipe.yaml")).unwrap().file_type().is_fifo(), "{one}");
        assert!(reader.join().unwrap().contains("orders"), "{one}");
        // A shell passes `>(…)` as a pipe under `/dev/fd`. `export` accepts only spec file names and `-`.
        if one.starts_with("export") {
            continue;
        }
        let output = ran(&topo, &format!("{} > /dev/null; wait", writer(one, ">(cat > through)")));
        assert!(topo.read("through").contains("orders"), "{one}: {output}");
    }
}

#[test]
fn link_is_followed() {
    let topo = shell_with_definitions();
    for one in WRITERS {
        fs::create_dir_all(topo.path("real")).unwrap();
        topo.write("real/old", OLD);
        let [link, dangling] = ["link", "dangling"].map(|name| called(one, name));
        for (link, to) in [(link.as_str(), "real/middle"), ("real/middle", "old"), (&dangling, "real/new")] {
            let _ = fs::remove_file(topo.path(link));
            symlink(to, topo.path(link)).unwrap();
        }
        for (link, file) in [(link, "real/old"), (dangling, "real/new")] {
            ran(&topo, &writer(one, &link));
            assert!(topo.read(file).contains("orders"), "{one}: {link}");
            assert!(fs::symlink_metadata(topo.path(&link)).unwrap().is_symlink(), "{one}: {link}");
        }
        let mut left: Vec<_> =
            fs::read_dir(topo.path("real")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["middle", "new", "old"], "{one}");
        fs::remove_dir_all(topo.path("real")).unwrap();
    }
    symlink("a", topo.path("b")).unwrap();
    symlink("b", topo.path("a")).unwrap();
    topo.run(["-c", &writer(WRITERS[0], "a")]).expect_code(1).expect_error("cannot write a");
}

/// topo writes to standard output under each of its names, a pipe or a file. Both results appear in order.
#[test]
fn standard_output_can_be_named() {
    let topo = shell();
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        let line = format!("{} --format text", writer(WRITERS[0], name));
        let piped = ran(&topo, &line).stdout;
        let (plan, text) = piped.split_at(piped.find("\n}\n").unwrap() + 3);
        assert!(is_plan(plan) && text.starts_with("vhost /"), "{name}: {piped}");
        ran(&topo, &format!("{line} > all"));
        assert_eq!(topo.read("all"), piped, "{name}");
    }
}

/// If root in a container replaced `/dev/null`, every process would be affected.
#[test]
fn device_is_not_replaced() {
    let topo = shell_with_definitions();
    let made = Command::new("mknod").arg(topo.path("null.yaml")).args(["c", "1", "3"]).output().unwrap();
    let is_usable = made.status.success() && fs::write(topo.path("null.yaml"), "nothing").is_ok();
    if !is_usable {
        // Written to the terminal, because the test harness hides the output of passing tests.
        let note =
            "tests/cli/output_files.rs: no device can be made here (root can, on most machines), so none is tried\n";
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return;
    }
    for one in WRITERS {
        ran(&topo, &writer(one, "null.yaml"));
        assert!(fs::symlink_metadata(topo.path("null.yaml")).unwrap().file_type().is_char_device(), "{one}");
    }
}

/// An attacker could create a link with the guessed name of a temporary file.
#[test]
fn temporary_files_follow_no_link() {
    let topo = shell_with_definitions();
    for one in WRITERS {
        let file = called(one, "guessed");
        topo.write("victim", "untouched");
        ran(&topo, &format!("ln -sf victim {file}.$$.tmp; exec {} > /dev/null", writer(one, &file)));
        assert_eq!(topo.read("victim"), "untouched", "{one}");
        assert!(topo.read(&file).contains("orders"), "{one}");
        fs::remove_file(topo.path(&file)).unwrap();
    }
}

/// After a failed write, the old file remains, and no temporary file is left.
#[test]
fn write_is_atomic() {
    let topo = shell_with_definitions();
    for one in WRITERS {
        let file = called(one, "kept/file");
        topo.write(&file, OLD);
        // The file size limit is smaller than the output.
        let starved = format!("trap '' XFSZ; ulimit -f 0; {} > /dev/null", writer(one, &file));
        topo.run(["-c", &starved]).expect_code(1).expect_error(&format!("cannot write {file}"));
        assert_eq!(topo.read(&file), OLD, "{one}");
        assert_eq!(fs::read_dir(topo.path("kept")).unwrap().count(), 1, "{one}");
        fs::remove_dir_all(topo.path("kept")).unwrap();
    }
}
