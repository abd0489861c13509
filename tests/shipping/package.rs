//! Tests that the package for the registry contains exactly the files that a build needs.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{both_streams, cargo, done, read, root};
use crate::support::temp_dir;

#[test]
fn package_is_complete_and_minimal() {
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
    // Files to which the README links are in the package, too.
    let readme = read(&cargo("readme"));
    for link in readme.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let path = link.split('#').next().unwrap();
        let is_there = path.is_empty() || path.contains("://") || files.iter().any(|file| file.starts_with(path));
        assert!(is_there, "README.md links to {link}, which is not in the package");
    }
}

#[test]
fn package_is_named_rabbitmq_topo_and_its_programs_are_named_topo() {
    let text = done(Command::new(env!("CARGO")).args(METADATA).current_dir(root()));
    let metadata: Value = serde_json::from_str(&text).unwrap();
    let [package] = &metadata["packages"].as_array().unwrap()[..] else { panic!("one package") };
    assert_eq!((&package["name"], &package["default_run"]), (&"rabbitmq-topo".into(), &"topo".into()));
    for kind in ["lib", "bin"] {
        let of_kind = |target: &&Value| target["kind"].as_array().unwrap().contains(&kind.into());
        let names: Vec<&Value> =
            package["targets"].as_array().unwrap().iter().filter(of_kind).map(|target| &target["name"]).collect();
        assert_eq!(names, ["topo"], "{kind}");
    }
    // Scripts that list the packages of a build omit topo itself.
    for script in ["release/licenses", "benches/build"] {
        assert!(read(script).contains("'^rabbitmq-topo '"), "{script}");
    }
}

const METADATA: [&str; 6] = ["metadata", "--no-deps", "--format-version", "1", "--offline", "--locked"];

/// With `TOPO_LONG=1`, cargo also compiles the package.
#[test]
fn packing_prints_no_unexpected_warning() {
    let folder = temp_dir::folder();
    let mut command = Command::new(env!("CARGO"));
    command.args(["package", "--allow-dirty", "--offline", "--locked"]).current_dir(root());
    if std::env::var_os("TOPO_LONG").is_none() {
        command.arg("--no-verify").env("CARGO_TARGET_DIR", folder.path());
    }
    let output = command.output().unwrap();
    let text = both_streams(&output);
    assert!(output.status.success(), "{text}");
    let has_repository = read("Cargo.toml").lines().any(|line| line.starts_with("repository = "));
    // The package intentionally excludes tests and benches. cargo warns about each of them, and has no setting to
    // disable the warning. Tests in a separate package could not run the binary, because cargo provides its path
    // (CARGO_BIN_EXE_topo) only to tests of the same package.
    let left_out = targets_left_out();
    let is_expected = |line: &str| {
        left_out.contains(line)
            // docs/maintainers/release.md lists this warning under "Before the first release".
            || !has_repository && line == "warning: manifest has no documentation, homepage or repository"
    };
    let unexpected: Vec<&str> = text.lines().filter(|line| line.starts_with("warning") && !is_expected(line)).collect();
    assert!(unexpected.is_empty(), "{text}");
}

/// Returns the warnings about the tests and benches.
fn targets_left_out() -> BTreeSet<String> {
    let text = done(Command::new(env!("CARGO")).args(METADATA).current_dir(root()));
    let metadata: Value = serde_json::from_str(&text).unwrap();
    let folder = format!("{}/", root().display());
    let warning = |target: &Value| {
        let [kind, name, path] =
            [&target["kind"][0], &target["name"], &target["src_path"]].map(|it| it.as_str().unwrap());
        let path = path.strip_prefix(&folder).unwrap();
        let words = [("test", "test"), ("bench", "benchmark")];
        let (_, word) = words.into_iter().find(|(known, _)| *known == kind)?;
        Some(format!("warning: ignoring {word} `{name}` as `{path}` is not included in the published package"))
    };
    metadata["packages"][0]["targets"].as_array().unwrap().iter().filter_map(warning).collect()
}

/// A page refers to a registry by a description ("the Rust package registry"), because its host can be a mirror.
#[test]
fn no_page_names_the_host_of_a_registry() {
    let hosts = [["crates", "io"], ["docs", "rs"], ["pypi", "org"], ["npmjs", "com"], ["npmjs", "org"], ["ghcr", "io"]];
    let wrong: Vec<_> = hosts
        .iter()
        .map(|parts| parts.join("."))
        .flat_map(|host| files_with(&host).into_iter().map(move |file| (file, host.clone())))
        .filter(|(file, _)| file.ends_with(".md") || file == "Cargo.toml")
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Returns the files of the project that contain a text.
fn files_with(text: &str) -> BTreeSet<String> {
    let files = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let listed = done(Command::new("git").args(files).current_dir(root()));
    let has = |file: &&str| fs::read(root().join(file)).is_ok_and(|it| String::from_utf8_lossy(&it).contains(text));
    listed.lines().filter(has).map(str::to_owned).collect()
}

/// The future location of the project is unknown, so every file that needs it is listed.
#[test]
fn placeholders_for_the_first_release_are_listed() {
    // The text is split, so that this file does not contain it.
    let found = files_with(&["OWNER", "topo"].join("/"));
    let page = read("docs/maintainers/release.md");
    let section = page.split("## Before the first release\n").nth(1).map(|rest| rest.split("\n## ").next().unwrap());
    let lines = section.into_iter().flat_map(str::lines);
    let listed: BTreeSet<String> =
        lines.filter_map(|line| Some(line.strip_prefix("- `")?.strip_suffix('`')?.to_owned())).collect();
    assert_eq!(found, listed, "docs/maintainers/release.md, `Before the first release`");
    let has_repository = read("Cargo.toml").lines().any(|line| line.starts_with("repository = "));
    assert_eq!(has_repository, listed.is_empty(), "set both or neither");
    // The commands of this section replace the placeholders.
    if let Some(section) = section {
        let folder = temp_dir::folder();
        for file in listed.iter().map(String::as_str).chain(["Cargo.toml"]) {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::copy(root().join(file), path).unwrap();
        }
        let commands = section.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
        done(Command::new("bash").current_dir(folder.path()).args(["-e", "-c", commands]));
        let text = |file: &str| fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text("Cargo.toml").contains("repository = \"https://github.com/rabbit-people/topo\"\n"));
        assert!(text("docs/how-to/github-actions.md").contains("uses: rabbit-people/topo@v0"));
        for file in &listed {
            // The section itself is deleted, so its commands are ignored.
            let rest = text(file).replace(&commands.replace(&["OWNER", "topo"].join("/"), "rabbit-people/topo"), "");
            assert!(!rest.contains(&["OWNER", "topo"].join("/")), "{file}");
        }
    }
}
