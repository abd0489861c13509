//! Starts the programs that tests need.

use std::ffi::OsStr;
use std::process::Command;

/// The `env` of coreutils.
pub(super) const ENV: &str = "/usr/bin/env";

/// A program that starts with the default disposition of INT, QUIT and HUP.
///
/// A shell starts a command in the background with SIGINT and SIGQUIT ignored, `nohup` with SIGHUP ignored, and every child
/// inherits that: it could not be interrupted, and no trap of a shell would work. `env` of coreutils (8.31 or later) restores
/// the default before it becomes the program.
pub(crate) fn child(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(ENV);
    command.arg("--default-signal=INT,QUIT,HUP").arg(program);
    command
}
