//! Creates temporary folders that are removed at the end of this process, even if the process is killed.

use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use super::child;

/// The folder of this process, and a shell that removes it when the pipe to the shell closes. The child is kept only
/// for its standard input.
static SCRATCH: LazyLock<(Child, TempDir)> = LazyLock::new(|| {
    let folder = tempfile::Builder::new().prefix("topo-tests.").tempdir().expect("the temporary folder is writable");
    let watcher = child("/bin/sh")
        .args(["-c", "trap '' INT TERM HUP; cat; rm -rf \"$0\""])
        .arg(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        // Ctrl-C on a terminal must not stop the shell before it has removed the folder.
        .process_group(0)
        .spawn()
        .expect("/bin/sh exists");
    (watcher, folder)
});

/// Creates a folder, which is removed when the value is dropped, or at the end of this process.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir_in(SCRATCH.1.path()).expect("the temporary folder is writable")
}
