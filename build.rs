//! Sets the values of `topo version`: commit, date, target, compiler and profile.
//!
//! The output does not depend on the current time. A package from a registry contains no git repository, and `cargo
//! package` stores the commit in a file. Only a release build records the commit. A debug build would be rebuilt after
//! every commit, and usually contains uncommitted changes.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let profile = variable("PROFILE");
    let folder = variable("CARGO_MANIFEST_DIR");
    let commit = if profile == "release" { Commit::of(Path::new(&folder)) } else { Commit::default() };
    let epoch = variable("SOURCE_DATE_EPOCH").parse().ok().or(commit.seconds);
    set("COMMIT", &commit.name);
    set("DATE", &epoch.map_or_else(String::new, date));
    set("TARGET", &variable("TARGET"));
    set("RUSTC", &rustc(&variable("RUSTC")));
    set("PROFILE", &profile);
}

/// Passes a value to the crate as an environment variable.
fn set(name: &str, value: &str) {
    println!("cargo::rustc-env=TOPO_BUILD_{name}={value}");
}

/// The commit of the sources; empty if it is unknown.
#[derive(Default)]
struct Commit {
    name: String,
    seconds: Option<i64>,
}

impl Commit {
    fn of(folder: &Path) -> Self {
        // A surrounding repository that merely contains these sources does not count.
        if !folder.join(".git").exists() {
            return Self { name: packaged_commit(folder).unwrap_or_default(), seconds: None };
        }
        for file in ["HEAD", "logs/HEAD", "index"] {
            if let Some(path) = git(folder, &["rev-parse", "--git-path", file]) {
                println!("cargo::rerun-if-changed={path}");
            }
        }
        let name = git(folder, &["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
        let seconds = git(folder, &["log", "-1", "--format=%ct"]).and_then(|text| text.parse().ok());
        Self { name: name.unwrap_or_default(), seconds }
    }
}

/// Returns the commit that `cargo package` wrote into the tarball.
fn packaged_commit(folder: &Path) -> Option<String> {
    let path = folder.join(".cargo_vcs_info.json");
    let text = std::fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let name = rest.split('"').nth(1)?;
    let name = name.get(..12)?;
    let dirty = if text.contains("\"dirty\": true") { "-dirty" } else { "" };
    name.chars().all(|c| c.is_ascii_hexdigit()).then(|| format!("{name}{dirty}"))
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    stdout_of(Command::new("git").current_dir(folder).args(arguments))
}

/// Returns the compiler version without the name of the compiler: `1.95.0 (59807616e 2026-04-14)`.
fn rustc(program: &str) -> String {
    let version = stdout_of(Command::new(program).arg("--version")).unwrap_or_default();
    version.strip_prefix("rustc ").unwrap_or(&version).to_owned()
}

fn stdout_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the UTC day of a Unix time, such as `2026-11-22` (days to a civil date, after Howard Hinnant).
fn date(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // If a year begins in March, the leap day is its last day.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
