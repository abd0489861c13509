//! Standard output carries the result, standard error all else. A reader that went away is no error.

use super::failure::Failure;
use crate::model::printable::is_hidden;
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Writes a result to standard output; colours are stripped where they do not belong.
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

/// The text without hidden characters but for line breaks, tabs and topo's own colors. Whoever made the text has escaped
/// names already, as its format wants it; this is the net below.
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
        if at < color || !is_foreign(c) {
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
    // What is said besides the result is read on a terminal, too, when the result goes elsewhere.
    let terminals = [console::Term::stdout(), console::Term::stderr()];
    let from_terminal = || terminals.iter().find_map(|it| it.size_checked()).map(|(_, columns)| usize::from(columns));
    from_environment.or_else(from_terminal).unwrap_or(100).clamp(60, 200)
}

/// Writes a file whole or not at all. Plans may name hosts, so only the owner may read it.
pub(super) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_all([(path, text)], 0o600)
}

/// The same for what is made to be shown: others may read it.
pub(super) fn write_public_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_all([(path, text)], 0o666)
}

/// The same for several files: none is replaced before all are written.
pub(super) fn write_public_files(files: &[(PathBuf, String)]) -> Result<(), Failure> {
    write_all(files.iter().map(|(path, text)| (path.as_path(), text.as_str())), 0o666)
}

/// What is said where something cannot be written.
pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}", path.display())).because(error.to_string())
}

/// Whether a file is there that would give way to what is written.
pub(super) fn is_replaced(path: &Path) -> bool {
    path.is_file() && stdout_named(path).is_none()
}

fn write_all<'a>(files: impl IntoIterator<Item = (&'a Path, &'a str)>, mode: u32) -> Result<(), Failure> {
    let mut beside: Vec<(PathBuf, PathBuf)> = Vec::new();
    let written = files.into_iter().try_for_each(|(path, text)| {
        let written = written(path, text, mode).map_err(|error| unwritable(path, &error))?;
        beside.extend(written);
        Ok(())
    });
    let done = written.and_then(|()| {
        let rename = |(neighbour, path): &(PathBuf, PathBuf)| std::fs::rename(neighbour, path);
        beside.iter().try_for_each(|pair| rename(pair).map_err(|error| unwritable(&pair.1, &error)))
    });
    if done.is_err() {
        // Of no use to anybody; those that were renamed are not there any more.
        for (neighbour, _) in &beside {
            let _ = std::fs::remove_file(neighbour);
        }
    }
    done
}

/// Writes it to a neighbour, and says which is to be renamed to what. A device or a pipe is written into at once: another
/// file in its place would take it away from everybody else.
fn written(path: &Path, text: &str, mode: u32) -> std::io::Result<Option<(PathBuf, PathBuf)>> {
    if let Some(mut stdout) = stdout_named(path) {
        stdout.write_all(text.as_bytes())?;
        return Ok(None);
    }
    if path.exists() && !path.is_file() {
        OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())?;
        return Ok(None);
    }
    let path = at_the_end_of_links(path)?;
    Ok(Some((neighbour(&path, text, mode)?, path)))
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

/// Where a symbolic link leads in the end, whether anything is there or not: the link stays.
fn at_the_end_of_links(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    // As many as Linux follows.
    for _ in 0..40 {
        let Ok(link) = std::fs::read_link(&path) else { return Ok(path) };
        path = path.parent().map_or_else(|| link.clone(), |folder| folder.join(&link));
    }
    Err(std::io::Error::other("too many symbolic links"))
}

/// A file beside that path, with that text.
fn neighbour(path: &Path, text: &str, mode: u32) -> std::io::Result<PathBuf> {
    let mut neighbour = path.as_os_str().to_owned();
    neighbour.push(format!(".{}.tmp", std::process::id()));
    let neighbour = PathBuf::from(neighbour);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options.open(&neighbour).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(neighbour),
        Err(error) => {
            let _ = std::fs::remove_file(&neighbour);
            Err(error)
        }
    }
}
