//! Refuses symbolic links to targets outside of their directory, before the file is read. A pull request can add such a
//! link, and an error message would quote the file.

use super::failure::Failure;
use std::path::{Component, Path, PathBuf};

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
