//! Predicts the response to applications that declare the object themselves after it has been recreated.

use crate::diff::fields;
use crate::model::{Object, Queue, VhostName};
use crate::plan::context::PlanContext;
use crate::plan::verdict::{broker_error, is_refused_again, rank};

/// The broker's sentence for an application that still declares what was live, after a recreate; `None` where the broker
/// takes that, too. A passive declare is not compared.
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

/// What an application sees that declares the queue without `x-queue-type`, where that is not what the spec's words
/// already say: the broker puts its default in.
pub(in crate::plan) fn typeless_declare(context: &PlanContext<'_>, before: &Object, after: &Object) -> Option<String> {
    let (Object::Queue(_, live), Object::Queue(_, desired)) = (before, after) else { return None };
    let default = context.profile.default_queue_type.as_deref();
    let asked = |queue: &Queue| match default {
        // Only classic queues are transient or auto-delete: the broker then leaves its default aside.
        Some(default) if queue.durable && !queue.auto_delete => default,
        Some(_) | None => "classic",
    };
    let (live_type, desired_type) = (live.type_name(), desired.type_name());
    // Classic is what no default means, too: then the other sentences say it.
    if asked(live) == "classic" || live_type == desired_type && asked(live) == live_type {
        return None;
    }
    let answer = |is_taken: bool| if is_taken { "taken" } else { "refused" };
    let (now, then) = (answer(asked(live) == live_type), answer(asked(desired) == desired_type));
    let asked = asked(live);
    Some(format!("without x-queue-type it is {asked} here: {now} now, {then} after a recreate"))
}
