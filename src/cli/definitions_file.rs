//! Reads definitions files, and explains why a file is not one.

use super::failure::Failure;
use super::shell;
use crate::broker::definitions::DefinitionsError;
use crate::spec::is_spec;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// Reads the text of a file; `-` is standard input.
pub(super) fn text(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        let failure = Failure::usage(format!("cannot read {}", shell::shown(path)));
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
pub(super) fn failure(path: &Path, text: &str, error: &DefinitionsError) -> Failure {
    let failure = Failure::spec(unusable(path));
    let desired = "use a file that `rabbitmqctl export_definitions FILE` wrote, or a response of GET /api/definitions";
    match error {
        DefinitionsError::Shape(_) if is_spec(text) => failure.because("it is a spec").hint(desired),
        DefinitionsError::Shape(_) | DefinitionsError::Nothing => failure.because(error.to_string()).hint(desired),
        DefinitionsError::Entry(_) | DefinitionsError::TooOld { .. } => failure.because(error.to_string()),
    }
}

fn unusable(path: &Path) -> String {
    format!("{} is not a usable definitions file", shell::shown(path))
}
