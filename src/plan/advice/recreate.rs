//! Builds the resolutions that recreate or rename an object, with their flags and their effects on the current
//! messages. Also builds the YAML for resolutions, and predicts the broker's response to applications that declare the
//! object after it is recreated.

use crate::diff::fields;
use crate::model::count::number;
use crate::model::yaml::{Tree, scalar};
use crate::model::{Object, Queue, VhostName};
use crate::plan::context::PlanContext;
use crate::plan::document::PlannedChange;
use crate::plan::migrate;
use crate::plan::resolution::{Applicability, Resolution, ResolutionKind};
use crate::plan::verdict::{broker_error, is_refused_again, rank};
use std::fmt::Write;

/// Returns the resolutions that replace the current object instead of changing the spec.
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
        return vec![recreate("resume the interrupted migration:", "migrate", Applicability::Yes)];
    }
    let messages = planned.live.as_ref().and_then(|live| live.messages);
    match messages {
        // A stream cannot be proven empty, regardless of its message count.
        _ if queue.type_name() == "stream" => vec![
            Resolution::new(
                ResolutionKind::Rename,
                Applicability::Yes,
                "give the new stream a different name, and delete the old one once consumers have read it".to_owned(),
            ),
            recreate("discard its messages:", "discard", Applicability::Yes),
        ],
        Some(0) => vec![recreate("recreate it (the queue is empty):", "ifEmpty", Applicability::Yes)],
        Some(messages) => {
            let its_messages =
                if messages == 1 { "its message".to_owned() } else { format!("its {} messages", number(messages)) };
            vec![
                recreate(&format!("recreate it and keep {its_messages}:"), "migrate", Applicability::Yes),
                recreate("wait until it is empty, then", "ifEmpty", Applicability::Partly),
                recreate(&format!("discard {its_messages}:"), "discard", Applicability::Yes),
            ]
        }
        None => vec![
            recreate("recreate it and keep its messages:", "migrate", Applicability::Yes),
            recreate("recreate it if it is empty:", "ifEmpty", Applicability::Partly),
            recreate("discard its messages:", "discard", Applicability::Yes),
        ],
    }
}

/// A YAML document that is built key by key, in block style.
pub(super) struct Fragment {
    remarks: Vec<String>,
    tree: Tree,
}

impl Default for Fragment {
    fn default() -> Self {
        Self { remarks: Vec::new(), tree: Tree::table([]).block() }
    }
}

impl Fragment {
    /// Sets the value at a path of keys.
    pub(super) fn set(&mut self, path: &[&str], value: Tree) {
        self.tree.set(path, value);
    }

    /// Sets the comments above the key at a path. Does nothing if the path does not exist.
    pub(super) fn comment(&mut self, path: &[&str], comments: Vec<String>) {
        self.tree.comment(path, comments);
    }

    /// Adds a comment above the document.
    pub(super) fn remark(&mut self, text: &str) {
        self.remarks.push(scalar::comment(text));
    }

    /// Returns the YAML document; `None` if no key is set.
    pub(super) fn text(&self) -> Option<String> {
        if self.tree.is_empty() {
            return None;
        }
        let mut text = String::new();
        for remark in &self.remarks {
            let _ = writeln!(text, "# {remark}");
        }
        Some(text + &self.tree.document())
    }
}

/// Returns the broker's error message for an application that still declares the current object after topo recreates
/// it; `None` if the broker would accept the declaration. A passive declaration does not cause this error.
pub(in crate::plan) fn error_after_recreate(
    context: &PlanContext<'_>,
    before: &Object,
    after: &Object,
) -> Option<String> {
    let vhost: &VhostName = &context.current.vhost;
    let reversed = fields(after, before);
    let profile = context.profile;
    let refused = |field: &&_| is_refused_again(field, after, before, profile);
    let first = reversed.iter().filter(refused).min_by_key(|field| rank(&field.field, after, profile))?;
    Some(broker_error(vhost, before, first, context.profile))
}

/// Describes the result of a declaration without `x-queue-type`, for which the broker uses its default type. Returns
/// `None` for an exchange, or if the other error messages already cover this case.
pub(in crate::plan) fn typeless_declare(context: &PlanContext<'_>, before: &Object, after: &Object) -> Option<String> {
    let (Object::Queue(_, live), Object::Queue(_, desired)) = (before, after) else { return None };
    let default = context.profile.default_queue_type.as_deref();
    let declared_type = |queue: &Queue| match default {
        // The broker uses its default only for durable queues that are not auto-delete. All other queues are classic.
        Some(default) if queue.durable && !queue.auto_delete => default,
        Some(_) | None => "classic",
    };
    let (live_type, desired_type) = (live.type_name(), desired.type_name());
    // If the declared type is classic, the other error messages cover this case.
    if declared_type(live) == "classic" || live_type == desired_type && declared_type(live) == live_type {
        return None;
    }
    let result = |is_accepted: bool| if is_accepted { "accepted" } else { "refused" };
    let (now, then) = (result(declared_type(live) == live_type), result(declared_type(desired) == desired_type));
    let declared_type = declared_type(live);
    Some(format!(
        "without x-queue-type, a declaration requests a {declared_type} queue: {now} now, {then} after recreation"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_above_the_keys() {
        let mut fragment = Fragment::default();
        assert_eq!(fragment.text(), None);
        fragment.set(&["queues", "a: b", "messageTtl"], Tree::plain("1m"));
        fragment.set(&["exchanges", "old", "external"], Tree::plain(true));
        fragment.comment(&["exchanges", "old"], vec!["second".to_owned()]);
        fragment.remark("first\nline");
        let expected = "# first\\nline\nqueues:\n  \"a: b\":\n    messageTtl: 1m\nexchanges:\n  # second\n  old:\n    \
                        external: true\n";
        assert_eq!(fragment.text().unwrap(), expected);
    }
}
