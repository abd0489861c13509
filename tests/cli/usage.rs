//! Tests the command line: usage errors, help, the sources of specs, and output streams.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use crate::support::{Output, Topo};

const SPEC: &str = "queues: {orders: {type: classic}}\n";

fn topo() -> Topo {
    Topo::offline().spec(SPEC)
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Returns a shell in which `topo` is the binary under test.
fn shell(script: &str) -> Output {
    let script = script.replace("topo ", &format!("{} ", env!("CARGO_BIN_EXE_topo")));
    Topo::of(Path::new("/bin/bash")).spec(SPEC).run(["-c", &script])
}

#[test]
fn usage_errors_exit_with_64_and_one_sentence() {
    for (line, expected) in [
        ("status --all", "--vhost <NAME>"),
        ("status --vhost v --all topology.yaml", "cannot be used with"),
        ("status --vhost v --all --var A=b", "cannot be used with"),
        ("status --watch=soon", "use, for example, 500ms, 30s or 5m"),
        ("status --watch=0s", "must be greater than zero"),
        ("status --vhost other", "no spec declares vhost `other`"),
        ("status --password secret", "a password cannot be passed as an argument"),
        ("plan --nope", "unexpected argument '--nope'"),
        ("plann", "unrecognized subcommand 'plann'"),
        ("plan --timeout soon", "use, for example, 500ms, 30s or 5m"),
        ("plan --timeout 5x", "use, for example, 500ms, 30s or 5m"),
        ("plan --timeout 0s", "must be greater than zero"),
        ("apply -y --lock-timeout soon", "use, for example, 500ms, 30s or 5m"),
        ("plan --allow danger", "`danger` is not a hazard"),
        ("plan --recreate orders", "expected ADDRESS=ifEmpty"),
        ("plan --recreate queues/v/orders=burn", "`burn` is not one of"),
        ("plan --recreate orders=discard", "--recreate"),
        ("plan --recreate queues/v/q=ifEmpty --recreate queues/v/q=migrate", "is set twice: =ifEmpty and =migrate"),
        ("plan --target orders", "use the form queues/VHOST/NAME"),
        ("plan --prune=people", "`people` cannot be pruned"),
        ("plan --format xml", "invalid value 'xml'"),
        ("plan --var novalue", "expected NAME=VALUE"),
        ("plan --broker-version 4.0", "--against"),
        ("plan --against empty --broker-version four", "is not a RabbitMQ version"),
        ("plan --url amqp://localhost", "must start with http:// or https://"),
        ("plan --url localhost:15672", "must start with http:// or https://"),
        ("plan --url http://", "the URL is malformed"),
        ("plan --vhost other --against empty", "no spec declares vhost `other`"),
        ("plan --against missing.json", "cannot read missing.json"),
        ("plan --password secret", "a password cannot be passed as an argument"),
        ("plan --password=secret", "a password cannot be passed as an argument"),
        ("plan -p secret --against empty", "a password cannot be passed as an argument"),
        ("apply", "no terminal is available to ask for confirmation"),
        ("apply --abort queues/shop/orders", "topo apply --abort queues/shop/orders --yes"),
        ("apply --plan p.json --prune", "cannot be used with"),
        ("apply --plan p.json topology.yaml", "cannot be used with"),
        ("apply --plan p.json --lint no-dead-letter=off", "'--plan <FILE>' cannot be used with '--lint <RULE=LEVEL>'"),
        ("apply --plan p.json --fail-on warning", "'--plan <FILE>' cannot be used with '--fail-on <LEVEL>'"),
        ("apply --abort queues/shop/orders --fail-on error", "cannot be used with"),
        ("apply -y --lint no-such-rule=off", "`no-such-rule` is not a rule"),
        ("-q -v plan", "cannot be used with"),
        ("plan --color sometimes", "invalid value 'sometimes'"),
        ("apply -y --lock-name=", "a value is required"),
        ("destroy", "no command that deletes all objects in a spec"),
        ("-V", "unexpected argument '-V'"),
    ] {
        let output = topo().run(words(line)).expect_code(64).expect_no_result().expect_no_text("secret");
        output.expect_error("").expect_text(expected);
    }
}

#[test]
fn usage_errors_print_one_usage_line_of_their_command() {
    for (line, usage) in [
        ("plan --no-such-flag", "topo plan [OPTIONS] [FILE|DIR]..."),
        ("plan --allow nothing", "topo plan [OPTIONS] [FILE|DIR]..."),
        ("apply --plan p.json --prune", "topo apply [OPTIONS] [FILE|DIR]..."),
        ("apply --plan p.json topology.yaml", "topo apply [OPTIONS] [FILE|DIR]..."),
        ("-q -v plan", "topo plan [OPTIONS] [FILE|DIR]..."),
        ("explain", "topo explain [OPTIONS] <QUEUE|RULE|HAZARD|KEY|WORD> [FILE|DIR]..."),
        ("no-such-command", "topo [OPTIONS] <COMMAND>"),
    ] {
        let output = topo().run(words(line)).expect_code(64).expect_no_result();
        let lines: Vec<&str> = output.stderr.lines().filter_map(|line| line.strip_prefix("Usage: ")).collect();
        assert_eq!(lines, [usage], "{line}: {output}");
    }
}

#[test]
fn missing_command_prints_usage() {
    let output = Topo::offline().run([]).expect_code(64).expect_no_result();
    output.expect_text("Usage: topo").expect_text("A first run");
}

#[test]
fn help_fits_the_screen_and_explains_every_flag() {
    for columns in [60, 80, 120] {
        for line in [
            "--help",
            "-h",
            "plan --help",
            "plan -h",
            "apply --help",
            "apply -h",
            "show -h",
            "lock -h",
            "validate -h",
            "schema -h",
            "contract -h",
            "graph -h",
            "explain -h",
            "rules -h",
            "completions -h",
            "man -h",
        ] {
            let output = topo().env("COLUMNS", &columns.to_string()).run(words(line)).expect_code(0);
            assert!(output.stderr.is_empty(), "{output}");
            if columns >= 80 {
                let long = output.stdout.lines().find(|line| line.chars().count() > columns);
                assert!(long.is_none(), "{line} at {columns}: {long:?}");
            }
        }
    }
    // The description of a flag is next to the flag or on the next line.
    for command in [
        "plan",
        "apply",
        "show",
        "lock",
        "validate",
        "contract",
        "explain",
        "graph",
        "rules",
        "schema",
        "completions",
        "man",
    ] {
        let output = topo().env("COLUMNS", "80").run([command, "--help"]).expect_code(0);
        let lines: Vec<&str> = output.stdout.lines().collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.trim_start().starts_with('-')) {
            let below = lines.get(index + 1).is_some_and(|next| next.starts_with("          "));
            assert!(line.starts_with("          - ") || below, "{command}: {line}");
        }
    }
}

