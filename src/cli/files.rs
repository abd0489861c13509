//! Formats file paths, refuses unsafe links, and reads definitions files.
//!
//! A pull request can add a symbolic link to a target outside the link's directory. An error message could then quote
//! text from the target. topo refuses such a link before it reads the file.

use super::failure::Failure;
use crate::broker::definitions::DefinitionsError;
use crate::broker::redacted_argument;
use crate::render::shell::quote;
use crate::spec::is_spec;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

/// Formats a path as a command-line argument. Adds `./` to a path with a leading `-`, which would be parsed as a flag.
pub(super) fn path_argument(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.starts_with('-') && text != "-" { quote(&format!("./{text}")) } else { quote(&text) }
}

/// Formats a path for a message. Redacts credentials, because the user may have typed a URL instead of a path.
pub(super) fn redacted_path(path: &Path) -> String {
    redacted_argument(&path.to_string_lossy())
}

/// Returns the failure for a file that cannot be read.
pub(super) fn read_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::spec(format!("cannot read {}", redacted_path(path))).because(error.to_string())
}

/// Refuses a path if one of its components is a symbolic link to a target outside the link's directory. Trusts the
/// working directory and the directories above it, because the system or the user may have created links there.
pub(super) fn refuse_unsafe_links(path: &Path) -> Result<(), Failure> {
    if is_shell_pipe(path) {
        return Ok(());
    }
    // Removes a trailing slash, because a path with a trailing slash refers to the target of the link.
    let path: PathBuf = path.components().collect();
    let trusted = working_directory();
    for link in path.ancestors().filter(|link| link.file_name().is_some()) {
        if trusted.as_ref().is_some_and(|trusted| trusted.starts_with(link)) {
            break;
        }
        let directory = link.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        refuse_link_out_of(directory, link)?;
    }
    Ok(())
}

/// Refuses a symbolic link to a target outside `directory`. Accepts a dangling link, because reading the file will fail
/// later anyway.
pub(super) fn refuse_link_out_of(directory: &Path, link: &Path) -> Result<(), Failure> {
    if !link.is_symlink() {
        return Ok(());
    }
    if let (Ok(target), Ok(directory)) = (link.canonicalize(), directory.canonicalize())
        && !target.starts_with(&directory)
    {
        let message = format!("{} is a symbolic link to a target outside its directory", link.display());
        return Err(Failure::spec(message).hint("specify the target itself, or replace the link with a copy"));
    }
    Ok(())
}

/// Returns true if the path is standard input, or a pipe from the shell, as in `topo plan <(command)`. Both kinds of
/// path are links.
pub(super) fn is_shell_pipe(path: &Path) -> bool {
    let is_plain = path.components().all(|component| component != Component::ParentDir);
    is_plain && (path.starts_with("/dev/fd") || path == Path::new("/dev/stdin"))
}

/// Returns the working directory as `PWD` specifies it, including the links that the user followed. Returns the
/// resolved path if `PWD` is unset or outdated. Returns `None` if the working directory is not accessible.
fn working_directory() -> Option<PathBuf> {
    let directory = std::env::current_dir().ok()?;
    let from_shell = std::env::var_os("PWD").map(PathBuf::from);
    let is_same = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == directory);
    Some(from_shell.filter(is_same).unwrap_or(directory))
}

/// Returns true if the path refers to a spec rather than a definitions file: a directory, or a path with the extension
/// `yaml` or `yml`.
pub(super) fn is_spec_path(path: &Path) -> bool {
    let is_yaml = |it: &OsStr| it.eq_ignore_ascii_case("yaml") || it.eq_ignore_ascii_case("yml");
    path.extension().is_some_and(is_yaml) || path.is_dir()
}

/// Reads the text of a file that another tool wrote; `-` is standard input.
pub(super) fn import_text(path: &Path) -> Result<String, Failure> {
    refuse_unsafe_links(path)?;
    let bytes = read_bytes(path, "pass the files themselves, or `-` for standard input")?;
    String::from_utf8(bytes).map_err(|_| Failure::spec(format!("{} is not UTF-8", redacted_path(path))))
}

/// Reads the text of a definitions file; `-` is standard input.
pub(super) fn definitions_text(path: &Path) -> Result<String, Failure> {
    let bytes = read_bytes(path, "pass a definitions file, or `-` for standard input")?;
    String::from_utf8(bytes).map_err(|error| {
        let is_wide = matches!(error.as_bytes(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
        let failure = Failure::spec(unusable_message(path));
        if is_wide {
            failure
                .because("it is UTF-16, but RabbitMQ writes UTF-8")
                .hint("a shell redirection probably converted it; write it with `rabbitmqctl export_definitions FILE`")
        } else {
            failure.because("it is not UTF-8")
        }
    })
}

/// Reads a file. `hint` is the hint for a directory.
fn read_bytes(path: &Path, hint: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        let failure = Failure::usage(format!("cannot read {}", redacted_path(path)));
        if error.kind() == ErrorKind::IsADirectory {
            failure.because("it is a directory").hint(hint)
        } else {
            failure.because(error.to_string())
        }
    })?;
    Ok(bytes)
}

/// Returns the failure for a file that is not a usable definitions file.
pub(super) fn definitions_failure(path: &Path, text: &str, error: &DefinitionsError) -> Failure {
    let failure = Failure::spec(unusable_message(path));
    let hint = "use a file that `rabbitmqctl export_definitions FILE` wrote, or a response to GET /api/definitions";
    match error {
        DefinitionsError::Shape(_) if is_spec(text) => failure.because("it is a spec").hint(hint),
        DefinitionsError::Shape(_) | DefinitionsError::Nothing => failure.because(error.to_string()).hint(hint),
        DefinitionsError::Secret(error) => Failure::failed(error.to_string()),
        DefinitionsError::Entry(_) | DefinitionsError::TooOld { .. } => failure.because(error.to_string()),
    }
}

fn unusable_message(path: &Path) -> String {
    format!("{} is not a usable definitions file", redacted_path(path))
}

/// The suffixes of test file names.
const SUFFIXES: [&str; 2] = [".test.yaml", ".test.yml"];

/// Returns the name of a test file without its suffix; `None` for other files.
pub(super) fn stem_of_test_file(name: &str) -> Option<&str> {
    SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix))
}
