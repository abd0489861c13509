//! The table of known client libraries and frameworks: how they identify themselves to a broker, and how they react
//! when topo recreates a queue that they use.
//!
//! Plans and `docs/clients/` are based on this table. `tests/live/clients.rs` compares each row with the real client on
//! live brokers.

mod framework;
mod reference;
mod table;

pub use framework::Framework;
pub use reference::{overview, page};
pub use table::KNOWN_CLIENTS;

use super::scope::Glob;
use std::collections::BTreeSet;

/// A client library or a framework.
#[derive(Debug)]
pub struct KnownClient {
    /// The name, such as `Celery`.
    pub name: &'static str,
    /// The file name of the client's page in `docs/clients/`, without the extension.
    pub page: &'static str,
    /// The library that connects to the broker. Several frameworks can share a library.
    pub library: &'static Library,
    /// The name suffixes of the additional queues that exist for each of the framework's queues. Empty if the framework
    /// has no such queues; in that case, topo cannot distinguish it from other clients of the same library.
    pub sibling_queues: &'static [&'static str],
    /// The suffixes of the additional queues from which the framework consumes.
    pub consumed_suffixes: &'static [&'static str],
    /// The reaction of a running consumer when the broker cancels it because its queue is deleted.
    pub on_cancel: OnCancel,
    /// True if a worker that redeclares its queue after a cancel always does so within half a second. Other workers
    /// wait longer after the first redeclaration.
    pub redeclares_repeatedly: bool,
    /// The reaction of a running worker to a 404 error when it subscribes again before the queue is declared again.
    pub on_missing: OnMissing,
    /// The reaction of a running worker to a 406 error when it declares the queue again with the old arguments.
    pub on_mismatch: Reaction,
    /// The reaction of a starting worker to a 406 error when it declares the queue with different arguments.
    pub at_start: Reaction,
    /// The option that makes the client use the queue without declaring it; `None` if there is no such option.
    pub without_declaration: Option<&'static str>,
    /// Instructions for using a prefetch count per consumer, as Markdown, for a client that uses a global prefetch
    /// count by default. `None` for other clients.
    pub per_consumer_prefetch: Option<&'static str>,
    /// The objects that the client declares, as Markdown.
    pub declares: &'static str,
    /// The objects that the client declares for its own use. They do not belong in a spec.
    pub transient_objects: &'static [TransientObject],
    /// Additional facts and advice, as Markdown.
    pub advice: &'static str,
}

/// A group of queues and exchanges that a client declares for its own use, recognized by their names.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransientObject {
    /// A glob that matches the names.
    pub glob: &'static str,
    /// The words that can follow the last `_` in the names. Empty if any word can follow.
    pub last_words: &'static [&'static str],
    /// True if only queues with `x-expires` belong to the group.
    pub expires: bool,
    /// The purpose of the objects, as a noun phrase.
    pub purpose: &'static str,
}

impl TransientObject {
    /// Returns true if an object with this name belongs to the group.
    fn contains(&self, name: &str) -> bool {
        let last_word = || name.rsplit('_').next().unwrap_or_default();
        Glob::new(self.glob).matches(name) && (self.last_words.is_empty() || self.last_words.contains(&last_word()))
    }
}

/// A client library.
#[derive(Debug, PartialEq, Eq)]
pub struct Library {
    /// The name for users, such as `py-amqp`.
    pub name: &'static str,
    /// The value of `product` in the client properties of a connection.
    pub product: &'static str,
    /// The AMQP type that a 406 error shows if the client sends the number 1000: `received the value '1000' of type
    /// 'TYPE'`. Some libraries send the smallest type that can represent the number.
    pub integer_type: &'static str,
}

/// The reaction of a consumer to `basic.cancel` from the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCancel {
    /// Declares the queue again, with its own arguments, and subscribes.
    Declares,
    /// Subscribes again, without declaring the queue.
    Subscribes,
    /// The process ends.
    Exits,
    /// The process continues, but receives no more messages.
    Hangs,
    /// The client has no consumer, because it fetches messages with `basic.get`.
    NotCanceled,
}

/// The reaction of a running worker whose queue does not exist when it subscribes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnMissing {
    /// Subscribes again later, without declaring the queue.
    Subscribes,
    /// Opens a new channel, declares the queue and subscribes.
    Declares,
    /// The process ends.
    Exits,
}

/// The reaction of a worker to an error from the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The worker tries again, every few seconds.
    Retries,
    /// The process ends.
    Exits,
}

/// The state of a worker after topo has recreated its queue with different arguments, or has tried to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The worker receives messages.
    Continues,
    /// The process has ended.
    Exits,
    /// The process is running, but receives no messages.
    Hangs,
    /// The worker usually declares the old queue again before topo declares the new queue, so topo rolls back the
    /// migration. The worker continues to receive messages from the old queue. If the worker declares the old queue too
    /// late, it exits or hangs.
    CausesRollback,
}