#[test]
fn main_help_lists_all_exit_codes_unwrapped() {
    let output = topo().env("COLUMNS", "80").run(["--help"]).expect_code(0);
    for code in ["0", "1", "2", "3", "4", "5", "6", "64", "65", "130"] {
        let line = output.stdout.lines().find(|line| words(line).first() == Some(&code));
        assert!(line.is_some_and(|line| line.len() > 10), "{code}: {output}");
    }
    for name in ["TOPO_URL", "RABBITMQADMIN_BASE_URI", "TOPO_PASSWORD", "topo apply topology.yaml"] {
        assert!(output.stdout.contains(name), "{name}: {output}");
    }
    let version = topo().run(["--version"]).expect_code(0);
    assert!(version.stdout.starts_with(&format!("topo {}", env!("CARGO_PKG_VERSION"))), "{version}");
}

#[test]
fn invalid_spec_exits_with_65_for_every_command() {
    let topo = Topo::offline().spec("queues: {orders: {type: clasic}}\n");
    for line in
        ["plan", "plan --against empty", "plan --format json", "apply --yes", "apply --yes --format json", "validate"]
    {
        let output = topo.run(words(line)).expect_code(65).expect_no_result();
        let output = output.expect_text("error[wrong-value]: `type` cannot be `clasic`");
        output.expect_text("topology.yaml:3:").expect_text("did you mean `classic`?");
    }
    // The JSON output contains the errors.
    let output = topo.run(["validate", "--format", "json"]).expect_code(65);
    let found: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(found["diagnostics"][0]["at"]["line"], 3, "{output}");
    let output = topo.run(["validate", "--format", "github"]).expect_code(65);
    assert!(output.stdout.starts_with("::error file=topology.yaml,line=3,col="), "{output}");
    // Without errors, the JSON output is an empty list.
    topo.rewrite(SPEC);
    let output = topo.run(["validate", "--format", "json"]).expect_code(0);
    let found: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(found["diagnostics"], serde_json::json!([]));
    assert_eq!(topo.run(["validate", "--format", "github"]).expect_code(0).stdout, "");
}

