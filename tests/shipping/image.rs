//! Tests the Dockerfile without a container engine. Runs its build line without the compiler (the release runs
//! `release/build`), and checks that all files in the Dockerfile exist and that no instruction needs a shell.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{cargo, done, read, root};
use crate::support::temp_dir;

/// Returns the instructions with their arguments, without comments.
fn instructions() -> Vec<(String, String)> {
    let text = read("Dockerfile");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap()).map(|(word, rest)| (word.to_owned(), rest.to_owned())).collect()
}

fn of<'a>(stage: &'a [(String, String)], word: &str) -> Vec<&'a str> {
    stage.iter().filter(|(it, _)| it == word).map(|(_, rest)| rest.as_str()).collect()
}

#[test]
fn image_starts_the_built_binary() {
    let all = instructions();
    let second = all.iter().rposition(|(word, _)| word == "FROM").unwrap();
    let (build, image) = all.split_at(second);

    // The image contains only topo.
    assert_eq!(image[0].1, "scratch");
    assert_eq!(of(image, "RUN"), Vec::<&str>::new());
    assert_eq!(of(image, "COPY"), ["--from=build /image /"]);
    assert_eq!(of(image, "ENTRYPOINT"), ["[\"/topo\"]"]);
    let [user] = of(image, "USER")[..] else { panic!("one user") };
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user}: there are no names in it");

    // Runs the build line with a different compiler and folder.
    let lines = of(build, "RUN");
    let line = lines.last().unwrap();
    assert!(line.contains("$(release/build)"), "{line}");
    let folder = temp_dir::folder();
    let release = folder.path().join("release");
    fs::create_dir(&release).unwrap();
    fs::write(release.join("build"), format!("#!/bin/sh\necho '{}'\n", env!("CARGO_BIN_EXE_topo"))).unwrap();
    done(Command::new("chmod").arg("+x").arg(release.join("build")));
    let made = folder.path().join("image");
    let line = line.replace("/image", made.to_str().unwrap());
    done(Command::new("sh").args(["-ec", &line]).current_dir(folder.path()));
    done(Command::new(made.join("topo")).arg("--version").env_clear());
    let state = of(image, "ENV").iter().find_map(|line| line.strip_prefix("XDG_STATE_HOME=/")).unwrap();
    for folder in [state, of(image, "WORKDIR")[0].trim_start_matches('/')] {
        let mode = std::os::unix::fs::PermissionsExt::mode(&made.join(folder).metadata().unwrap().permissions());
        assert_eq!(mode & 0o7777, 0o1777, "/{folder} must be writable for any user of the container");
    }
    // The target that is added is the target that is built.
    let target = "$(uname -m)-unknown-linux-musl";
    assert!(lines.iter().any(|line| *line == format!("rustup target add \"{target}\"")), "{lines:?}");
    assert!(read("release/build").contains(&format!("target=${{1:-{target}}}")));
    for tool in ["jq", "musl-tools"] {
        assert!(lines.iter().any(|line| line.contains("apt-get install") && line.contains(tool)), "{tool}");
    }
}

/// The documented commands keep backups outside the container, and can read the user's specs.
#[test]
fn documented_commands_keep_backups_and_read_specs() {
    let all = instructions();
    let state =
        all.iter().find_map(|(word, rest)| rest.strip_prefix("XDG_STATE_HOME=").filter(|_| word == "ENV")).unwrap();
    for file in ["docs/how-to/containers.md", "Dockerfile"] {
        let text = read(file).replace("\\\n#", "").replace("\\\n", "");
        let commands: Vec<&str> = text.lines().filter(|line| line.contains("docker run ")).collect();
        assert!(!commands.is_empty(), "{file}");
        for command in commands {
            assert!(
                command.contains(&format!(":{state}\"")) && command.contains("--user \"$(id -u)"),
                "{file}: {command}"
            );
        }
    }
}

/// The image, the archives and CI use the same compiler, whose version is at least the minimum of the crate.
#[test]
fn all_builds_use_one_compiler() {
    let version = read("Dockerfile").lines().find_map(|line| line.strip_prefix("FROM rust:")).unwrap().to_owned();
    let version = version.split('-').next().unwrap().to_owned();
    let minor = |version: &str| version.split('.').nth(1).unwrap().parse::<u32>().unwrap();
    assert!(minor(&version) >= minor(&cargo("rust-version")));
    for workflow in ["ci", "release"] {
        let text = read(&format!(".github/workflows/{workflow}.yml"));
        assert!(text.contains(&format!("image: rust:{version}-bookworm")), "{workflow}");
    }
}

/// A committed file outside the build context would make the working tree of the image look modified.
#[test]
fn image_context_contains_every_committed_file() {
    let patterns: Vec<String> =
        read(".dockerignore").lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    assert_eq!(patterns, ["/target", "*.swp"]);
    let files = done(Command::new("git").arg("ls-files").current_dir(root()));
    assert!(files.lines().count() > 300);
    assert!(!files.lines().any(|file| Path::new(file).starts_with("target") || file.ends_with(".swp")));
}
