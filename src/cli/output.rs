//! Writes the result to standard output and everything else to standard error. A closed pipe is not an error.

use super::failure::Failure;
use super::files;
use crate::model::printable::is_hidden;
use indicatif::{ProgressBar, WeakProgressBar};
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempPath;

/// Writes a result to standard output. Strips colors if the stream does not support them.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    print_unless_closed(text).map(drop)
}

/// Writes a result, as [`print`] does. Returns false if standard output is a closed pipe.
pub(super) fn print_unless_closed(text: &str) -> Result<bool, Failure> {
    let mut stream = anstream::stdout().lock();
    let written = stream.write_all(escape_hidden(text).as_bytes()).and_then(|()| stream.flush());
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::failed("cannot write to standard output").because(error.to_string())),
    }
}

/// Clears the screen if standard output is a terminal. Returns false if it is not a terminal.
pub(super) fn clear_screen() -> bool {
    let terminal = console::Term::stdout();
    terminal.is_term() && terminal.clear_screen().is_ok()
}

/// The spinner on the terminal, until it is dropped.
static SPINNER: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Registers a spinner, so that [`eprint`] can remove it from the terminal while writing.
pub(super) fn set_spinner(spinner: &ProgressBar) {
    *SPINNER.lock().unwrap_or_else(PoisonError::into_inner) = Some(spinner.downgrade());
}

/// Writes diagnostics or progress to standard error. Hides any spinner on the terminal while writing the text.
pub(super) fn eprint(text: &str) {
    let write = || {
        let mut stream = anstream::stderr().lock();
        let _ = stream.write_all(escape_hidden(text).as_bytes());
    };
    let spinner = SPINNER.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(WeakProgressBar::upgrade);
    match spinner {
        Some(spinner) => spinner.suspend(write),
        None => write(),
    }
}

/// Escapes hidden characters except line breaks, tabs and topo's own color sequences. This function is a safety net:
/// the renderers already escape names as their format requires.
fn escape_hidden(text: &str) -> Cow<'_, str> {
    let must_escape = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.chars().any(must_escape) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    let mut color_end = 0;
    for (at, c) in text.char_indices() {
        if c == '\u{1b}' {
            color_end = at + color_length(&text[at..]);
        }
        // In Markdown, this character separates `@` from a name, so that the name is not a mention.
        let separates_mention = c == '\u{200b}' && escaped.ends_with('@');
        if at < color_end || separates_mention || !must_escape(c) {
            escaped.push(c);
        } else {
            escaped.extend(c.escape_unicode());
        }
    }
    Cow::Owned(escaped)
}

/// Returns the length in bytes of the color sequence at the start of the text, such as `ESC[1m`. Returns 0 if the text
/// does not start with a color sequence.
fn color_length(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let numbers = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if rest[numbers..].starts_with('m') { 2 + numbers + 1 } else { 0 }
}

/// Returns the output width in columns: `COLUMNS`, otherwise the terminal width, otherwise 100. Limits the width to the
/// range from 60 to 200 columns.
pub(super) fn width() -> usize {
    let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    // Standard error may still be a terminal if the result is redirected.
    let terminals = [console::Term::stdout(), console::Term::stderr()];
    let from_terminal = || terminals.iter().find_map(|it| it.size_checked()).map(|(_, columns)| usize::from(columns));
    from_environment.or_else(from_terminal).unwrap_or(100).clamp(60, 200)
}

/// Writes a file completely or not at all. Only the owner can read the file, because plans can contain host names.
pub(super) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_all([(path, text)], 0o600)
}

/// Writes a file completely or not at all. Other users can read the file if the umask permits.
pub(super) fn write_public_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_all([(path, text)], 0o666)
}

/// Writes several files that other users can read if the umask permits. Writes all contents to temporary files before
/// replacing the first file.
pub(super) fn write_public_files(files: &[(PathBuf, String)]) -> Result<(), Failure> {
    write_all(files.iter().map(|(path, text)| (path.as_path(), text.as_str())), 0o666)
}

/// Returns the failure for a path that cannot be written.
pub(super) fn write_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}", files::redacted_path(path))).because(error.to_string())
}

/// Returns true if writing to the path replaces an existing file.
pub(super) fn is_replaced(path: &Path) -> bool {
    path.is_file() && stdout_at(path).is_none()
}

/// Creates a file that only its owner can read, and syncs it to disk. Fails if the file already exists.
pub(super) fn write_new_file(path: &Path, text: &str) -> std::io::Result<()> {
    temporary_file(path, text, 0o600)?.persist_noclobber(path)?;
    // The new file name is durable only after the folder has been synced. Some file systems cannot sync a folder.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn write_all<'a>(files: impl IntoIterator<Item = (&'a Path, &'a str)>, mode: u32) -> Result<(), Failure> {
    // Dropping a temporary file removes it.
    let mut temporary: Vec<(TempPath, PathBuf)> = Vec::new();
    for (path, text) in files {
        temporary.extend(write_temporary(path, text, mode).map_err(|error| write_failure(path, &error))?);
    }
    for (file, path) in temporary {
        file.persist(&path).map_err(|error| write_failure(&path, &error.error))?;
    }
    Ok(())
}

/// Writes a temporary file, and returns it with the path that the file will replace. If the path is standard output, a
/// device or a pipe, writes to the path directly and returns `None`. Replacing the path would remove it for all other
/// programs.
fn write_temporary(path: &Path, text: &str, mode: u32) -> std::io::Result<Option<(TempPath, PathBuf)>> {
    if let Some(mut stdout) = stdout_at(path) {
        stdout.write_all(text.as_bytes())?;
        return Ok(None);
    }
    if path.exists() && !path.is_file() {
        OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())?;
        return Ok(None);
    }
    let path = resolve_links(path)?;
    Ok(Some((temporary_file(&path, text, mode)?, path)))
}

/// Returns standard output if the path refers to it, as `/dev/stdout` does. Standard output can be a file that other
/// programs also write to.
#[cfg(unix)]
fn stdout_at(path: &Path) -> Option<File> {
    use std::os::{fd::AsFd, unix::fs::MetadataExt};
    let metadata = std::fs::metadata(path).ok()?;
    let stdout = File::from(std::io::stdout().as_fd().try_clone_to_owned().ok()?);
    let stdout_metadata = stdout.metadata().ok()?;
    ((stdout_metadata.dev(), stdout_metadata.ino()) == (metadata.dev(), metadata.ino())).then_some(stdout)
}

#[cfg(not(unix))]
fn stdout_at(_: &Path) -> Option<File> {
    None
}

/// Returns the final target of a symbolic link, even if the target does not exist. Writing to the target leaves the
/// link in place.
fn resolve_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    // Linux follows at most 40 links.
    for _ in 0..40 {
        let Ok(link) = std::fs::read_link(&path) else { return Ok(path) };
        path = path.parent().map_or_else(|| link.clone(), |folder| folder.join(&link));
    }
    Err(std::io::Error::other("too many symbolic links"))
}

/// Writes the text to a new file with a random name in the folder of `path`. Dropping the result removes the file.
fn temporary_file(path: &Path, text: &str, mode: u32) -> std::io::Result<TempPath> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".topo.").suffix(".tmp");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = builder.tempfile_in(folder_of(path))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file.into_temp_path())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
