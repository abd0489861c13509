//! Tests the release: archive, image, package, hooks, workflows, and version output. The tests of the Action are in
//! `live/action.rs`, because they need a broker.

mod archive;
mod hooks;
mod image;
mod package;
mod version;
mod workflows;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the path of a tool that `tests/shipping/tools/get` provides.
fn tool(name: &str) -> PathBuf {
    tool_of("tests/shipping/tools/get", name)
}

fn tool_of(get: &str, name: &str) -> PathBuf {
    let output = Command::new(root().join(get)).output().unwrap();
    let text = both_streams(&output);
    let path = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    path.unwrap_or_else(|| panic!("no {name} in: {text}")).into()
}

/// Returns standard output and standard error.
fn both_streams(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned()).concat()
}

/// Returns the standard output of a command, which must succeed. cargo writes to standard error when it waits for
/// another cargo.
#[track_caller]
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", both_streams(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the value of the first line in Cargo.toml with this key.
fn cargo(key: &str) -> String {
    let text = read("Cargo.toml");
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'));
    value.unwrap_or_else(|| panic!("no {key} in Cargo.toml")).to_owned()
}
