//! Runs the quickstart in a new clone with the binary under test. The tutorial shows its complete output, and the
//! README shows an excerpt. The quickstart removes everything that it created.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::page::root;
use crate::support::{Node, Page, Part, child, temp_dir};

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Clones the project with its uncommitted changes. The clone contains no other files.
fn cloned(into: &Path) {
    let from = root().to_str().unwrap();
    git(into.parent().unwrap(), &["clone", "--quiet", "--depth=1", &format!("file://{from}"), into.to_str().unwrap()]);
    let changed = git(root(), &["ls-files", "-z", "--modified", "--others", "--exclude-standard"]);
    for file in changed.split('\0').filter(|file| !file.is_empty()) {
        let (from, to) = (root().join(file), into.join(file));
        if from.exists() {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        } else {
            fs::remove_file(to).unwrap();
        }
    }
}

#[test]
fn tutorial_shows_the_output_of_the_quickstart() {
    let folder = temp_dir::folder();
    let [clone, temporary, home] = ["clone", "temporary", "home"].map(|name| folder.path().join(name));
    cloned(&clone);
    for folder in [&temporary, &home] {
        fs::create_dir(folder).unwrap();
    }
    let output = child(clone.join("examples/quickstart/run"))
        .env("TOPO_BIN", env!("CARGO_BIN_EXE_topo"))
        .env("TMPDIR", &temporary)
        .env("HOME", &home)
        .env("COLUMNS", "60")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(!errors.contains("error"), "{errors}");
    assert!(git(&clone, &["status", "--porcelain", "--ignored"]).lines().all(|line| !line.starts_with("!!")), "{text}");
    for folder in [temporary, home] {
        let left: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    // The port and the version depend on the broker.
    let before = "RabbitMQ ";
    let at = text.find(" at http://127.0.0.1:").unwrap();
    let version = &text[text[..at].rfind(before).unwrap() + before.len()..at];
    assert_eq!(version, Node::shared().version());
    let port = &text[at + " at http://127.0.0.1:".len()..].split(' ').next().unwrap();
    let usual = text
        .replace(&format!("127.0.0.1:{port}"), "localhost:15672")
        .replace(&format!("RabbitMQ {version} at"), "RabbitMQ 3.10.8 at");
    let spec = fs::read_to_string(root().join("examples/quickstart/topology.yaml")).unwrap();
    let tutorial = Page::read("docs/tutorials/quickstart.md");
    assert!(tutorial.blocks("yaml").contains(&spec.as_str()), "the spec of the quickstart");
    for page in [&tutorial, &Page::read("README.md")] {
        assert!(page.blocks("sh").contains(&"examples/quickstart/run\n"), "{}: the command", page.name());
    }
    tutorial.expect(&tutorial.rewritten(|part| match part {
        Part::Block { language: "text", .. } => Some(usual.clone()),
        Part::Block { .. } | Part::Line(_) | Part::Fence(_) => None,
    }));
}
