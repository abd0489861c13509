//! Runs the steps of `action.yml` as GitHub's runner does: each script is unchanged, with its environment and the
//! outputs of earlier steps.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::github::{GitHub, REPOSITORY, TOKEN};
use crate::support::{Vhost, child, temp_dir};

/// A job of a workflow that uses the Action.
pub(super) struct Job {
    folder: TempDir,
    action: Value,
    github: GitHub,
    environment: BTreeMap<String, String>,
    /// The folder of a topo binary that is on the PATH from the start.
    programs: Option<PathBuf>,
    /// The repository of the Action, as the runner reports it; empty for `uses: ./`.
    repository: &'static str,
}

/// The outputs of the steps.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) log: String,
    pub(super) outputs: BTreeMap<String, String>,
    pub(super) summary: String,
}

impl Job {
    /// Returns a job for this vhost, with the event of pull request 7.
    pub(super) fn new(github: &GitHub, vhost: &Vhost<'_>) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let action = serde_yaml::from_str(&fs::read_to_string(root.join("action.yml")).unwrap()).unwrap();
        let folder = temp_dir::folder();
        for name in ["workspace", "temporary", "home"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let path = |name: &str| folder.path().join(name).display().to_string();
        let environment = [
            ("HOME", path("home")),
            ("LANG", "C.UTF-8".to_owned()),
            ("GITHUB_ACTION_PATH", root.display().to_string()),
            ("GITHUB_API_URL", format!("{}/api", github.url())),
            ("GITHUB_SERVER_URL", github.url()),
            ("GITHUB_REPOSITORY", REPOSITORY.to_owned()),
            ("GITHUB_RUN_ID", "42".to_owned()),
            ("GITHUB_REF_NAME", "main".to_owned()),
            ("GITHUB_REF_TYPE", "branch".to_owned()),
            ("GITHUB_SHA", "c0ffee0000000000".to_owned()),
            ("GITHUB_EVENT_PATH", path("event.json")),
            ("GITHUB_WORKSPACE", path("workspace")),
            ("RUNNER_TEMP", path("temporary")),
            ("RUNNER_OS", "Linux".to_owned()),
            ("RUNNER_ARCH", "X64".to_owned()),
            // The environment of the workflow, which empty inputs do not override.
            ("TOPO_URL", vhost.node().url()),
            ("TOPO_USERNAME", "guest".to_owned()),
        ];
        let environment = environment.into_iter().chain(vhost.node().intervals());
        let environment = environment.map(|(name, value)| (name.to_owned(), value)).collect();
        let programs = Path::new(env!("CARGO_BIN_EXE_topo")).parent().map(Path::to_owned);
        let job = Self { folder, action, github: github.clone(), environment, programs, repository: "people/topo" };
        job.event(&json!({ "pull_request": {"number": 7, "head": {"sha": "badcafe111111111"}} }));
        job
    }

    pub(super) fn without_topo(mut self) -> Self {
        self.programs = None;
        self
    }

    /// Replaces topo with a script that can run the binary under test as `$TOPO`.
    pub(super) fn stand_in(mut self, script: &str) -> Self {
        let programs = self.folder.path().join("stand-in");
        fs::create_dir(&programs).unwrap();
        let topo = programs.join("topo");
        fs::write(&topo, format!("#!/bin/bash\nTOPO={}\n{script}", env!("CARGO_BIN_EXE_topo"))).unwrap();
        fs::set_permissions(&topo, fs::Permissions::from_mode(0o755)).unwrap();
        self.programs = Some(programs);
        self
    }

    /// Sets the repository of the Action, which is empty for `uses: ./`.
    pub(super) fn of(mut self, repository: &'static str) -> Self {
        self.repository = repository;
        self
    }

    pub(super) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(super) fn event(&self, event: &Value) {
        fs::write(self.folder.path().join("event.json"), event.to_string()).unwrap();
    }

    /// Writes a file of the checked-out repository.
    pub(super) fn file(&self, name: &str, content: &str) {
        let path = self.workspace().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// Removes a file that a step wrote, and returns its text.
    pub(super) fn take(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(path).unwrap();
        text
    }

    /// Runs `uses: …` with these inputs.
    pub(super) fn uses(&self, with: &[(&str, &str)]) -> Ran {
        for (name, _) in with {
            assert!(!self.action["inputs"][name].is_null(), "the Action has no input `{name}`");
        }
        let mut ran = Ran { code: 0, log: String::new(), outputs: BTreeMap::new(), summary: String::new() };
        let mut path = "/usr/bin:/bin".to_owned();
        if let Some(programs) = &self.programs {
            path = format!("{}:{path}", programs.display());
        }
        for step in self.action["runs"]["steps"].as_array().unwrap() {
            let [output, summary, added] = ["output", "summary", "path"].map(|name| self.folder.path().join(name));
            for file in [&output, &summary, &added] {
                fs::write(file, "").unwrap();
            }
            let script = self.folder.path().join("script.sh");
            fs::write(&script, step["run"].as_str().unwrap()).unwrap();
            let given = step["env"].as_object().unwrap();
            let given = given.iter().map(|(name, value)| (name, self.expression(value.as_str().unwrap(), with)));
            // Uses the bash command line of the runner. Both streams go into the log, in order.
            let done = child("bash")
                .args(["-c", "exec bash --noprofile --norc -eo pipefail \"$0\" 2>&1"])
                .arg(&script)
                .current_dir(self.workspace())
                .env_clear()
                .envs(&self.environment)
                .env("PATH", &path)
                .env("GITHUB_OUTPUT", &output)
                .env("GITHUB_STEP_SUMMARY", &summary)
                .env("GITHUB_PATH", &added)
                .envs(given)
                .output()
                .unwrap();
            ran.log += &String::from_utf8_lossy(&done.stdout);
            ran.summary += &fs::read_to_string(&summary).unwrap();
            for line in fs::read_to_string(&output).unwrap().lines() {
                let (name, value) = line.split_once('=').unwrap();
                ran.outputs.insert(name.to_owned(), value.to_owned());
            }
            for line in fs::read_to_string(&added).unwrap().lines() {
                path = format!("{line}:{path}");
            }
            ran.code = done.status.code().unwrap();
            if ran.code != 0 {
                break;
            }
        }
        // Every declared output exists, and none contains a secret.
        for name in ran.outputs.keys() {
            let expected = format!("${{{{ steps.run.outputs.{name} }}}}");
            assert_eq!(self.action["outputs"][name]["value"], expected, "an unexpected output");
        }
        for text in [&ran.log, &ran.summary] {
            assert!(!text.contains(TOKEN), "{ran:#?}");
        }
        ran
    }

    /// Evaluates the expressions that the file uses, and fails for any other expression.
    fn expression(&self, text: &str, with: &[(&str, &str)]) -> String {
        let inside = text.strip_prefix("${{ ").and_then(|text| text.strip_suffix(" }}"));
        let inside = inside.unwrap_or_else(|| panic!("`{text}` is not an expression"));
        match inside.split_once('.').unwrap() {
            ("inputs", name) => match with.iter().find(|(given, _)| *given == name) {
                Some((_, value)) => (*value).to_owned(),
                None => match self.action["inputs"][name]["default"].as_str() {
                    Some("${{ github.token }}") => TOKEN.to_owned(),
                    Some(default) => default.to_owned(),
                    None => panic!("input `{name}` is required"),
                },
            },
            ("github", "action_repository") => self.repository.to_owned(),
            (_, _) => panic!("unsupported expression `{text}`"),
        }
    }

    pub(super) fn github(&self) -> &GitHub {
        &self.github
    }
}

impl Ran {
    #[track_caller]
    pub(super) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    #[track_caller]
    pub(super) fn expect_log(self, text: &str) -> Self {
        assert!(self.log.contains(text), "expected `{text}`: {self:#?}");
        self
    }

    pub(super) fn output(&self, name: &str) -> &str {
        self.outputs.get(name).map_or("", String::as_str)
    }
}
