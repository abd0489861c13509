//! Files that arguments and specs name: formats their paths, refuses unsafe links, and explains why a file is not a
//! definitions file.
//!
//! A pull request can add a symbolic link to a target outside of its directory, and an error message would quote the
//! target. topo refuses such a link before it reads the file.

use super::failure::Failure;
use crate::broker::definitions::DefinitionsError;
use crate::broker::redacted_argument;
use crate::render::shell::quoted;
use crate::spec::is_spec;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

/// Formats a path as an argument. A leading `-` would make it a flag.
pub(super) fn path_argument(path: &Path) -> String {
    let text = path.to_string_lossy();
    if text.starts_with('-') && text != "-" { quoted(&format!("./{text}")) } else { quoted(&text) }
}

/// Formats a path for a message. A user may have typed a URL with credentials instead.
pub(super) fn shown(path: &Path) -> String {
    redacted_argument(&path.to_string_lossy())
}

/// Returns the failure for a file that cannot be read.
pub(super) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::spec(format!("cannot read {}", shown(path))).because(error.to_string())
}

/// Refuses a path if one of its components is a link to a target outside of its directory. The directories above the
/// working directory are trusted as the user named them, because the system or the user may link them.
pub(super) fn stays_inside(path: &Path) -> Result<(), Failure> {
    if is_pipe_of_shell(path) {
        return Ok(());
    }
    // Without a trailing slash, which would follow the link.
    let path: PathBuf = path.components().collect();
    let trusted = working_directory();
    for link in path.ancestors().filter(|link| link.file_name().is_some()) {
        if trusted.as_ref().is_some_and(|trusted| trusted.starts_with(link)) {
            break;
        }
        let directory = link.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        link_stays_in(link, directory)?;
    }
    Ok(())
}

/// Refuses a symbolic link out of a directory. The missing target of a link is reported when the file is read.
pub(super) fn link_stays_in(link: &Path, directory: &Path) -> Result<(), Failure> {
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

/// Returns true if the path is a pipe of the shell, which is a link: `topo plan <(command)`.
pub(super) fn is_pipe_of_shell(path: &Path) -> bool {
    let is_plain = path.components().all(|component| component != Component::ParentDir);
    is_plain && (path.starts_with("/dev/fd") || path == Path::new("/dev/stdin"))
}

/// Returns the working directory as the shell names it, with the links that the user followed.
fn working_directory() -> Option<PathBuf> {
    let directory = std::env::current_dir().ok()?;
    let named = std::env::var_os("PWD").map(PathBuf::from);
    let is_same = |named: &PathBuf| named.canonicalize().is_ok_and(|named| named == directory);
    Some(named.filter(is_same).unwrap_or(directory))
}

/// Reads the text of a definitions file; `-` is standard input.
pub(super) fn definitions_text(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        let failure = Failure::usage(format!("cannot read {}", shown(path)));
        if error.kind() == ErrorKind::IsADirectory {
            failure.because("it is a directory").hint("pass a definitions file, or `-` for standard input")
        } else {
            failure.because(error.to_string())
        }
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let is_wide = matches!(error.as_bytes(), [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
        let failure = Failure::spec(unusable(path));
        if is_wide {
            failure
                .because("it is UTF-16, but RabbitMQ writes UTF-8")
                .hint("a shell redirection probably converted it; write it with `rabbitmqctl export_definitions FILE`")
        } else {
            failure.because("it is not UTF-8")
        }
    })
}

/// Returns the failure for a file that is not a usable definitions file.
pub(super) fn definitions_failure(path: &Path, text: &str, error: &DefinitionsError) -> Failure {
    let failure = Failure::spec(unusable(path));
    let desired = "use a file that `rabbitmqctl export_definitions FILE` wrote, or a response of GET /api/definitions";
    match error {
        DefinitionsError::Shape(_) if is_spec(text) => failure.because("it is a spec").hint(desired),
        DefinitionsError::Shape(_) | DefinitionsError::Nothing => failure.because(error.to_string()).hint(desired),
        DefinitionsError::Entry(_) | DefinitionsError::TooOld { .. } => failure.because(error.to_string()),
    }
}

fn unusable(path: &Path) -> String {
    format!("{} is not a usable definitions file", shown(path))
}
