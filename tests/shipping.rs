//! What is shipped: the archive of a release, the image, the package, the hooks, the workflows, and what topo says of its
//! own making. The Action is in `live/action.rs`, because it needs a broker.

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

/// One of what `tests/shipping/tools/get` makes available.
fn tool(name: &str) -> PathBuf {
    tool_of("tests/shipping/tools/get", name)
}

fn tool_of(get: &str, name: &str) -> PathBuf {
    let output = Command::new(root().join(get)).output().unwrap();
    let text = said(&output);
    let path = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    path.unwrap_or_else(|| panic!("no {name} in: {text}")).into()
}

/// Both streams.
fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned()).concat()
}

/// Standard output of what must succeed. cargo says on the other that it waits for another cargo.
#[track_caller]
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", said(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What the crate says in Cargo.toml: the first such line.
fn cargo(key: &str) -> String {
    let text = read("Cargo.toml");
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'));
    value.unwrap_or_else(|| panic!("no {key} in Cargo.toml")).to_owned()
}
