//! Predicts the broker's response to applications that declare the object themselves after it has been recreated.

use crate::diff::fields;
use crate::model::{Object, Queue, VhostName};
use crate::plan::context::PlanContext;
use crate::plan::verdict::{broker_error, is_refused_again, rank};

/// Returns the broker's error message for an application that still declares the current object after a recreate.
/// Returns `None` if the broker accepts that declare. A passive declare is not compared.
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

/// Describes the result of a declare without `x-queue-type`, for which the broker uses its default type. Returns `None`
/// if the other error messages already cover it.
pub(in crate::plan) fn typeless_declare(context: &PlanContext<'_>, before: &Object, after: &Object) -> Option<String> {
    let (Object::Queue(_, live), Object::Queue(_, desired)) = (before, after) else { return None };
    let default = context.profile.default_queue_type.as_deref();
    let declared_type = |queue: &Queue| match default {
        // The broker uses its default only for durable queues that are not auto-delete: others must be classic.
        Some(default) if queue.durable && !queue.auto_delete => default,
        Some(_) | None => "classic",
    };
    let (live_type, desired_type) = (live.type_name(), desired.type_name());
    // Without a default, the type is classic, too: the other error messages cover that case.
    if declared_type(live) == "classic" || live_type == desired_type && declared_type(live) == live_type {
        return None;
    }
    let result = |is_accepted: bool| if is_accepted { "accepted" } else { "refused" };
    let (now, then) = (result(declared_type(live) == live_type), result(declared_type(desired) == desired_type));
    let declared_type = declared_type(live);
    Some(format!("without x-queue-type it is {declared_type} here: {now} now, {then} after a recreate"))
}
