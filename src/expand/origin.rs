//! Defines the origin of an object in a spec. Origins are stored outside the topology, so that the topology does not
//! depend on specs.

use super::Expansion;
use crate::model::{Desired, ObjectId, Places, QueueName, Source};
use crate::spec::{Location, Spec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The origin of an object: its position in the spec, and the reason why it exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The file name, as passed on the command line.
    pub file: String,
    /// The line number, starting at 1.
    pub line: usize,
    /// The column number in characters, starting at 1.
    pub column: usize,
    /// The reason why the object exists.
    pub because: CreatedFor,
    /// The positions of the object's arguments.
    #[serde(skip_serializing_if = "Places::is_empty", default)]
    pub places: Places,
}

/// The reason why an object exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CreatedFor {
    /// The spec declares the object.
    Declared,
    /// The object is the exchange of a dead-letter queue.
    DeadLetterExchange(QueueName),
    /// The object is the binding from the exchange of a dead-letter queue to the queue.
    DeadLetterBinding(QueueName),
    /// The object is the policy that sets the dead-letter target of a queue.
    DeadLetterPolicy(QueueName),
    /// The object implements the retries of a queue.
    Retry(QueueName),
}

impl Origin {
    /// Creates an origin from a position in the spec.
    pub(crate) fn new(spec: &Spec, at: Location, because: CreatedFor) -> Self {
        let file = spec.files.get(at.file).cloned().unwrap_or_default();
        Self { file, line: at.line, column: at.column, because, places: Places::new() }
    }
}

/// Formats the origin as `topology.yaml:12:3`, followed by the reason if the object is generated.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)?;
        match &self.because {
            CreatedFor::Declared => Ok(()),
            CreatedFor::DeadLetterExchange(queue) => write!(f, " (dead-letter exchange of {queue})"),
            CreatedFor::DeadLetterBinding(queue) => write!(f, " (binding of dead-letter queue {queue})"),
            CreatedFor::DeadLetterPolicy(queue) => write!(f, " (dead-letter wiring of {queue})"),
            CreatedFor::Retry(queue) => write!(f, " (retries of {queue})"),
        }
    }
}

impl Expansion {
    /// Returns the queue whose retries require an object. Returns `None` if the object does not exist, or exists for a
    /// different reason.
    pub fn retry_owner(&self, id: &ObjectId) -> Option<&QueueName> {
        match &self.origins.get(id)?.because {
            CreatedFor::Retry(queue) => Some(queue),
            CreatedFor::Declared
            | CreatedFor::DeadLetterExchange(_)
            | CreatedFor::DeadLetterBinding(_)
            | CreatedFor::DeadLetterPolicy(_) => None,
        }
    }

    /// Converts the expansion into the input for a plan, with the position of each object in the spec.
    pub fn into_desired(self) -> Desired {
        let queues_with_exchange: BTreeSet<QueueName> = self
            .origins
            .values()
            .filter_map(|origin| match &origin.because {
                CreatedFor::DeadLetterExchange(queue) | CreatedFor::DeadLetterBinding(queue) => Some(queue.clone()),
                CreatedFor::Declared | CreatedFor::DeadLetterPolicy(_) | CreatedFor::Retry(_) => None,
            })
            .collect();
        let part_of = |id: &ObjectId, because: CreatedFor| match (id, because) {
            (ObjectId::Queue(name), _) => queues_with_exchange.get(name).cloned(),
            (_, CreatedFor::DeadLetterExchange(queue)) => Some(queue),
            (
                _,
                CreatedFor::Declared
                | CreatedFor::DeadLetterBinding(_)
                | CreatedFor::DeadLetterPolicy(_)
                | CreatedFor::Retry(_),
            ) => None,
        };
        let sources = self.origins.into_iter().map(|(id, origin)| {
            let Origin { file, line, column, because, places } = origin;
            let part_of = part_of(&id, because);
            (id, Source { file, line, column, part_of, places })
        });
        Desired { topology: self.topology, scope: self.scope, sources: sources.collect() }
    }
}
