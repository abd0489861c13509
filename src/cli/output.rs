//! Writes the result to standard output and everything else to standard error. A closed pipe is not an error.

use super::failure::Failure;
use super::shell;
use crate::model::printable::is_hidden;
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// Writes a result to standard output; colors are stripped if the stream does not support them.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut stream = anstream::stdout().lock();
    let written = stream.write_all(guarded(text).as_bytes()).and_then(|()| stream.flush());
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
    let _ = stream.write_all(guarded(text).as_bytes());
}

/// Escapes hidden characters except line breaks, tabs and topo's own colors. The renderers already escape names as their
/// format requires; this is a safety net.
fn guarded(text: &str) -> Cow<'_, str> {
    let is_foreign = |c: char| is_hidden(c) && !matches!(c, '\n' | '\t');
    if !text.chars().any(is_foreign) {
        return Cow::Borrowed(text);
    }
    let mut guarded = String::with_capacity(text.len());
    let mut color = 0;
    for (at, c) in text.char_indices() {
        if c == '\u{1b}' {
            color = at + length_of_color(&text[at..]);
        }
        // Markdown output separates `@` from a name with this character, so that it is not a mention.
        let is_parted = c == '\u{200b}' && guarded.ends_with('@');
        if at < color || is_parted || !is_foreign(c) {
            guarded.push(c);
        } else {
            guarded.extend(c.escape_unicode());
        }
    }
    Cow::Owned(guarded)
}

/// The bytes of the color that the text begins with, such as `ESC[1m`; 0 where it begins with something else.
fn length_of_color(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 0 };
    let numbers = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    if rest[numbers..].starts_with('m') { 2 + numbers + 1 } else { 0 }
}

/// The columns of the screen: `COLUMNS`, else the terminal's, else 100. Never below 60, where nothing is readable.
pub(super) fn width() -> usize {
    let from_environment = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    // Standard error may still be a terminal if the result is redirected.
    let terminals = [console::Term::stdout(), console::Term::stderr()];
    let from_terminal = || terminals.iter().find_map(|it| it.size_checked()).map(|(_, columns)| usize::from(columns));
    from_environment.or_else(from_terminal).unwrap_or(100).clamp(60, 200)
}

/// Writes a file whole or not at all. Plans may name hosts, so only the owner may read it.
pub(super) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_all([(path, text)], 0o600)
}

/// The same for files that other users may read.
pub(super) fn write_public_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_all([(path, text)], 0o666)
}

/// The same for several files: none is replaced before all are written.
pub(super) fn write_public_files(files: &[(PathBuf, String)]) -> Result<(), Failure> {
    write_all(files.iter().map(|(path, text)| (path.as_path(), text.as_str())), 0o666)
}

/// The failure for a path that cannot be written.
pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}", shell::shown(path))).because(error.to_string())
}

/// Returns true if writing replaces an existing file.
pub(super) fn is_replaced(path: &Path) -> bool {
    path.is_file() && stdout_named(path).is_none()
}

/// Writes a file that must not exist yet, readable for the owner only: whole, on the disk, and never over another one.
pub(super) fn write_new_file(path: &Path, text: &str) -> std::io::Result<()> {
    neighbor(path, text, 0o600)?.persist_noclobber(path)?;
    // The new name is durable once its folder is synced. Some file systems cannot sync a folder.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn write_all<'a>(files: impl IntoIterator<Item = (&'a Path, &'a str)>, mode: u32) -> Result<(), Failure> {
    // Dropping a temporary file removes it.
    let mut beside: Vec<(TempPath, PathBuf)> = Vec::new();
    for (path, text) in files {
        beside.extend(written(path, text, mode).map_err(|error| unwritable(path, &error))?);
    }
    for (neighbor, path) in beside {
        neighbor.persist(&path).map_err(|error| unwritable(&path, &error.error))?;
    }
    Ok(())
}

/// Writes it to a neighbor, and returns that with the path that it replaces. A device or a pipe is written into at once:
/// another file in its place would take it away from all other programs.
fn written(path: &Path, text: &str, mode: u32) -> std::io::Result<Option<(TempPath, PathBuf)>> {
    if let Some(mut stdout) = stdout_named(path) {
        stdout.write_all(text.as_bytes())?;
        return Ok(None);
    }
    if path.exists() && !path.is_file() {
        OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())?;
        return Ok(None);
    }
    let path = at_the_end_of_links(path)?;
    Ok(Some((neighbor(&path, text, mode)?, path)))
}

/// Standard output, if that is what the path names, such as `/dev/stdout`: it may well be a file, which others write to.
#[cfg(unix)]
fn stdout_named(path: &Path) -> Option<File> {
    use std::os::{fd::AsFd, unix::fs::MetadataExt};
    let named = std::fs::metadata(path).ok()?;
    let stdout = File::from(std::io::stdout().as_fd().try_clone_to_owned().ok()?);
    let is = stdout.metadata().ok()?;
    ((is.dev(), is.ino()) == (named.dev(), named.ino())).then_some(stdout)
}

#[cfg(not(unix))]
fn stdout_named(_: &Path) -> Option<File> {
    None
}

/// The final target of a symbolic link, whether it exists or not: the link itself is kept.
fn at_the_end_of_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    // The limit of Linux.
    for _ in 0..40 {
        let Ok(link) = std::fs::read_link(&path) else { return Ok(path) };
        path = path.parent().map_or_else(|| link.clone(), |folder| folder.join(&link));
    }
    Err(std::io::Error::other("too many symbolic links"))
}

/// A new file of a random name beside that path, with that text. It is removed when it is dropped.
fn neighbor(path: &Path, text: &str, mode: u32) -> std::io::Result<TempPath> {
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
