//! Starts the programs that tests need.

use std::ffi::OsStr;
use std::process::Command;

/// The `env` of coreutils.
pub(super) const ENV: &str = "/usr/bin/env";

/// Returns a command that starts with the default disposition of INT, QUIT and HUP.
///
/// A shell starts a background command with SIGINT and SIGQUIT ignored, `nohup` with SIGHUP ignored. Every child
/// inherits this, so it could not be interrupted, and no trap of a shell would work. `env` of coreutils (8.31 or later)
/// restores the default before it executes the program.
pub(crate) fn child(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(ENV);
    command.arg("--default-signal=INT,QUIT,HUP").arg(program);
    command
}