#[test]
fn unusable_files_exit_with_65() {
    let topo = Topo::offline().file("empty.yaml", "").file("blank.yaml", "\n# nothing\n").file("folder/readme.md", "");
    std::fs::write(topo.path("latin.yaml"), b"version: 1\nvhost: \"caf\xe9\"\n").unwrap();
    std::fs::write(topo.path("binary.yaml"), b"\0\x01\x02").unwrap();
    for (file, expected) in [
        ("missing.yaml", "cannot read missing.yaml"),
        ("empty.yaml", "is empty"),
        ("blank.yaml", "is empty"),
        ("folder", "no .yaml or .yml file in folder"),
        ("latin.yaml", "`latin.yaml` is not UTF-8"),
        ("binary.yaml", "binary.yaml:1:1"),
    ] {
        for line in ["plan", "apply --yes", "validate", "plan --against empty"] {
            let output = topo.run(words(line).into_iter().chain([file])).expect_code(65).expect_no_result();
            output.expect_text(expected);
        }
    }
    topo.write("secret.yaml", SPEC);
    std::fs::set_permissions(topo.path("secret.yaml"), std::fs::Permissions::from_mode(0o000)).unwrap();
    // Root can read every file.
    if std::fs::read(topo.path("secret.yaml")).is_err() {
        topo.run(["validate", "secret.yaml"]).expect_code(65).expect_error("cannot read secret.yaml");
    }
}

#[test]
fn missing_spec_lists_the_searched_paths() {
    let output = Topo::offline().run(["plan"]).expect_code(64).expect_no_result();
    output
        .expect_error("the current directory contains neither topology.yaml nor topology/")
        .expect_text("hint: specify one: topo plan FILE");
}

#[test]
fn specs_come_from_files_folders_and_standard_input() {
    let counted = |output: Output, expected: &str| drop(output.expect_code(0).expect_text(expected));
    // At the default paths, the file takes precedence over the folder.
    let topo = Topo::offline().file("topology/a.yaml", "version: 1\nvhost: a\nqueues: {q: {type: classic}}\n");
    topo.write("topology/deep/b.yml", "version: 1\nvhost: b\n");
    topo.write("topology/.hidden.yaml", "not: [a spec");
    topo.write("topology/notes.txt", "not: [a spec");
    counted(topo.run(["validate"]), "topology: vhost b: ");
    topo.write("topology.yaml", "version: 1\nvhost: c\n");
    counted(topo.run(["validate"]), "topology.yaml: vhost c: ");
    // Several specs, as an argument and as a flag.
    counted(topo.run(["validate", "topology/a.yaml", "-f", "topology.yaml"]), "vhost a: 0 exchanges, 1 queue,");
    let output = topo.run(["plan", "--against", "empty", "--vhost", "b", "topology"]).expect_code(0);
    output.expect_text("+ vhost b").expect_no_text("vhost a");
    // topo uses the environment variable only if there are no arguments.
    let topo = topo.env("TOPO_FILE", "topology/a.yaml");
    counted(topo.run(["validate"]), "topology/a.yaml: vhost a: ");
    topo.run(["validate", "topology.yaml"]).expect_code(0).expect_no_text("vhost a");
    topo.run(["apply", "--plan", "missing.json"]).expect_code(65).expect_error("cannot read missing.json");
    // The spec comes from standard input.
    let topo = Topo::offline().input("version: 1\nvhost: typed\nqueues: {q: {type: clasic}}\n");
    topo.run(["validate", "-"]).expect_code(65).expect_text("<stdin>:3:");
    let topo = Topo::offline().input("version: 1\nvhost: typed\n");
    counted(topo.run(["plan", "--against", "empty", "-f", "-"]), "+ vhost typed");
}

