//! Tests that the contents of the archive from `release/archive` are complete and reproducible.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{done, root};
use crate::support::{Topo, temp_dir};

const TARGET: &str = "x86_64-unknown-linux-musl";

fn pack(binary: &Path, folder: &Path, more: &[(&str, &str)]) -> String {
    let mut command = Command::new(root().join("release/archive"));
    command.args([binary.as_os_str(), TARGET.as_ref(), folder.as_os_str()]);
    command.env("SOURCE_DATE_EPOCH", "1700000000").envs(more.iter().copied());
    done(&mut command).trim().to_owned()
}

#[test]
fn archive_is_complete_and_reproducible() {
    let folder = temp_dir::folder();
    // A small program replaces topo, because `release/archive` runs TOPO_RUN instead of the packed binary.
    let binary = folder.path().join("other-name");
    fs::write(&binary, "#!/bin/sh\n").unwrap();
    let topo = [("TOPO_RUN", env!("CARGO_BIN_EXE_topo"))];
    let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
    let first = pack(&binary, &one, &topo);
    // Uses a different clock, umask and locale, and secrets in the environment.
    let other =
        [topo[0], ("TZ", "Asia/Tokyo"), ("LC_ALL", "C"), ("TOPO_VAR", "A=hush-hush"), ("TOPO_URL", "http://hush-hush")];
    fs::copy(&binary, folder.path().join("renamed")).unwrap();
    let second = pack(&folder.path().join("renamed"), &two, &other);
    assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap(), "not the same bytes");
    let name = format!("topo-{}-{TARGET}", env!("CARGO_PKG_VERSION"));
    assert!(first.ends_with(&format!("/{name}.tar.gz")), "{first}");
    let sum = format!("{name}.tar.gz.sha256");
    done(Command::new("sha256sum").args(["--check", "--strict", &sum]).current_dir(&one));

    let listed = done(Command::new("tar").args(["--list", "--verbose", "--numeric-owner", "--utc", "--file", &first]));
    for line in listed.lines() {
        assert!(line.contains(" 0/0 ") && line.contains(" 2023-11-14 22:13 "), "{line}");
    }
    assert!(listed.contains(&format!("-rwxr-xr-x 0/0              10 2023-11-14 22:13 {name}/topo\n")), "{listed}");
    let mut expected: Vec<String> = ["topo", "README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]
        .into_iter()
        .chain(["LICENSES-OF-OTHERS.txt", "completions/topo.bash", "completions/_topo", "completions/topo.fish"])
        .chain(["completions/_topo.ps1", "schema/topology.schema.json", "schema/plan.schema.json"])
        .chain([
            "schema/contract.schema.json",
            "schema/status.schema.json",
            "schema/test.schema.json",
            "schema/test-results.schema.json",
            "man/topo.1",
        ])
        .map(str::to_owned)
        .collect();
    // The archive contains a page for each command in the help.
    let help = Topo::offline().run(["--help"]).expect_code(0).stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    expected.extend(commands.filter_map(|line| line.split_whitespace().next()).map(|it| format!("man/topo-{it}.1")));
    expected.retain(|file| file != "man/topo-help.1");
    let mut files: Vec<&str> =
        listed.lines().filter_map(|line| line.rsplit_once(&format!("{name}/")).map(|it| it.1)).collect();
    files.retain(|file| !file.is_empty() && !file.ends_with('/'));
    files.sort_unstable();
    expected.sort_unstable();
    assert_eq!(files, expected);

    done(Command::new("tar").args(["--extract", "--file", &first]).current_dir(folder.path()));
    let all = done(Command::new("grep").args(["-rc", "", &name]).current_dir(folder.path()));
    assert!(all.lines().all(|line| !line.ends_with(":0")), "empty: {all}");
    let texts = done(
        Command::new("grep")
            .args(["-rhE", "hush-hush|^serde .*MIT OR Apache-2.0|^ring .*ISC", &name])
            .current_dir(folder.path()),
    );
    assert!(texts.lines().count() == 2, "{texts}");
}

#[test]
fn another_version_is_not_packed() {
    let folder = temp_dir::folder();
    let other = folder.path().join("other");
    fs::write(&other, "#!/bin/sh\necho '{\"version\": \"0.0.0\"}'\n").unwrap();
    done(Command::new("chmod").arg("+x").arg(&other));
    let refused = Command::new(root().join("release/archive"))
        .args([&other, Path::new(TARGET)])
        .arg(folder.path())
        .output()
        .unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("has version 0.0.0, expected"), "{refused:?}");
}
