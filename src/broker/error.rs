//! What can go wrong between topo and a broker. Each kind is one that a person mends differently.
//!
//! `Display` is one sentence. It never holds a password, and URLs in it have no user info. The broker's own reason is
//! kept word for word.

use super::connect_problem::ConnectProblem;
use crate::model::count::count;
use crate::model::{Binding, BrokerVersion, QueueName, VhostName};
use std::time::Duration;

/// Why a broker could not be read, or did not do what was asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BrokerError {
    /// A certificate or key that was given cannot be used; nothing was sent.
    #[error("the {what} cannot be used: {reason}")]
    Certificate {
        /// `CA certificate`, say.
        what: &'static str,
        /// The TLS library's words.
        reason: String,
    },
    /// No connection, or it broke.
    #[error("cannot connect to {url}: {problem}")]
    Connect {
        /// Without user info.
        url: String,
        /// What went wrong.
        problem: ConnectProblem,
    },
    /// What answers over AMQP is not the broker that answers over HTTP: nothing may be moved there, and nothing deleted.
    #[error("the broker at {amqp} is another one than the broker at {url}: {reason}")]
    AnotherBroker {
        /// The AMQP address, without user info.
        amqp: String,
        /// The management URL, without user info.
        url: String,
        /// What the one has and the other has not.
        reason: String,
    },
    /// No answer in time.
    #[error("{url} did not answer {request} within {}", humantime::format_duration(*.after))]
    Timeout {
        /// Without user info.
        url: String,
        /// Method and path.
        request: String,
        /// The limit.
        after: Duration,
    },
    /// 401: who logs in is not known, or the password is wrong.
    #[error("login as user `{username}` failed: {reason}")]
    Unauthorized {
        /// As whom.
        username: String,
        /// The broker's words.
        reason: String,
    },
    /// 401 (403 on some): logged in, but without the permission for this.
    #[error("user `{username}` has no permission for {request}: {reason}")]
    AccessRefused {
        /// As whom.
        username: String,
        /// Method and path.
        request: String,
        /// The broker's words: `Access refused.`
        reason: String,
    },
    /// 401: the user lacks the tag for this part of the management API.
    #[error("user `{username}` lacks the tag for {request}: {reason}")]
    WrongTag {
        /// As whom.
        username: String,
        /// Method and path.
        request: String,
        /// The broker's words: `Not management user`.
        reason: String,
    },
    /// Something answered, but no management API: a reverse proxy, a login page, another port.
    #[error(
        "{url} is not a RabbitMQ management API: it answered {status} with {} for {request}{}",
        .content_type.as_deref().unwrap_or("no content type"),
        if .excerpt.is_empty() { String::new() } else { format!(": {}", .excerpt) }
    )]
    NotManagementApi {
        /// Without user info.
        url: String,
        /// Method and path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// What it said it sent.
        content_type: Option<String>,
        /// The first 80 characters of its text, without tags.
        excerpt: String,
    },
    /// A redirect, which topo does not follow: it would carry the password to somewhere else.
    #[error("{url} redirects to {to}; use that URL if it is the broker's")]
    Redirected {
        /// Without user info.
        url: String,
        /// Where to, without user info and query.
        to: String,
    },
    /// The broker refused what was asked: 400, mostly.
    #[error("the broker refused {request}: {status} {reason}")]
    Refused {
        /// Method and path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The broker's words.
        reason: String,
    },
    /// The object exists with other properties; an AMQP client gets the same words as `406 PRECONDITION_FAILED`.
    #[error("the broker has it with other properties: {reason}")]
    Inequivalent {
        /// Method and path.
        request: String,
        /// The broker's words: `inequivalent arg 'x-message-ttl' for queue …`.
        reason: String,
    },
    /// What was asked for, or what it refers to, is not there.
    #[error("not found, {request}: {reason}")]
    NotFound {
        /// Method and path.
        request: String,
        /// The broker's words.
        reason: String,
    },
    /// 404, but the queue exists: its node is down.
    #[error("{request} is not possible now: {reason}")]
    HomeNodeDown {
        /// Method and path.
        request: String,
        /// The broker's words.
        reason: String,
    },
    /// 429, 5xx, or an operation that timed out inside the broker; it was tried again until the attempts ran out.
    #[error("the broker could not do {request}: {status} {reason}")]
    Unavailable {
        /// Method and path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The broker's words, or a proxy's.
        reason: String,
    },
    /// The broker reads nothing from whoever publishes, until its alarm of memory or disk is over.
    #[error("{url} takes no messages now (it has an alarm of memory or disk), so {request} was not answered")]
    Alarm {
        /// Without user info.
        url: String,
        /// What was asked.
        request: String,
    },
    /// An answer that makes no sense to topo.
    #[error("the answer to {request} cannot be understood: {detail}")]
    Malformed {
        /// Method and path.
        request: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A name that the management API cannot carry.
    #[error("{request} cannot be sent: the management API cannot address an object named `{segment}`")]
    Unaddressable {
        /// Method and path.
        request: String,
        /// The name.
        segment: String,
    },
    /// The broker does not say which RabbitMQ it is.
    #[error("the broker does not say which version of RabbitMQ it is (it calls itself {product} {said})")]
    VersionUnknown {
        /// Its product name.
        product: String,
        /// What it gave instead.
        said: String,
    },
    /// It is a broker, and too old.
    #[error(
        "{product} {version} is too old: topo supports RabbitMQ {} and later",
        BrokerVersion::OLDEST_SUPPORTED.series()
    )]
    VersionTooOld {
        /// Its product name.
        product: String,
        /// Its version.
        version: BrokerVersion,
    },
    /// The guard of a delete: it holds messages. Nothing was deleted.
    #[error("queue {queue} is not empty, it was left alone: it holds {}", held(*.messages))]
    NotEmpty {
        /// The queue.
        queue: QueueName,
        /// How many, when that is known.
        messages: Option<u64>,
    },
    /// The guard of a delete: it holds more than was allowed to be lost. Nothing was deleted.
    #[error("queue {queue} was left alone: it holds {}, and no more than {allowed} may be lost", held(Some(*.messages)))]
    MoreThanAllowed {
        /// The queue.
        queue: QueueName,
        /// How many it holds.
        messages: u64,
        /// How many may be lost.
        allowed: u64,
    },
    /// The guard of a delete: what it holds cannot be told. Nothing was deleted.
    #[error("queue {queue} was left alone: {reason}")]
    EmptinessUnknown {
        /// The queue.
        queue: QueueName,
        /// Why not.
        reason: String,
    },
    /// A quorum queue is listed, and there is nothing behind the name: a node died while it was declared or deleted. Nothing
    /// was deleted.
    #[error(
        "queue {queue} takes no messages: none of its members runs ({reason}); unless a node that is down comes back with \
         it, delete it, and apply again"
    )]
    NoMembers {
        /// The queue.
        queue: QueueName,
        /// The broker's words.
        reason: String,
    },
    /// 404 on the delete of a binding that is still listed.
    #[error(
        "binding {binding} cannot be deleted over HTTP: the management API takes the routing keys `null` and `undefined` \
         for something else; unbind it with an AMQP client"
    )]
    Undeletable {
        /// The binding.
        binding: Box<Binding>,
    },
    /// A binding came into being between the plan and the deletion that would take it along. Nothing was deleted.
    #[error("{object} was left alone: somebody bound it meanwhile ({binding}); run again to take that binding along")]
    BoundMeanwhile {
        /// The queue or exchange.
        object: String,
        /// The binding.
        binding: String,
    },
    /// Topic permissions changed between the plan and the deletion of their exchange. Nothing was deleted.
    #[error("{object} was left alone: its topic permissions changed meanwhile; run the command again")]
    TopicPermissionsChanged {
        /// The exchange.
        object: String,
    },
    /// The broker took a request and did not do it.
    #[error(
        "the broker said done, but {object} {}",
        if *.expected { "is not there" } else { "is still there, or somebody declared it again" }
    )]
    NotVerified {
        /// The queue or exchange.
        object: String,
        /// Whether it should be there.
        expected: bool,
    },
    /// The broker took a request, and whether it did it could not be read.
    #[error("the broker said done, but {object} could not be looked at afterwards: {reason}")]
    Unverifiable {
        /// The queue or exchange.
        object: String,
        /// Why not.
        reason: String,
    },
    /// A queue was not emptied, or what was held did not come back.
    #[error("the messages of queue {queue} were not moved: {reason}")]
    NotMoved {
        /// The queue.
        queue: QueueName,
        /// Why not.
        reason: String,
    },
    /// A binding of somebody else could not be made again after a recreate. Nothing was deleted.
    #[error("{object} was left alone: its binding {binding} could not be restored ({reason})")]
    NotRestorable {
        /// The queue or exchange.
        object: String,
        /// The binding.
        binding: String,
        /// The broker's words.
        reason: String,
    },
    /// A topic permission could not be restored after a recreate. Nothing was deleted.
    #[error("{object} was left alone: the {permission} could not be restored ({reason})")]
    TopicPermissionNotRestorable {
        /// The exchange.
        object: String,
        /// The topic permission.
        permission: String,
        /// The broker's words.
        reason: String,
    },
    /// A binding that would make the list of bindings of its whole vhost unreadable. It was not sent.
    #[error(
        "binding {binding} was not created: with a `~` in the routing key and arguments beside it, the management API \
         answers 500 to every later list of the vhost's bindings"
    )]
    Unlistable {
        /// The binding.
        binding: Box<Binding>,
    },
    /// Another apply holds the lock.
    #[error("vhost {vhost} is locked by {holder}{}", down.as_ref().map_or_else(String::new, |node| format!("; {node}, the node of the lock, is down")))]
    LockHeld {
        /// The vhost.
        vhost: VhostName,
        /// The queue that is the lock.
        queue: QueueName,
        /// Who holds it, in their own words.
        holder: String,
        /// The node on which the lock is, if it is known to be down.
        down: Option<String>,
    },
    /// The lock was ours and no longer is.
    #[error("the lock on vhost {vhost} was lost: {reason}")]
    LockLost {
        /// The vhost.
        vhost: VhostName,
        /// How.
        reason: String,
    },
}

fn held(messages: Option<u64>) -> String {
    match messages {
        Some(messages) => count(messages, "message"),
        None => "an unknown number of messages".to_owned(),
    }
}
