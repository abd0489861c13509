//! Runs `.pre-commit-hooks.yaml` with the real pre-commit in a separate repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{both_streams, done, read, root, tool};
use crate::support::temp_dir;

fn git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(arguments).current_dir(folder);
    done(git.env("HOME", folder));
}

#[test]
fn invalid_spec_stops_the_commit() {
    let pre_commit = tool("pre-commit");
    let folder = temp_dir::folder();
    // Copies the files that pre-commit uses, because it reads only committed files.
    let [hooks, shop] = ["hooks", "shop"].map(|name| folder.path().join(name));
    for repository in [&hooks, &shop] {
        fs::create_dir(repository).unwrap();
        git(repository, &["init", "--quiet"]);
    }
    fs::copy(root().join(".pre-commit-hooks.yaml"), hooks.join(".pre-commit-hooks.yaml")).unwrap();
    git(&hooks, &["add", "."]);
    git(&hooks, &["commit", "--quiet", "--message", "hooks"]);
    git(&hooks, &["tag", "v1"]);
    let config = format!(
        "repos:\n  - repo: {}\n    rev: v1\n    hooks:\n      - id: topo-validate-installed\n",
        hooks.display()
    );
    fs::write(shop.join(".pre-commit-config.yaml"), config).unwrap();
    fs::create_dir(shop.join("topology")).unwrap();
    fs::write(shop.join("topology/exchanges.yaml"), "version: 1\nvhost: shop\nexchanges: {orders: {type: topic}}\n")
        .unwrap();
    let queue = "version: 1\nvhost: shop\nqueues: {work: {type: quorum, deadLetter: none, bindings: [{exchange: orders, routingKey: a}]}}\n";
    fs::write(shop.join("topology/queues.yaml"), queue).unwrap();
    git(&shop, &["add", "."]);

    let run = || {
        let programs = Path::new(env!("CARGO_BIN_EXE_topo")).parent().unwrap();
        let mut command = Command::new(&pre_commit);
        command.arg("run").current_dir(&shop).env_clear().env("HOME", folder.path()).env("LANG", "C.UTF-8");
        let output = command.env("PATH", format!("{}:/usr/bin:/bin", programs.display())).output().unwrap();
        (output.status.code(), both_streams(&output))
    };
    let (code, text) = run();
    assert!(code == Some(0) && text.contains("Passed"), "{text}");
    git(&shop, &["commit", "--quiet", "--message", "one"]);
    // One changed file refers to an object of the other file, so all files are checked together.
    fs::write(shop.join("topology/queues.yaml"), queue.replace("routingKey: a", "routingKey: b")).unwrap();
    git(&shop, &["add", "."]);
    let (code, text) = run();
    assert!(code == Some(0) && text.contains("Passed"), "{text}");
    fs::write(shop.join("topology/queues.yaml"), queue.replace("exchange: orders", "exchange: ordres")).unwrap();
    git(&shop, &["add", "."]);
    let (code, text) = run();
    assert!(code == Some(1) && text.contains("did you mean `orders`"), "{text}");
    // The hook skips files other than YAML.
    git(&shop, &["reset", "--quiet", "--hard"]);
    fs::write(shop.join("README.md"), "words\n").unwrap();
    git(&shop, &["add", "."]);
    let (code, text) = run();
    assert!(code == Some(0) && text.contains("(no files to check)Skipped"), "{text}");
}

/// The hook that builds topo uses `cargo install`, so the package must contain the program that the hook runs.
#[test]
fn second_hook_builds_topo() {
    let hooks: Value = serde_yaml::from_str(&read(".pre-commit-hooks.yaml")).unwrap();
    let [built, installed] = &hooks.as_array().unwrap()[..] else { panic!("two hooks") };
    assert_eq!((&built["language"], &installed["language"]), (&"rust".into(), &"system".into()));
    for key in ["entry", "files", "pass_filenames", "name"] {
        assert_eq!(built[key], installed[key], "{key}");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_topo")).file_name().unwrap().to_str();
    assert_eq!(built["entry"].as_str().unwrap().split(' ').next(), program);
}
