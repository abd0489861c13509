//! Errors between topo and a broker. Each kind requires a different reaction of the user.
//!
//! `Display` is one sentence. It never holds a password, and URLs in it have no user info. The broker's own reason is
//! kept word for word.

use super::connect_problem::ConnectProblem;
use crate::model::count::count;
use crate::model::{Binding, BrokerVersion, QueueName, VhostName};
use std::time::Duration;

/// The reason why a broker could not be read, or did not process a request.
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
    /// AMQP and HTTP reach different brokers: nothing may be moved or deleted.
    #[error("the broker at {amqp} is not the broker at {url}: {reason}")]
    AnotherBroker {
        /// The AMQP address, without user info.
        amqp: String,
        /// The management URL, without user info.
        url: String,
        /// The difference between the two.
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
    /// 401: the user does not exist, or the password is wrong.
    #[error("login as user `{username}` failed: {reason}")]
    Unauthorized {
        /// The user name.
        username: String,
        /// The broker's words.
        reason: String,
    },
    /// 401 (403 on some): logged in, but without the permission for this.
    #[error("user `{username}` has no permission for {request}: {reason}")]
    AccessRefused {
        /// The user name.
        username: String,
        /// Method and path.
        request: String,
        /// The broker's words: `Access refused.`
        reason: String,
    },
    /// 401: the user lacks the tag for this part of the management API.
    #[error("user `{username}` lacks the tag for {request}: {reason}")]
    WrongTag {
        /// The user name.
        username: String,
        /// Method and path.
        request: String,
        /// The broker's words: `Not management user`.
        reason: String,
    },
    /// The response is not from a management API, but from a reverse proxy, a login page or another port.
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
        /// The content type of the response.
        content_type: Option<String>,
        /// The first 80 characters of its text, without tags.
        excerpt: String,
    },
    /// A redirect, which topo does not follow, because it would send the password elsewhere.
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
    #[error("the object exists with other properties: {reason}")]
    Inequivalent {
        /// Method and path.
        request: String,
        /// The broker's words: `inequivalent arg 'x-message-ttl' for queue …`.
        reason: String,
    },
    /// The object of the request, or one that it refers to, does not exist.
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
    #[error("the broker failed to process {request}: {status} {reason}")]
    Unavailable {
        /// Method and path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The broker's words, or a proxy's.
        reason: String,
    },
    /// The broker blocks publishers until its memory or disk alarm is over.
    #[error("{url} accepts no messages now (memory or disk alarm), so {request} was not answered")]
    Alarm {
        /// Without user info.
        url: String,
        /// What was asked.
        request: String,
    },
    /// A response that topo cannot parse.
    #[error("cannot parse the response to {request}: {detail}")]
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
    /// The broker does not report its RabbitMQ version.
    #[error("the broker does not report its RabbitMQ version (it identifies itself as {product} {said})")]
    VersionUnknown {
        /// Its product name.
        product: String,
        /// The version that it reported instead.
        said: String,
    },
    /// The broker is too old.
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
    /// The guard of a deletion: the queue contains messages. Nothing was deleted.
    #[error("queue {queue} is not empty and was left alone: it holds {}", held(*.messages))]
    NotEmpty {
        /// The queue.
        queue: QueueName,
        /// How many, when that is known.
        messages: Option<u64>,
    },
    /// The guard of a deletion: the queue contains more messages than may be lost. Nothing was deleted.
    #[error("queue {queue} was left alone: it holds {}, and at most {allowed} may be lost", held(Some(*.messages)))]
    MoreThanAllowed {
        /// The queue.
        queue: QueueName,
        /// How many it holds.
        messages: u64,
        /// How many may be lost.
        allowed: u64,
    },
    /// The guard of a deletion: the number of messages is unknown. Nothing was deleted.
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
        "queue {queue} accepts no messages: none of its members is running ({reason}); if no node that is down has a \
         member, delete the queue and apply again"
    )]
    NoMembers {
        /// The queue.
        queue: QueueName,
        /// The broker's words.
        reason: String,
    },
    /// 404 on the delete of a binding that is still listed.
    #[error(
        "binding {binding} cannot be deleted over HTTP: the management API misinterprets the routing keys `null` and `undefined`; \
         unbind it with an AMQP client"
    )]
    Undeletable {
        /// The binding.
        binding: Box<Binding>,
    },
    /// A binding was created between the plan and the deletion of its object. Nothing was deleted.
    #[error("{object} was left alone: a binding was added meanwhile ({binding}); run the command again to include it")]
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
    /// The broker accepted a request, but did not execute it.
    #[error(
        "the broker reported success, but {object} {}",
        if *.expected { "is not there" } else { "still exists, or was declared again" }
    )]
    NotVerified {
        /// The queue or exchange.
        object: String,
        /// Whether it should be there.
        expected: bool,
    },
    /// The broker accepted a request, but its result could not be verified.
    #[error("the broker reported success, but {object} could not be read afterwards: {reason}")]
    Unverifiable {
        /// The queue or exchange.
        object: String,
        /// Why not.
        reason: String,
    },
    /// A queue was not drained, or held messages did not return.
    #[error("the messages of queue {queue} were not moved: {reason}")]
    NotMoved {
        /// The queue.
        queue: QueueName,
        /// Why not.
        reason: String,
    },
    /// An unmanaged binding could not be restored after a recreate. Nothing was deleted.
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
        "binding {binding} was not created: with a `~` in the routing key and additional arguments, the management API \
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
        /// The description of its holder.
        holder: String,
        /// The node on which the lock is, if it is known to be down.
        down: Option<String>,
    },
    /// This run has lost the lock.
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
