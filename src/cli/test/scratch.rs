//! Deletes the scratch vhosts of `topo test --live` after a run, or empties the vhost that `--scratch-vhost` selects.
//! With `--clean`, deletes the scratch vhosts that earlier runs left behind.

use super::arguments::TestArguments;
use crate::broker::{Access, BrokerError};
use crate::cli::arguments::Global;
use crate::cli::connection::{self, ConnectionArguments};
use crate::cli::failure::{Exit, Failure};
use crate::cli::{interaction, output};
use crate::live::{self, LiveError, Preparation};
use crate::model::printable::clean;
use crate::model::{Intervals, VhostName};
use futures_util::future::join_all;

/// The vhosts that could not be deleted or emptied.
pub(super) struct NotCleaned {
    text: String,
    hint: String,
}

impl NotCleaned {
    fn new(vhosts: &[&VhostName], is_provided: bool, reason: &str, arguments: &ConnectionArguments) -> Self {
        let names: Vec<String> = vhosts.iter().map(|vhost| clean(vhost.as_str())).collect();
        let names = format!("{} {}", if names.len() == 1 { "vhost" } else { "vhosts" }, names.join(", "));
        let flags = connection::flags(arguments);
        match is_provided {
            true => Self {
                text: format!("could not empty {names}: {reason}"),
                hint: "before the next run, delete the topology's objects from the vhost".to_owned(),
            },
            false => Self {
                text: format!("could not delete {names}: {reason}"),
                hint: format!(
                    "if no other test is running, delete the vhosts: topo test --clean --older-than 0s{flags}"
                ),
            },
        }
    }

    /// The result of a cleanup that a second signal stopped.
    pub(super) fn aborted(vhosts: &[VhostName], is_provided: bool, arguments: &ConnectionArguments) -> Self {
        Self::new(&vhosts.iter().collect::<Vec<_>>(), is_provided, "interrupted", arguments)
    }

    /// Adds the vhosts to a failure, as a cause with a hint.
    pub(super) fn added_to(self, failure: Failure) -> Failure {
        failure.exit(Exit::Partial).because(self.text).hint(self.hint)
    }
}

/// Deletes the scratch vhosts of a run, or the objects that the run declared in a vhost that the user provided.
pub(super) async fn delete_or_clear(
    access: &Access,
    (vhosts, is_provided): (&[VhostName], bool),
    preparation: &Preparation,
    arguments: &ConnectionArguments,
) -> Result<(), NotCleaned> {
    let clean_up = async |vhost| match is_provided {
        true => live::clear(access, vhost, preparation).await,
        false => live::delete(access, vhost).await.map_err(LiveError::from),
    };
    let cleaned = join_all(vhosts.iter().map(clean_up)).await;
    let failed: Vec<_> =
        vhosts.iter().zip(cleaned).filter_map(|(vhost, cleaned)| Some((vhost, cleaned.err()?))).collect();
    let Some((_, error)) = failed.first() else { return Ok(()) };
    let left: Vec<&VhostName> = failed.iter().map(|(vhost, _)| *vhost).collect();
    Err(NotCleaned::new(&left, is_provided, &error.to_string(), arguments))
}

/// Returns true if the broker refused a request because the user lacks a permission or a tag.
pub(super) fn is_refused(error: &BrokerError) -> bool {
    matches!(error, BrokerError::AccessRefused { .. } | BrokerError::WrongTag { .. })
}

/// Returns the failure for a run that cannot create its vhosts.
pub(super) fn creation_failure(error: BrokerError) -> Failure {
    if !is_refused(&error) {
        return Failure::from(error);
    }
    Failure::failed("only users with the `administrator` tag can create scratch vhosts")
        .because(error.to_string())
        .hint("use an existing, empty vhost in which the user has full permissions: --scratch-vhost NAME")
}

/// Deletes the scratch vhosts that earlier runs left behind (`--clean`).
pub(super) async fn clean_leftovers(arguments: &TestArguments, global: &Global) -> Result<Exit, Failure> {
    let access = connection::connect(&arguments.connection, Intervals::default())?;
    let leftovers = live::leftovers(&access, arguments.live.older_than).await?;
    interaction::mark_changed();
    let (mut deleted, mut first_error) = (0, None);
    for leftover in &leftovers {
        let name = clean(leftover.vhost.as_str());
        match live::delete(&access, &leftover.vhost).await {
            Ok(()) => {
                deleted += 1;
                if !global.quiet {
                    output::print(&format!("deleted {name}\n"))?;
                }
            }
            // A failure does not stop the deletion of the other vhosts.
            Err(error) => drop(first_error.get_or_insert((name, error))),
        }
    }
    if let Some((name, error)) = first_error {
        let exit = if deleted == 0 { Exit::Failed } else { Exit::Partial };
        return Err(Failure::failed(format!("could not delete vhost {name}")).exit(exit).because_of(&error));
    }
    if leftovers.is_empty() && !global.quiet {
        let age = humantime::format_duration(arguments.live.older_than);
        output::print(&format!("no scratch vhosts are at least {age} old\n"))?;
    }
    Ok(Exit::Done)
}
