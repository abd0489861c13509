//! Inspects dead-letter queues, and replays, drops, exports and restores their messages.

mod archive;
mod dead_letter;
mod error;
mod groups;
mod hazard;
mod hazards;
mod inspection;
mod opened;
mod removal;
mod replay;
mod report;
mod restore;
mod selection;
mod state;

pub use archive::{ArchiveError, ArchivedMessage, archived, archived_line, rfc3339};
pub use dead_letter::{DeadLetter, Death};
pub use error::DlqError;
pub use groups::{Group, GroupKey, Groups};
pub use hazard::Hazard;
pub use inspection::{InspectOptions, Inspection, InspectionEnd, inspect};
pub use opened::HoldLimits;
pub use removal::{DropOptions, Store, drop_messages};
pub use replay::{
    Breaker, Destination, MAX_WAIT, ReplayOptions, ReplayPlan, ReplayTarget, ReturnPath, plan_replay, replay,
};
pub use report::{Continuation, HOLD_FULL, ReturnedMessage, RunCounts, RunEnd, RunReport};
pub use restore::{RestoreOptions, RestoreReport, check_restore, restore};
pub use selection::Selection;
pub use state::{DeadLetterQueue, VhostState};

// `render` does not import `broker`.
pub use crate::broker::message::{HeaderValue, MessageProperties, ReceivedMessage};
