//! Queues that are refused.

use super::Refusal;
use crate::behaviour::Dialect;
use crate::model::known_arguments::KNOWN_ARGUMENTS;
use crate::model::{Queue, QueueType};

pub(super) fn refusals(queue: &Queue, dialect: &Dialect) -> Vec<Refusal> {
    let version = dialect.version;
    let Some(queue_type) = queue.queue_type() else { return Vec::new() };
    if queue_type == QueueType::Stream && !version.is_at_least(3, 9) {
        return vec![Refusal {
            subject: "x-queue-type".to_owned(),
            text: format!("streams exist since RabbitMQ 3.9, this is {version}"),
            hint: None,
        }];
    }
    // 3.8 looks at the value only, and takes any known argument on any type (`declare_args`, 3.8.35).
    if !version.is_at_least(3, 9) {
        return Vec::new();
    }
    KNOWN_ARGUMENTS
        .iter()
        .filter(|known| queue.arguments.contains_key(known.name) && !known.is_taken(queue_type, version))
        .map(|known| {
            let since = known.support_for(queue_type).map(|support| support.taken);
            let text = match since {
                Some((major, minor)) => {
                    format!("{queue_type} queues take {} since RabbitMQ {major}.{minor}, this is {version}", known.name)
                }
                None => format!("{queue_type} queues do not take {}", known.name),
            };
            let hint = Some(format!("take `{}` out of the spec", known.key));
            Refusal { subject: known.name.to_owned(), text, hint }
        })
        .collect()
}
