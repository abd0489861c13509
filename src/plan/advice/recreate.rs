//! Lists the recreates that resolve a conflict: their flags, with their effect on the current messages.

use crate::model::Object;
use crate::model::count::number;
use crate::plan::context::PlanContext;
use crate::plan::document::PlannedChange;
use crate::plan::migrate;
use crate::plan::resolution::{Applicability, Resolution, ResolutionKind};

/// Returns the resolutions that delete the current object.
pub(super) fn resolutions(context: &PlanContext<'_>, planned: &PlannedChange) -> Vec<Resolution> {
    let address = &planned.address;
    let recreate = |intro: &str, how: &str, applicability: Applicability| {
        let flag = format!("--recreate {address}={how}");
        Resolution {
            flag: Some(flag.clone()),
            ..Resolution::new(ResolutionKind::Recreate, applicability, format!("{intro} {flag}"))
        }
    };
    let Some(Object::Queue(name, queue)) = &planned.before else {
        return vec![recreate("recreate it with all its bindings:", "discard", Applicability::Yes)];
    };
    if migrate::is_interrupted(context.current, name) {
        return vec![recreate("finish the interrupted migration:", "migrate", Applicability::Yes)];
    }
    let messages = planned.live.as_ref().and_then(|live| live.messages);
    match messages {
        // A stream cannot be proven empty, whatever its count is.
        _ if queue.type_name() == "stream" => vec![
            Resolution::new(
                ResolutionKind::Rename,
                Applicability::Yes,
                "give the new stream another name, and delete the old one when it has been read".to_owned(),
            ),
            recreate("discard its messages:", "discard", Applicability::Yes),
        ],
        Some(0) => vec![recreate("recreate it (the queue is empty):", "ifEmpty", Applicability::Yes)],
        Some(messages) => {
            let its =
                if messages == 1 { "its message".to_owned() } else { format!("its {} messages", number(messages)) };
            vec![
                recreate(&format!("recreate it and keep {its}:"), "migrate", Applicability::Yes),
                recreate("wait until it is empty, then", "ifEmpty", Applicability::Partly),
                recreate(&format!("discard {its}:"), "discard", Applicability::Yes),
            ]
        }
        None => vec![
            recreate("recreate it and keep its messages:", "migrate", Applicability::Yes),
            recreate("recreate it if it is empty:", "ifEmpty", Applicability::Partly),
            recreate("discard its messages:", "discard", Applicability::Yes),
        ],
    }
}
