//! Reads the values of spec variables from `TOPO_VAR_NAME`, from the selected environment in the specs, from files of
//! `NAME=VALUE` lines, and from flags.

use super::arguments::SpecArguments;
use super::failure::Failure;
use super::files::{is_shell_pipe, read_failure, refuse_unsafe_links};
use crate::spec::{Environment, SourceFile, Variables, closest};
use std::path::Path;

/// The prefix of environment variables that set a spec variable. Specs cannot read other environment variables.
/// Otherwise, a spec could publish one of the process's secrets as a queue name.
const PREFIX: &str = "TOPO_VAR_";
/// The suffix of `TOPO_VAR_FILE`, which sets `--var-file` rather than a spec variable.
const NOT_A_VALUE: &str = "FILE";

/// Reads all variables. Flags take precedence over files, files over the selected environment in the specs, and the
/// selected environment over the process's environment variables.
pub(super) fn variables(arguments: &SpecArguments, selected: Option<&Environment>) -> Result<Variables, Failure> {
    let mut variables = Variables::new();
    for (name, value) in std::env::vars_os() {
        if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string())
            && let Some(name) = name.strip_prefix(PREFIX).filter(|name| !name.is_empty() && *name != NOT_A_VALUE)
        {
            variables.set(name, value);
        }
    }
    for (name, value) in selected.iter().flat_map(|environment| &environment.variables) {
        variables.set(name, &value.value);
    }
    for path in &arguments.var_file {
        let text = read(path)?;
        for (index, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = parse_line(line).map_err(|wrong| wrong.at(path, index))?;
            variables.set(name, value);
        }
    }
    for (name, value) in &arguments.variables {
        variables.set(name, value);
    }
    Ok(variables)
}

/// Reads a variable file. Refuses kernel files, and links to targets outside the link's directory, because both can
/// expose secrets. For example, a pull request could replace the file with a link and publish a secret as a queue name.
fn read(path: &Path) -> Result<String, Failure> {
    refuse_unsafe_links(path)?;
    let is_kernel_file = path.canonicalize().is_ok_and(|path| path.starts_with("/proc") || path.starts_with("/sys"));
    let is_regular = path.is_file() && !is_kernel_file;
    if path.exists() && !is_regular && !is_shell_pipe(path) {
        return Err(Failure::spec(format!("{} is not a regular file", path.display()))
            .hint("specify a file of NAME=VALUE lines, or a process substitution: --var-file <(COMMAND)"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| read_failure(path, &error))?;
    match text.lines().position(|line| line.contains('\0')) {
        Some(index) => {
            Err(Failure::spec(format!("{}:{}: the line contains a NUL character", path.display(), index + 1)))
        }
        None => Ok(text),
    }
}

/// The error for a line in a variable file.
struct LineError {
    message: &'static str,
    hint: Option<String>,
}

impl LineError {
    fn at(self, path: &Path, line: usize) -> Failure {
        let failure = Failure::usage(format!("{}:{line}: {}", path.display(), self.message));
        match self.hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Parses a line literally. Refuses `export NAME=VALUE` and quoted values, because the shell syntax would silently
/// become part of the name or the value.
fn parse_line(line: &str) -> Result<(&str, &str), LineError> {
    let written = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    let Some((name, value)) = written.filter(|(name, _)| !name.is_empty()) else {
        let hint = line.contains(':').then(|| "a variable file consists of NAME=VALUE lines, not YAML".to_owned());
        return Err(LineError { message: "expected NAME=VALUE", hint });
    };
    if name.contains(char::is_whitespace) {
        let last = name.split_whitespace().last().unwrap_or_default();
        let hint = Some(format!("write {last}={value}"));
        return Err(LineError {
            message: "variable names cannot contain spaces; a variable file is not a shell script",
            hint,
        });
    }
    let inner = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
    match inner {
        Some(inner) => {
            let hint = Some(format!("write {name}={inner}"));
            Err(LineError {
                message: "the quotes would be part of the value; a variable file is not a shell script",
                hint,
            })
        }
        None => Ok((name, value)),
    }
}

/// Refuses `--var` flags for variables that no spec uses. Otherwise, a typo would silently select the default.
/// Environment variables and variable files are not checked, because they may be intended for other specs.
pub(super) fn check_used(arguments: &SpecArguments, files: &[SourceFile]) -> Result<(), Failure> {
    let by_environment = std::env::var("TOPO_VAR").ok();
    let is_typed = |name: &str, value: &str| by_environment.as_ref() != Some(&format!("{name}={value}"));
    let names: Vec<&str> = files.iter().flat_map(|file| names(&file.text)).collect();
    let mut typed = arguments.variables.iter().filter(|(name, value)| is_typed(name, value)).map(|(name, _)| name);
    let Some(unused) = typed.find(|name| !names.contains(&name.as_str())) else { return Ok(()) };
    let failure = Failure::usage(format!("--var sets `{unused}`, but no spec uses this variable"));
    Err(match closest(unused, names) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure,
    })
}

/// Returns the names of all variables that a text uses.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).map(|rest| rest.split(['}', ':']).next().unwrap_or_default())
}