impl KnownClient {
    /// Returns the state of a worker after its queue has been recreated with different arguments. `declares` is true if
    /// the worker declares the queue with the old arguments. `sees_missing_queue` is true if the worker tries to use
    /// the queue while the queue does not exist.
    pub fn outcome(&self, declares: bool, sees_missing_queue: bool) -> Outcome {
        let after_mismatch = match self.on_mismatch {
            Reaction::Exits => Outcome::Exits,
            Reaction::Retries => Outcome::Hangs,
        };
        match (self.on_cancel, self.on_missing) {
            (OnCancel::Exits, _) => Outcome::Exits,
            (OnCancel::Hangs, _) => Outcome::Hangs,
            (OnCancel::NotCanceled, OnMissing::Exits) if sees_missing_queue => Outcome::Exits,
            (OnCancel::NotCanceled, _) => Outcome::Continues,
            (OnCancel::Declares, _) if declares && sees_missing_queue && self.redeclares_repeatedly => {
                Outcome::CausesRollback
            }
            (OnCancel::Declares, _) if declares => after_mismatch,
            (OnCancel::Declares | OnCancel::Subscribes, OnMissing::Exits) if sees_missing_queue => Outcome::Exits,
            (OnCancel::Declares | OnCancel::Subscribes, OnMissing::Declares) if sees_missing_queue && declares => {
                after_mismatch
            }
            (OnCancel::Declares | OnCancel::Subscribes, _) => Outcome::Continues,
        }
    }
}

/// Returns the clients that could be consuming from `queue` on a connection with this `product`. Returns several
/// clients if topo cannot distinguish them, and none for an unknown product. `exists` returns true if the vhost has a
/// queue with the given name.
pub fn candidates(product: &str, queue: &str, exists: impl Fn(&str) -> bool) -> Vec<&'static KnownClient> {
    // A client that fetches messages with `basic.get` is not a candidate, because it has no consumers.
    let consumes = |client: &&KnownClient| client.on_cancel != OnCancel::NotCanceled;
    let of_product = || KNOWN_CLIENTS.iter().filter(|client| client.library.product == product).filter(consumes);
    let has_siblings = |client: &&KnownClient| {
        let stem = client.consumed_suffixes.iter().find_map(|suffix| queue.strip_suffix(suffix)).unwrap_or(queue);
        !client.sibling_queues.is_empty() && client.sibling_queues.iter().all(|it| exists(&format!("{stem}{it}")))
    };
    match of_product().find(has_siblings) {
        Some(client) => vec![client],
        None => of_product().filter(|client| client.sibling_queues.is_empty()).collect(),
    }
}

/// Returns the client that declares a queue or an exchange for its own use, and the group that contains the object.
/// `expires` is true for a queue with `x-expires`.
pub fn owner_of_transient(name: &str, expires: bool) -> Option<(&'static KnownClient, &'static TransientObject)> {
    let groups = KNOWN_CLIENTS.iter().flat_map(|client| client.transient_objects.iter().map(move |it| (client, it)));
    let mut matching = groups.filter(|(_, group)| expires || !group.expires);
    matching.find(|(_, group)| group.contains(name))
}

/// Returns the distinct libraries in the table, sorted by name.
pub fn libraries() -> Vec<&'static Library> {
    let mut seen = BTreeSet::new();
    let mut libraries: Vec<_> = KNOWN_CLIENTS.iter().map(|client| client.library).collect();
    libraries.retain(|library| seen.insert(library.name));
    libraries.sort_by_key(|library| library.name.to_lowercase());
    libraries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framework_is_recognized_by_its_additional_queues() {
        let names = |queue: &str, exists: &[&str]| -> Vec<&str> {
            let found = candidates("Pika Python Client Library", queue, |name| exists.contains(&name));
            found.iter().map(|client| client.name).collect()
        };
        assert_eq!(names("jobs", &["jobs"]), ["pika"]);
        assert_eq!(names("jobs", &["jobs", "jobs.DQ", "jobs.XQ"]), ["dramatiq"]);
        assert_eq!(names("jobs.DQ", &["jobs", "jobs.DQ", "jobs.XQ"]), ["dramatiq"]);
        assert_eq!(
            names("jobs.XQ", &["jobs", "jobs.DQ", "jobs.XQ"]),
            ["pika"],
            "dramatiq does not consume dead letters"
        );
        assert!(candidates("RabbitMQ", "jobs", |_| true).is_empty());
        assert!(candidates("rabbitmq-c", "jobs", |_| true).is_empty(), "Symfony has no consumers");
    }

    #[test]
    fn transient_objects_are_recognized_by_their_names() {
        for (name, expires, expected) in [
            ("celery@host.celery.pidbox", false, Some(("Celery", "remote control"))),
            ("reply.celery.pidbox", false, Some(("Celery", "remote control"))),
            ("celeryev.5b3f", true, Some(("Celery", "events"))),
            ("celery_delayed_27", false, Some(("Celery", "delayed delivery"))),
            ("shop_celery_delayed_delivery", false, Some(("Celery", "delayed delivery"))),
            ("celery", false, None),
            ("celeryev", false, None),
            ("delay_messages__5000_delay", true, Some(("Symfony", "delayed messages"))),
            ("delay_messages__5000_retry", true, Some(("Symfony", "retries"))),
            ("delay_messages__5000_delay", false, None),
            ("delay_30s", true, None),
            ("my_celery_delayed_jobs", false, None),
            ("celery_delayed_28", false, None),
            ("jobs.DQ", true, None),
        ] {
            let found = owner_of_transient(name, expires).map(|(client, group)| (client.name, group.purpose));
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn names_and_pages_are_unique() {
        let names: BTreeSet<_> = KNOWN_CLIENTS.iter().map(|client| client.name).collect();
        let pages: BTreeSet<_> = KNOWN_CLIENTS.iter().map(|client| client.page).collect();
        assert_eq!((names.len(), pages.len()), (KNOWN_CLIENTS.len(), KNOWN_CLIENTS.len()));
        let mut by_name: Vec<_> = KNOWN_CLIENTS.iter().map(|client| client.name.to_lowercase()).collect();
        by_name.sort();
        assert!(KNOWN_CLIENTS.iter().map(|client| client.name.to_lowercase()).eq(by_name));
    }
}
