//! The package of the registry: what is in it is what is needed to build it, and no more.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::{cargo, done, read, root};
use crate::support::scratch;

#[test]
fn it_is_lean_and_complete() {
    let listed = Command::new(env!("CARGO"))
        .args(["package", "--list", "--allow-dirty", "--offline", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&listed.stdout);
    let files: Vec<&str> = text.lines().collect();
    let committed = done(Command::new("git").args(["ls-files", "src", "schema", "build.rs"]).current_dir(root()));
    for file in committed.lines().chain([
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    ]) {
        assert!(files.contains(&file), "{file} is not in the package");
    }
    let others = ["tests/", "benches/", "action", "release/", ".github/", ".ci/", "Dockerfile", "target/"];
    let needless: Vec<&&str> = files.iter().filter(|file| others.iter().any(|other| file.starts_with(other))).collect();
    assert!(needless.is_empty(), "{needless:?}");
    // What the README refers to on its own grounds is there, too.
    let readme = read(&cargo("readme"));
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let path = link.split('#').next().unwrap();
        let is_there = path.is_empty() || path.contains("://") || files.iter().any(|file| file.starts_with(path));
        assert!(is_there, "README.md links to {link}, which is not in the package");
    }
}

/// Files of the project in which a text stands, by their paths.
fn with(text: &str) -> BTreeSet<String> {
    let files = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let listed = done(Command::new("git").args(files).current_dir(root()));
    let has = |file: &&str| fs::read(root().join(file)).is_ok_and(|it| String::from_utf8_lossy(&it).contains(text));
    listed.lines().filter(has).map(str::to_owned).collect()
}

/// Nobody knows yet where the project will live, and nobody is to forget a place where that is said.
#[test]
fn what_has_to_be_filled_in_before_the_first_release_is_listed() {
    // In two parts: this file is none of them.
    let found = with(&["OWNER", "topo"].join("/"));
    let page = read("docs/release.md");
    let section = page.split("## Before the first release\n").nth(1).map(|rest| rest.split("\n## ").next().unwrap());
    let lines = section.into_iter().flat_map(str::lines);
    let listed: BTreeSet<String> =
        lines.filter_map(|line| Some(line.strip_prefix("- `")?.strip_suffix('`')?.to_owned())).collect();
    assert_eq!(found, listed, "docs/release.md, `Before the first release`");
    let has_repository = read("Cargo.toml").lines().any(|line| line.starts_with("repository = "));
    assert_eq!(has_repository, listed.is_empty(), "both are said at once");
    // And the commands of that section do it.
    if let Some(section) = section {
        let folder = scratch::folder();
        for file in listed.iter().map(String::as_str).chain(["Cargo.toml"]) {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy(root().join(file), path).unwrap();
        }
        let commands = section.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
        done(Command::new("bash").current_dir(folder.path()).args(["-e", "-c", commands]));
        let text = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text("Cargo.toml").contains("repository = \"https://github.com/rabbit-people/topo\"\n"));
        assert!(text("docs/action.md").contains("uses: rabbit-people/topo@v0"));
        for file in &listed {
            // But for the section itself, which goes.
            let rest = text(file).replace(&commands.replace(&["OWNER", "topo"].join("/"), "rabbit-people/topo"), "");
            assert!(!rest.contains(&["OWNER", "topo"].join("/")), "{file}");
        }
    }
}
