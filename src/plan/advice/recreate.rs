//! Deleting and making again: the flags, with what that costs now.

use crate::model::Object;
use crate::model::count::number;
use crate::plan::document::PlannedChange;
use crate::plan::migrate;
use crate::plan::situation::Situation;
use crate::plan::way_out::{Helps, WayKind, WayOut};

/// The ways that end the live object.
pub(super) fn ways(situation: &Situation<'_>, planned: &PlannedChange) -> Vec<WayOut> {
    let address = &planned.address;
    let recreate = |words: &str, how: &str, helps: Helps| {
        let flag = format!("--recreate {address}={how}");
        WayOut { flag: Some(flag.clone()), ..WayOut::new(WayKind::Recreate, helps, format!("{words} {flag}")) }
    };
    let Some(Object::Queue(name, queue)) = &planned.before else {
        return vec![recreate("recreate it with all its bindings:", "discard", Helps::Yes)];
    };
    if migrate::is_unfinished(situation.current, name) {
        return vec![recreate("finish the migration that was cut short:", "migrate", Helps::Yes)];
    }
    let messages = planned.live.as_ref().and_then(|live| live.messages);
    match messages {
        // Whatever its count says: no stream can be proven empty.
        _ if queue.type_name() == "stream" => vec![
            WayOut::new(
                WayKind::Rename,
                Helps::Yes,
                "give the new stream another name, and drop the old one when it has been read".to_owned(),
            ),
            recreate("give up what is in it:", "discard", Helps::Yes),
        ],
        Some(0) => vec![recreate("recreate it, empty as it is:", "ifEmpty", Helps::Yes)],
        Some(messages) => {
            let its =
                if messages == 1 { "its message".to_owned() } else { format!("its {} messages", number(messages)) };
            vec![
                recreate(&format!("recreate it and keep {its}:"), "migrate", Helps::Yes),
                recreate("wait until it is empty, then", "ifEmpty", Helps::Partly),
                recreate(&format!("give up {its}:"), "discard", Helps::Yes),
            ]
        }
        None => vec![
            recreate("recreate it and keep its messages:", "migrate", Helps::Yes),
            recreate("recreate it if it is empty:", "ifEmpty", Helps::Partly),
            recreate("give up what is in it:", "discard", Helps::Yes),
        ],
    }
}
