//! Tests `topo --version`, `topo version`, and the build script, which is compiled and run as by cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{done, root};
use crate::support::{Topo, temp_dir};

#[test]
fn version_is_one_line_or_detailed() {
    let version = env!("CARGO_PKG_VERSION");
    let short = Topo::offline().run(["--version"]).expect_code(0).stdout;
    assert_eq!(short.lines().count(), 1);
    assert_eq!(short.split_whitespace().take(2).collect::<Vec<_>>(), ["topo", version]);
    let long = Topo::offline().run(["version"]).expect_code(0).stdout;
    assert!(long.starts_with(&format!("topo {version}\n")), "{long}");
    let json = Topo::offline().run(["version", "--format", "json"]).expect_code(0).json();
    assert_eq!(json["version"], version);
    for name in ["target", "rustc", "profile"] {
        let value = json["build"][name].as_str().unwrap();
        assert!(!value.is_empty() && long.contains(&format!("{name:<8} {value}\n")), "{long}");
        assert!(short.contains(value.split(' ').next().unwrap()), "{name}: {short}");
    }
    // Tests run on uncommitted sources, so there is no commit.
    assert!(json["build"]["commit"].is_null() && !long.contains("commit"), "{long}");
}

/// The build script as a program.
struct Script {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Script {
    fn compiled() -> Self {
        let folder = temp_dir::folder();
        let program = folder.path().join("build-script");
        fs::create_dir(folder.path().join("sources")).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        done(Command::new(rustc).args(["--edition", "2024", "-o"]).arg(&program).arg(root().join("build.rs")));
        Self { program, folder }
    }

    fn sources(&self) -> PathBuf {
        self.folder.path().join("sources")
    }

    /// Returns the output in a folder as `NAME=VALUE` lines, and the paths whose changes trigger another run.
    fn run(&self, profile: &str, epoch: Option<&str>) -> (Vec<String>, Vec<String>) {
        let mut command = Command::new(&self.program);
        command.env_remove("SOURCE_DATE_EPOCH").current_dir(self.sources());
        command.env("CARGO_MANIFEST_DIR", self.sources()).env("PROFILE", profile).env("RUSTC", "rustc");
        command.env("TARGET", "here-and-now");
        if let Some(epoch) = epoch {
            command.env("SOURCE_DATE_EPOCH", epoch);
        }
        let text = done(&mut command);
        let after = |start: &str| text.lines().filter_map(|line| line.strip_prefix(start)).map(str::to_owned).collect();
        (after("cargo::rustc-env=TOPO_BUILD_"), after("cargo::rerun-if-changed="))
    }

    fn git<const N: usize>(&self, arguments: [&str; N]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b.c"]).args(arguments).current_dir(self.sources());
        git.env("GIT_COMMITTER_DATE", "1709210096 +0000").env("HOME", self.folder.path());
        done(&mut git).trim().to_owned()
    }
}

fn value<'a>(both_streams: &'a [String], name: &str) -> &'a str {
    both_streams.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap()
}

#[test]
fn build_script_finds_the_commit_of_the_sources() {
    let script = Script::compiled();
    let write = |name: &str, text: &str| fs::write(script.sources().join(name), text).unwrap();
    // The sources of a tarball without git, and of a registry.
    let (both_streams, _) = script.run("release", None);
    assert_eq!((value(&both_streams, "COMMIT"), value(&both_streams, "DATE")), ("", ""));
    assert_eq!((value(&both_streams, "TARGET"), value(&both_streams, "PROFILE")), ("here-and-now", "release"));
    assert!(value(&both_streams, "RUSTC").starts_with("1."), "{both_streams:?}");
    let noted =
        "{\n  \"git\": {\n    \"sha1\": \"0123456789abcdef0123456789abcdef01234567\"\n  },\n  \"path_in_vcs\": \"\"\n}";
    write(".cargo_vcs_info.json", noted);
    let (both_streams, _) = script.run("release", Some("951782400"));
    assert_eq!((value(&both_streams, "COMMIT"), value(&both_streams, "DATE")), ("0123456789ab", "2000-02-29"));
    write(".cargo_vcs_info.json", &noted.replace("\n  },", ",\n    \"dirty\": true\n  },"));
    assert_eq!(value(&script.run("release", None).0, "COMMIT"), "0123456789ab-dirty");
    write(".cargo_vcs_info.json", "{\"git\": {\"sha1\": \"$(ü)\"}}");
    assert_eq!(value(&script.run("release", None).0, "COMMIT"), "");

    // The sources of a clone.
    script.git(["init", "--quiet"]);
    script.git(["add", "."]);
    script.git(["commit", "--quiet", "--message", "one"]);
    let head = script.git(["rev-parse", "--short=12", "HEAD"]);
    let (both_streams, again) = script.run("release", None);
    assert_eq!((value(&both_streams, "COMMIT"), value(&both_streams, "DATE")), (head.as_str(), "2024-02-29"));
    assert!(again.iter().any(|file| Path::new(file).ends_with("logs/HEAD")), "{again:?}");
    assert_eq!(script.run("release", None), (both_streams, again), "deterministic");
    let (both_streams, _) = script.run("release", Some("0"));
    assert_eq!(value(&both_streams, "DATE"), "1970-01-01");
    write(".cargo_vcs_info.json", "changed");
    assert_eq!(value(&script.run("release", None).0, "COMMIT"), format!("{head}-dirty"));
    // A new commit does not trigger a new compilation of a debug build.
    let (both_streams, again) = script.run("debug", None);
    assert_eq!((value(&both_streams, "COMMIT"), again), ("", vec!["build.rs".to_owned()]));
}