#[test]
fn variables_come_from_flags_files_and_the_environment() {
    let topo = Topo::offline().spec("version: 1\nvhost: ${SHOP}\n").file("vars", "# who\nSHOP=from-file\n");
    let output = topo.run(["validate"]).expect_code(65).expect_no_result();
    output.expect_text("SHOP");
    let topo = topo.env("SHOP", "from-process");
    let output = topo.run(["validate"]).expect_code(65).expect_no_text("from-process");
    output.expect_text("the variable `SHOP` is not set").expect_text("TOPO_VAR_SHOP");
    let topo = topo.env("TOPO_VAR_SHOP", "from-environment");
    topo.run(["validate"]).expect_code(0).expect_text("vhost from-environment:");
    topo.run(["validate", "--var-file", "vars"]).expect_code(0).expect_text("vhost from-file:");
    let both = ["validate", "--var-file", "vars", "--var", "SHOP=from-flag"];
    topo.run(both).expect_code(0).expect_text("vhost from-flag:");
    topo.write("vars", "SHOP: a\n");
    topo.run(both).expect_code(64).expect_error("vars:1: expected NAME=VALUE").expect_text("not YAML");
    topo.write("vars", "SHOP\n");
    topo.run(both).expect_code(64).expect_error("vars:1: expected NAME=VALUE");
    topo.run(["validate", "--var-file", "missing"]).expect_code(65).expect_error("cannot read missing");
    // Values that a shell would parse differently, and lines that set no variable.
    for (line, error, hint) in [
        ("export SHOP=a", "vars:1: variable names cannot contain spaces", "write SHOP=a"),
        ("SHOP=\"a\"", "vars:1: the quotes would be part of the value", "write SHOP=a"),
        ("SHOP='a'", "vars:1: the quotes would be part of the value", "write SHOP=a"),
    ] {
        topo.write("vars", line);
        topo.run(["validate", "--var-file", "vars"]).expect_code(64).expect_error(error).expect_text(hint);
    }
    let typo = topo.run(["validate", "--var", "SHPO=a"]).expect_code(64);
    typo.expect_error("--var sets `SHPO`, but no spec uses this variable").expect_text("did you mean `SHOP`?");
    topo.env("TOPO_VAR", "OTHER=a").run(["validate"]).expect_code(0);
}

#[test]
fn spec_cannot_read_secrets_of_the_process() {
    for name in ["TOPO_PASSWORD", "INPUT_GITHUB_TOKEN", "HOME", "VAR_X", "FILE"] {
        let topo =
            Topo::offline().spec(&format!("version: 1\nvhost: v\nqueues: {{\"${{{name}}}\": {{type: classic}}}}\n"));
        let topo = topo.env("TOPO_PASSWORD", "hush").env("INPUT_GITHUB_TOKEN", "hush").env("VAR_X", "hush");
        for line in [["validate", "topology.yaml", "-v"], ["plan", "--against", "empty"]] {
            let output = topo.run(line).expect_code(65).expect_no_text("hush");
            output.expect_text(&format!("the variable `{name}` is not set"));
        }
    }
    let spec = "version: 1\nvhost: v\nqueues: {\"${FILE}\": {type: classic}}\n";
    let topo = Topo::offline().spec(spec).file("vars", "FILE=a\n").env("TOPO_VAR_FILE", "vars");
    topo.run(["validate"]).expect_code(0);
}

#[test]
fn symbolic_links_out_of_the_folder_are_refused_unread() {
    let valid = "version: 1\nvhost: v\nqueues: {q: {type: classic}}\n";
    let topo = Topo::offline().file("secrets", "password: hush\n").file("outside/o.yaml", valid);
    let topo =
        topo.file("specs/a.yaml", valid).file("specs/below/b.yaml", "version: 1\nvhost: w\n").env("SECRET", "hush");
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, topo.path(name)).unwrap();
    for target in ["/proc/self/environ", "../../secrets", "../../outside/o.yaml"] {
        link(target, "specs/below/link.yaml");
        for line in [["validate", "specs"], ["validate", "specs/below/link.yaml"]] {
            let output = topo.run(line).expect_code(65).expect_no_result().expect_no_text("hush");
            output.expect_error("specs/below/link.yaml is a symbolic link").expect_text("specify the target itself");
        }
        std::fs::remove_file(topo.path("specs/below/link.yaml")).unwrap();
    }
    // A link to a folder, inside the path or at its end.
    link("/proc", "topology");
    topo.run(["validate"]).expect_code(65).expect_error("topology is a symbolic link");
    for name in ["topology/", "./topology/", "topology/."] {
        topo.run(["validate", name]).expect_code(65).expect_error("topology is a symbolic link");
    }
    topo.run(["validate", "topology/self/environ"]).expect_code(65).expect_error("topology is a symbolic link");
    // A trailing slash makes the system follow a link, and so does a link in the middle of an absolute path.
    std::fs::remove_file(topo.path("topology")).unwrap();
    topo.write("outside/o.yaml", "secret: hush\n");
    link("../outside", "specs/topology");
    let absolute = topo.path("specs/topology").display().to_string();
    let paths = ["specs/topology/", "./specs/topology/", "specs/topology/.", "specs/below/../topology//"];
    let absolute =
        [absolute.clone(), format!("{absolute}/"), format!("{absolute}/o.yaml"), format!("{absolute}/./o.yaml")];
    for path in paths.into_iter().chain(absolute.iter().map(String::as_str)) {
        let output = topo.run(["validate", path]).expect_code(65).expect_no_result().expect_no_text("hush");
        output.expect_error("topology is a symbolic link to a target outside its directory");
    }
    topo.write("outside/o.yaml", valid);
    // topo accepts links inside the folder, as in mounted configuration maps, and pipes of the shell.
    link("../a.yaml", "specs/below/link.yaml");
    link("specs", "inside");
    topo.run(["validate", "specs"]).expect_code(0);
    topo.run(["validate", "inside/a.yaml"]).expect_code(0);
    shell("topo validate <(cat topology.yaml)").expect_code(0);
}

