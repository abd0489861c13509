//! Reads the values of variables: from `TOPO_VAR_NAME`, from files of `NAME=VALUE` lines, from flags.

use super::arguments::SpecArguments;
use super::failure::Failure;
use super::files::{is_pipe_of_shell, stays_inside, unreadable};
use crate::spec::{SourceFile, Variables, closest};
use std::path::Path;

/// The prefix of environment variables that set a variable. A spec cannot read other environment variables: it could
/// publish a secret of the process as the name of a queue.
const PREFIX: &str = "TOPO_VAR_";
/// The rest of `TOPO_VAR_FILE`, which is the variable of `--var-file`.
const NOT_A_VALUE: &str = "FILE";

/// Reads the environment first, then files, then flags: the last value of a name takes precedence.
pub(super) fn variables(arguments: &SpecArguments) -> Result<Variables, Failure> {
    let mut variables = Variables::new();
    for (name, value) in std::env::vars_os() {
        if let (Ok(name), Ok(value)) = (name.into_string(), value.into_string())
            && let Some(name) = name.strip_prefix(PREFIX).filter(|name| !name.is_empty() && *name != NOT_A_VALUE)
        {
            variables.set(name, value);
        }
    }
    for path in &arguments.var_file {
        let text = text(path)?;
        for (index, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, value) = read(line).map_err(|wrong| wrong.at(path, index))?;
            variables.set(name, value);
        }
    }
    for (name, value) in &arguments.variables {
        variables.set(name, value);
    }
    Ok(variables)
}

/// Reads a variable file. A file outside of the repository, or one of the kernel, could contain secrets of the process.
/// A pull request that replaces the file with a link must not publish them as the name of a queue.
fn text(path: &Path) -> Result<String, Failure> {
    stays_inside(path)?;
    let is_of_kernel = path.canonicalize().is_ok_and(|path| path.starts_with("/proc") || path.starts_with("/sys"));
    let is_regular = path.is_file() && !is_of_kernel;
    if path.exists() && !is_regular && !is_pipe_of_shell(path) {
        return Err(Failure::spec(format!("{} is not a regular file", path.display()))
            .hint("specify a file of NAME=VALUE lines, or a process substitution: --var-file <(COMMAND)"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    match text.lines().position(|line| line.contains('\0')) {
        Some(index) => {
            Err(Failure::spec(format!("{}:{}: the line contains a NUL character", path.display(), index + 1)))
        }
        None => Ok(text),
    }
}

/// The error of a line of a variable file.
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

/// Parses a line literally. Shell syntax is refused, because it would silently become part of the value.
fn read(line: &str) -> Result<(&str, &str), LineError> {
    let written = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    let Some((name, value)) = written.filter(|(name, _)| !name.is_empty()) else {
        let hint = line.contains(':').then(|| "a variable file consists of NAME=VALUE lines, not YAML".to_owned());
        return Err(LineError { message: "write NAME=VALUE", hint });
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

/// Refuses flags for variables that no spec uses: after a typo, the default would silently apply. Variables of the
/// environment may be for other specs.
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

/// Returns the names of all variables of a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).map(|behind| behind.split(['}', ':']).next().unwrap_or_default())
}
