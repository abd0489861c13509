//! What a broker refuses when an object is declared that does not exist yet.

mod deprecated;
mod exchange;
mod policy;
mod queue;

pub use queue::as_stored;

use super::Dialect;
use crate::model::Object;

/// Why a broker refuses an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What it names: an argument, a property, a key of a policy, in RabbitMQ's words.
    pub subject: String,
    /// The reason, for people.
    pub text: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// All that stands against a fresh declare, in the order in which the broker looks: it names the first one only. None, and
/// the broker takes it.
pub fn refusals(object: &Object, dialect: &Dialect) -> Vec<Refusal> {
    match object {
        Object::Queue(_, queue) => {
            let mut refusals = queue::refusals(queue, dialect);
            for refusal in deprecated::refusals(queue, dialect) {
                // A type that must be durable is refused for that, whatever is permitted.
                if refusals.iter().all(|known| known.subject != refusal.subject) {
                    refusals.push(refusal);
                }
            }
            refusals
        }
        Object::Exchange(_, exchange) => exchange::refusals(exchange, dialect),
        Object::Policy(_, policy) => policy::refusals(policy, dialect),
        Object::Vhost(_) | Object::Binding(_) => Vec::new(),
    }
}
