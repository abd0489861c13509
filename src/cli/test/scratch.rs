//! Deletes the scratch vhosts of `topo test --live`: after a run, and with `--clean` those of killed runs.

use super::arguments::TestArguments;
use crate::broker::{Access, BrokerError};
use crate::cli::arguments::Global;
use crate::cli::connection::{self, ConnectionArguments};
use crate::cli::failure::{Exit, Failure};
use crate::cli::output;
use crate::live::{self, LiveError};
use crate::model::printable::clean;
use crate::model::{Intervals, VhostName};

/// The vhosts that could not be deleted or emptied.
pub(super) struct NotCleaned {
    text: String,
    hint: String,
}

impl NotCleaned {
    /// Adds the vhosts to another failure.
    pub(super) fn added_to(self, failure: Failure) -> Failure {
        failure.exit(Exit::Partial).because(self.text).hint(self.hint)
    }
}

/// Deletes the scratch vhosts of a run, or empties the vhost that the user provided.
pub(super) async fn delete_or_clear(
    access: &Access,
    (vhosts, is_provided): (&[VhostName], bool),
    arguments: &ConnectionArguments,
) -> Result<(), NotCleaned> {
    let mut left = Vec::new();
    for vhost in vhosts {
        let cleaned = match is_provided {
            true => live::clear(access, vhost).await,
            false => live::delete(access, vhost).await.map_err(LiveError::from),
        };
        left.extend(cleaned.err().map(|error| (vhost, error)));
    }
    let Some((_, error)) = left.first() else { return Ok(()) };
    let names: Vec<String> = left.iter().map(|(vhost, _)| clean(vhost.as_str())).collect();
    let flags = connection::flags(arguments);
    let what = if is_provided { "emptied" } else { "deleted" };
    let hint = match is_provided {
        true => "delete the queues, exchanges and policies of the vhost before the next run".to_owned(),
        false => format!("delete the vhosts: topo test --clean --older-than 0s{flags}"),
    };
    Err(NotCleaned { text: format!("not {what}: vhost {}: {error}", names.join(", ")), hint })
}

/// Returns true if the broker refused a request because of the user's rights.
pub(super) fn is_refused(error: &BrokerError) -> bool {
    matches!(error, BrokerError::AccessRefused { .. } | BrokerError::WrongTag { .. })
}

/// Returns the failure of a run that cannot create its vhosts.
pub(super) fn creation_failure(error: BrokerError) -> Failure {
    if !is_refused(&error) {
        return Failure::from(error);
    }
    Failure::failed("the user may not create temporary vhosts, which requires the tag `administrator`")
        .because(error.to_string())
        .hint("provide an empty vhost in which the user may configure, write and read everything: --scratch-vhost NAME")
}

/// Deletes the scratch vhosts that killed runs left behind.
pub(super) async fn clean_leftovers(arguments: &TestArguments, global: &Global) -> Result<Exit, Failure> {
    let access = connection::connect(&arguments.connection, Intervals::default())?;
    let leftovers = live::leftovers(&access, arguments.live.older_than).await?;
    for (deleted, leftover) in leftovers.iter().enumerate() {
        if let Err(error) = live::delete(&access, &leftover.vhost).await {
            let exit = if deleted == 0 { Exit::Failed } else { Exit::Partial };
            let failure = Failure::failed(format!("vhost {} was not deleted", clean(leftover.vhost.as_str())));
            return Err(failure.exit(exit).because_of(&error));
        }
        if !global.quiet {
            output::print(&format!("deleted {}\n", clean(leftover.vhost.as_str())))?;
        }
    }
    if leftovers.is_empty() && !global.quiet {
        let age = humantime::format_duration(arguments.live.older_than);
        output::print(&format!("no temporary vhosts of at least {age} found\n"))?;
    }
    Ok(Exit::Done)
}