/// A pull request could replace a variable file with a link to a secret, and use the secret as the name of a queue.
#[test]
fn variable_files_are_regular_files_inside_their_directory() {
    let spec = "version: 1\nvhost: v\nqueues: {\"${SHOP}\": {type: classic}}\n";
    let topo = Topo::offline().file("topology.yaml", spec).env("SECRET", "hush").env("SHOP", "hush");
    let topo = topo.file("outside/vars", "SHOP=hush\n").file("deploy/vars", "SHOP=inside\n");
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, topo.path(name)).unwrap();
    link("/proc/self/environ", "environ.vars");
    link("../outside/vars", "deploy/other.vars");
    link("../outside", "deploy/below");
    let refused = |path: &str, error: &str| {
        let output = topo.run(["validate", "--var-file", path]).expect_code(65).expect_no_result();
        output.expect_no_text("hush").expect_error(error);
    };
    refused("environ.vars", "environ.vars is a symbolic link to a target outside its directory");
    refused("deploy/other.vars", "deploy/other.vars is a symbolic link to a target outside its directory");
    refused("deploy/below/vars", "deploy/below is a symbolic link to a target outside its directory");
    refused(&topo.path("deploy/below/vars").display().to_string(), "deploy/below is a symbolic link");
    refused("/proc/self/environ", "/proc/self/environ is not a regular file");
    refused("deploy", "deploy is not a regular file");
    topo.write("nul.vars", "SHOP=a\0SECRET=hush\n");
    refused("nul.vars", "nul.vars:1: the line contains a NUL character");
    // topo accepts a link inside the folder, as in mounted configuration maps, and a pipe of the shell.
    link("vars", "deploy/linked.vars");
    topo.run(["validate", "--var-file", "deploy/linked.vars"]).expect_code(0);
    shell("topo validate --var-file <(echo SHOP=piped)").expect_code(0);
}

#[test]
fn repeated_paths_are_read_once() {
    let topo = topo().file("more/a.yaml", "version: 1\nvhost: more\nqueues: {q: {type: classic}}\n");
    topo.run(["validate", "topology.yaml", "./topology.yaml"]).expect_code(0);
    topo.run(["validate", "more/a.yaml", "more", "more/../more"]).expect_code(0).expect_text("1 queue");
    let topo = topo.input("version: 1\nvhost: typed\n");
    topo.run(["validate", "-", "-"]).expect_code(0).expect_text("<stdin> <stdin>: vhost typed:");
}

#[test]
fn command_without_a_spec_suggests_an_argument() {
    for (line, command) in [("validate", "validate"), ("plan", "plan"), ("apply -y", "apply"), ("contract", "contract")]
    {
        let output = Topo::offline().run(words(line)).expect_code(64);
        output.expect_text(&format!("specify one: topo {command} FILE"));
    }
}

#[test]
fn several_levels_fit_into_the_environment() {
    let topo = topo().env("TOPO_LINT", "unbounded-queue=error,no-dead-letter=off");
    topo.run(["validate"]).expect_code(1).expect_text("error[unbounded-queue]").expect_no_text("[no-dead-letter]");
    // Arguments take precedence, even over variables that exclude them.
    let topo = topo.env("TOPO_FAIL_ON", "warning");
    topo.run(["apply", "--plan", "missing.json"]).expect_code(65).expect_error("cannot read missing.json");
    let topo = topo.env("TOPO_PLAN", "missing.json");
    let not_there = topo.run(["apply", "--yes", "--fail-on", "info", "--url", "http://127.0.0.1:1", "--timeout", "1s"]);
    not_there.expect_code(1).expect_no_text("missing.json");
}

