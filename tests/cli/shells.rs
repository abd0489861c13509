//! Completions and man pages: every command and flag of the help is in them, and the shells that are here read them.

use std::collections::BTreeSet;
use std::process::Command;

use crate::support::Topo;

const SHELLS: [&str; 4] = ["bash", "zsh", "fish", "powershell"];

/// The commands that the help lists.
fn commands() -> Vec<String> {
    let help = Topo::offline().run(["--help"]).expect_code(0).stdout;
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<String> = names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(names.len() >= 8, "{names:?}");
    names.into_iter().filter(|name| name != "help").collect()
}

/// The long flags of a command, without their dashes.
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
        let topo = Topo::offline().env("TOPO_VAR", "TOKEN=secret");
        let script = topo.run(["completions", shell]).expect_code(0).expect_no_text("secret").stdout;
        for word in commands().iter().chain(&flags) {
            assert!(script.contains(word.as_str()), "{shell} knows no {word}");
        }
        assert!(script.contains("ifEmpty") || script.contains("markdown"), "{shell} knows no value");
    }
    Topo::offline().run(["completions", "tcsh"]).expect_code(64).expect_text("powershell");
}

/// bash is everywhere; the others are asked where they are.
#[test]
fn shells_read_their_completions() {
    for shell in ["bash", "zsh", "fish"] {
        let is_here = Command::new(shell).arg("--version").output().is_ok_and(|output| output.status.success());
        assert!(is_here || shell != "bash");
        if !is_here {
            continue;
        }
        let topo = Topo::offline();
        topo.write("script", &topo.run(["completions", shell]).expect_code(0).stdout);
        let read = Command::new(shell).arg("-n").arg(topo.path("script")).output().unwrap();
        assert!(read.status.success(), "{shell}: {}", String::from_utf8_lossy(&read.stderr));
    }
    // The function itself, asked as bash asks it.
    let topo = Topo::offline();
    topo.write("script", &topo.run(["completions", "bash"]).expect_code(0).stdout);
    let asked = r#"source "$0"; COMP_WORDS=(topo validate --format g); COMP_CWORD=3; _topo topo g --format; echo "${COMPREPLY[@]}""#;
    let output = Command::new("bash").args(["-c", asked]).arg(topo.path("script")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "github", "{output:?}");
}

#[test]
fn man_pages_have_every_flag() {
    let topo = Topo::offline();
    topo.run(["man"]).expect_code(0).expect_text(".TH topo 1").expect_text("Exit codes");
    topo.run(["man", "pages/man1"]).expect_code(0).expect_no_result();
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
