//! Standard output carries the result, standard error all else. A reader that went away is no error.

use super::failure::Failure;
use std::io::{ErrorKind, Write};

/// Writes a result to standard output; colours are stripped where they do not belong.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut stream = anstream::stdout().lock();
    let written = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::failed("cannot write to standard output").because(error.to_string()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes diagnostics or progress to standard error.
pub(super) fn tell(text: &str) {
    let mut stream = anstream::stderr().lock();
    let _ = stream.write_all(text.as_bytes());
}

/// The columns of the screen: `COLUMNS`, else the terminal's, else 100. Never below 60, where nothing is readable.
pub(super) fn width() -> usize {
    let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    // What is said besides the result is read on a terminal, too, when the result goes elsewhere.
    let terminals = [dialoguer::console::Term::stdout(), dialoguer::console::Term::stderr()];
    let from_terminal = || terminals.iter().find_map(|it| it.size_checked()).map(|(_, columns)| usize::from(columns));
    from_environment.or_else(from_terminal).unwrap_or(100).clamp(60, 200)
}

/// Writes a file whole or not at all: to a neighbour first, then renamed over it. Plans may name hosts, so only the
/// owner may read it.
pub(super) fn write_file(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    write(path, text, 0o600)
}

/// The same for what is made to be shown: others may read it.
pub(super) fn write_public_file(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    write(path, text, 0o666)
}

fn write(path: &std::path::Path, text: &str, mode: u32) -> Result<(), Failure> {
    let failure =
        |error: std::io::Error| Failure::failed(format!("cannot write {}", path.display())).because(error.to_string());
    let mut neighbour = path.as_os_str().to_owned();
    neighbour.push(format!(".{}.tmp", std::process::id()));
    let neighbour = std::path::PathBuf::from(neighbour);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options.open(&neighbour).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&neighbour, path)).map_err(|error| {
        // What is half written is of no use to anybody.
        let _ = std::fs::remove_file(&neighbour);
        failure(error)
    })
}

/// Writes a file for others to read. One that is there stays as it is, unless it may be replaced.
pub(super) fn write_new(path: &std::path::Path, text: &str, may_replace: bool) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(!may_replace).create(true).truncate(true);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