#[test]
fn boolean_variables_accept_common_values() {
    for (value, loud) in [("1", false), ("true", false), ("yes", false), ("0", true), ("false", true), ("", true)] {
        let output = topo().env("TOPO_QUIET", value).run(["validate"]).expect_code(0);
        assert_eq!(output.stdout.contains("Valid."), loud, "{value}: {output}");
    }
    // Arguments take precedence, even over variables that exclude them.
    let output = topo().env("TOPO_QUIET", "1").run(["-v", "validate"]).expect_code(0);
    output.expect_text("Valid.");
    topo().env("TOPO_QUIET", "perhaps").run(["validate"]).expect_code(64).expect_error("'perhaps'");
}

#[test]
fn closed_pipe_ends_the_run_silently() {
    for line in ["topo schema", "topo schema --kind plan", "topo plan --against empty --format json", "topo --help"] {
        let output = shell(&format!("set -o pipefail; {line} | head -1")).expect_code(0);
        assert!(output.stdout.lines().count() == 1 && output.stderr.is_empty(), "{output}");
        let output = shell(&format!("{line} | (exec 0<&-); echo \"${{PIPESTATUS[0]}}\"")).expect_code(0);
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("0\n", ""), "{output}");
    }
    // A full disk causes an error.
    if Path::new("/dev/full").exists() {
        shell("topo schema >/dev/full").expect_code(1).expect_error("cannot write to standard output");
    }
}

#[test]
fn color_follows_the_flags_and_the_terminal() {
    let colored = |topo: &Topo, arguments: &[&str]| {
        let output =
            topo.run(["plan", "--against", "empty"].into_iter().chain(arguments.iter().copied())).expect_code(0);
        output.stdout.contains('\u{1b}')
    };
    assert!(!colored(&topo(), &[]));
    assert!(colored(&topo(), &["--color", "always"]));
    assert!(colored(&topo().env("CLICOLOR_FORCE", "1"), &[]));
    assert!(colored(&topo().env("TOPO_COLOR", "always"), &[]));
    assert!(!colored(&topo().env("CLICOLOR_FORCE", "1"), &["--color", "never"]));
    assert!(!colored(&topo().env("NO_COLOR", "1"), &[]));
    for format in ["json", "markdown", "github"] {
        assert!(!colored(&topo(), &["--color", "always", "--format", format]), "{format}");
    }
    let wrong = Topo::offline().spec("queues: {orders: {type: clasic}}\n");
    assert!(wrong.run(["validate", "--color", "always"]).expect_code(65).stderr.contains('\u{1b}'));
    assert!(!wrong.run(["validate"]).expect_code(65).stderr.contains('\u{1b}'));
}

#[test]
fn plan_fits_the_screen() {
    let name = "a.rather.long.name.for.a.queue";
    let topo = Topo::offline().spec(&format!(
        "exchanges: {{orders: {{type: topic}}}}\nqueues: {{{name}: {{type: quorum, messageTtl: 30s, maxLength: 1000}}}}\n\
         bindings: [{{source: orders, destination: {name}, routingKey: 'order.created.#'}}]\n"
    ));
    for columns in [60, 80, 120] {
        let topo = Topo::offline().env("COLUMNS", &columns.to_string()).spec(&topo.read("topology.yaml"));
        let output = topo.run(["plan", "--against", "empty"]).expect_code(0);
        // The summary is a single line at any width, because scripts search for it.
        let mut lines = output.stdout.lines().filter(|line| !line.starts_with("Plan: "));
        assert!(lines.all(|line| line.chars().count() <= columns), "at {columns}: {output}");
    }
}

#[test]
fn twenty_thousand_queues_are_planned() {
    let queues: String = (0..20_000).map(|n| format!("  queue.{n}: {{type: classic, messageTtl: 30s}}\n")).collect();
    let topo = Topo::offline().spec(&format!("queues:\n{queues}")).timeout(Duration::from_secs(120));
    let output = topo.run(["plan", "--against", "empty", "--format", "github"]).expect_code(0);
    assert!(output.stdout.contains("Plan: 20,001 objects"), "{}", &output.stdout[output.stdout.len() - 200..]);
}
