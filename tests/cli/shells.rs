//! Tests that completions and man pages contain every command and flag of the help, and that installed shells load the
//! completions.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Command;

use crate::support::Topo;

const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

/// Returns the commands in the help.
pub(crate) fn commands() -> Vec<String> {
    let help = Topo::offline().run(["--help"]).expect_code(0).stdout;
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<String> = names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(names.len() >= 8, "{names:?}");
    names.into_iter().filter(|name| name != "help").collect()
}

/// Returns the long flags of a command, without their dashes.
fn flags(command: &str) -> BTreeSet<String> {
    let help = Topo::offline().run([command, "--help"]).expect_code(0).stdout;
    let lines = help.lines().filter(|line| line.trim_start().starts_with('-'));
    let words = lines.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix("--"));
    let name = |word: &str| word.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap().to_owned();
    words.map(name).filter(|name| !name.is_empty()).collect()
}

#[test]
fn completions_have_every_command_and_flag() {
    let flags: BTreeSet<String> = commands().iter().flat_map(|command| flags(command)).collect();
    assert!(flags.len() >= 30, "{flags:?}");
    for shell in SHELLS {
        let topo = Topo::offline().env("TOPO_VAR", "TOKEN=hush-hush");
        let script = topo.run(["completions", shell]).expect_code(0).expect_no_text("hush-hush").stdout;
        for word in commands().iter().chain(&flags) {
            assert!(script.contains(word.as_str()), "{shell} knows no {word}");
        }
        assert!(script.contains("ifEmpty") || script.contains("markdown"), "{shell} knows no value");
    }
    Topo::offline().run(["completions", "tcsh"]).expect_code(64).expect_text("powershell");
}

/// Runs a script in a shell, in a folder with its completions, and returns the output. Returns `None` and prints a note
/// if the shell is missing. `tests/run` installs zsh and fish.
fn run_shell(shell: &str, arguments: &[&str]) -> Option<String> {
    let program = if shell == "powershell" { "pwsh" } else { shell };
    let is_here = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    assert!(is_here || shell != "bash");
    if !is_here {
        // Written to the terminal, because the test harness hides the output of passing tests.
        let note = format!("tests/cli/shells.rs: there is no {program} here, so it does not read its completions\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return None;
    }
    let topo = Topo::offline();
    topo.write("script", &topo.run(["completions", shell]).expect_code(0).stdout);
    let home = topo.path(".");
    let output = Command::new(program).args(arguments).current_dir(&home).env("HOME", &home).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{shell} {arguments:?}: {} {error}", output.status);
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn shells_read_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        run_shell(shell, &["-n", "script"]);
    }
    let read = "[void][scriptblock]::Create((Get-Content -Raw script))";
    run_shell("powershell", &["-NoProfile", "-NonInteractive", "-Command", read]);
}

/// Uses zsh's own lookup of the completion function.
#[test]
fn zsh_finds_the_completion_of_topo() {
    let script =
        "autoload -Uz compinit && compinit -D -u && source ./script && print -- $_comps[topo] && whence -w _topo";
    if let Some(reported) = run_shell("zsh", &["-f", "-c", script]) {
        assert_eq!(reported, "_topo\n_topo: function\n");
    }
}

#[test]
fn fish_offers_flags_and_values() {
    for (line, expected) in [
        ("topo validate --format g", &["github"][..]),
        ("topo apply --fail-o", &["--fail-on"]),
        ("topo explain unbounded-q", &["unbounded-queue"]),
        ("topo desc", &[]),
    ] {
        let script = format!("source ./script; complete -C '{line}'");
        let Some(reported) = run_shell("fish", &["--no-config", "-c", &script]) else { return };
        let offered: Vec<&str> = reported.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(offered, expected, "{line}");
    }
}

/// Calls the function as bash does, in a folder that contains a file.
#[test]
fn bash_offers_values_instead_of_files() {
    let topo = Topo::offline();
    topo.write("unbound.yaml", "");
    topo.write("script", &topo.run(["completions", "bash"]).expect_code(0).stdout);
    for (line, expected) in [
        ("topo validate --format g", "github"),
        ("topo validate --lint unbounded-q", "unbounded-queue="),
        ("topo plan --allow message-l", "message-loss"),
        ("topo plan --url unb", "unb"),
        ("topo explain unbounded-q", "unbounded-queue"),
        ("topo explain wrong-q", "wrong-queue-type"),
        ("topo help des", ""),
        ("topo validate --var-file unb", "unbound.yaml"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let run_shell = format!(
            "source ./script; COMP_WORDS=({line}); COMP_CWORD={}; _topo topo '{last}' '{before}' 2>/dev/null; \
             echo \"${{COMPREPLY[@]}}\"",
            words.len() - 1
        );
        let output = Command::new("bash").args(["-c", &run_shell]).current_dir(topo.path(".")).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), expected, "{line}");
    }
}

#[test]
fn fish_offers_the_topics_of_explain() {
    let script = Topo::offline().run(["completions", "fish"]).expect_code(0).stdout;
    let line = script.lines().find(|line| line.contains("using_subcommand explain") && line.contains("unbound-queue"));
    assert!(line.is_some_and(|line| line.contains("messageTtl") && line.contains("wrong-type")), "{script}");
    assert!(!script.contains("destroy"), "{script}");
}

#[test]
fn man_pages_have_every_flag() {
    let topo = Topo::offline();
    topo.run(["man"]).expect_code(0).expect_text(".TH topo 1").expect_text("Exit codes");
    let printed = topo.run(["man", "plan"]).expect_code(0).expect_text(".TH topo-plan 1").stdout;
    assert!(!topo.path("plan").exists());
    topo.run(["man", "pages/man1"]).expect_code(0).expect_no_result();
    assert_eq!(printed, topo.read("pages/man1/topo-plan.1"));
    topo.run(["man", "./plan"]).expect_code(0).expect_no_result();
    assert_eq!(printed, topo.read("plan/topo-plan.1"));
    // roff writes a dash as `\-`.
    let page = |name: &str| topo.read(&format!("pages/man1/{name}.1")).replace("\\-", "-");
    assert!(page("topo").contains(".SH SUBCOMMANDS"));
    for command in commands() {
        let page = page(&format!("topo-{command}"));
        assert!(page.contains(&format!(".TH topo-{command} 1")), "{page}");
        for flag in flags(&command) {
            assert!(page.contains(&format!("--{flag}")), "{command} --{flag}");
        }
    }
    assert!(!topo.path("pages/man1/topo-destroy.1").exists());
    topo.write("file", "");
    topo.run(["man", "file/man1"]).expect_code(1).expect_error("cannot write file/man1");
}
