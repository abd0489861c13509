//! Errors between topo and a broker. Each kind requires a different reaction of the user.
//!
//! `Display` is one sentence, with the unchanged reason of the broker. It contains no passwords, and its URLs have no
//! user info.

use super::connect_problem::ConnectProblem;
use crate::model::count::count;
use crate::model::{Binding, BrokerVersion, QueueName, VhostName};
use std::time::Duration;

/// The reason why a broker could not be read, or did not process a request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BrokerError {
    /// A given certificate or key cannot be used. No request was sent.
    #[error("the {what} cannot be used: {reason}")]
    Certificate {
        /// The kind of file, such as `CA certificate`.
        what: &'static str,
        /// The message of the TLS library.
        reason: String,
    },
    /// The connection failed or was lost.
    #[error("cannot connect to {url}: {problem}")]
    Connect {
        /// The URL without user info.
        url: String,
        /// The reason.
        problem: ConnectProblem,
    },
    /// AMQP and HTTP reach different brokers, so topo must not move or delete anything.
    #[error("the broker at {amqp} is not the broker at {url}: {reason}")]
    AnotherBroker {
        /// The AMQP address, without user info.
        amqp: String,
        /// The management URL, without user info.
        url: String,
        /// The difference between the two.
        reason: String,
    },
    /// The broker did not respond in time.
    #[error("{url} did not answer {request} within {}", humantime::format_duration(*.after))]
    Timeout {
        /// The URL without user info.
        url: String,
        /// The method and the path.
        request: String,
        /// The limit.
        after: Duration,
    },
    /// 401: the user does not exist, or the password is wrong.
    #[error("login as user `{username}` failed: {reason}")]
    Unauthorized {
        /// The user name.
        username: String,
        /// The reason of the broker.
        reason: String,
    },
    /// 401, or 403 on some brokers: the user has no permission for the request.
    #[error("user `{username}` has no permission for {request}: {reason}")]
    AccessRefused {
        /// The user name.
        username: String,
        /// The method and the path.
        request: String,
        /// The reason of the broker: `Access refused.`
        reason: String,
    },
    /// 401: the user lacks the tag for this part of the management API.
    #[error("user `{username}` lacks the tag for {request}: {reason}")]
    WrongTag {
        /// The user name.
        username: String,
        /// The method and the path.
        request: String,
        /// The reason of the broker: `Not management user`.
        reason: String,
    },
    /// The response is not from a management API, but from a reverse proxy, a login page or another port.
    #[error(
        "{url} is not a RabbitMQ management API: it answered {status} with {} for {request}{}",
        .content_type.as_deref().unwrap_or("no content type"),
        if .excerpt.is_empty() { String::new() } else { format!(": {}", .excerpt) }
    )]
    NotManagementApi {
        /// The URL without user info.
        url: String,
        /// The method and the path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The content type of the response.
        content_type: Option<String>,
        /// The first 80 characters of its text, without tags.
        excerpt: String,
    },
    /// A redirect. topo does not follow it, because that would send the password elsewhere.
    #[error("{url} redirects to {to}; use that URL if it is the broker's")]
    Redirected {
        /// The URL without user info.
        url: String,
        /// The target, without user info and query.
        to: String,
    },
    /// The broker refused the request, usually with 400.
    #[error("the broker refused {request}: {status} {reason}")]
    Refused {
        /// The method and the path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The reason of the broker.
        reason: String,
    },
    /// The object exists with other properties. An AMQP client gets the same reason as `406 PRECONDITION_FAILED`.
    #[error("the object exists with other properties: {reason}")]
    Inequivalent {
        /// The method and the path.
        request: String,
        /// The reason of the broker: `inequivalent arg 'x-message-ttl' for queue …`.
        reason: String,
    },
    /// The object of the request, or one that it refers to, does not exist.
    #[error("not found, {request}: {reason}")]
    NotFound {
        /// The method and the path.
        request: String,
        /// The reason of the broker.
        reason: String,
    },
    /// 404, although the queue exists: its node is down.
    #[error("{request} is not possible now: {reason}")]
    HomeNodeDown {
        /// The method and the path.
        request: String,
        /// The reason of the broker.
        reason: String,
    },
    /// 429, 5xx, or an operation that timed out inside the broker. All retries failed.
    #[error("the broker failed to process {request}: {status} {reason}")]
    Unavailable {
        /// The method and the path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The reason of the broker or of a proxy.
        reason: String,
    },
    /// The broker blocks publishers until its memory or disk alarm is over.
    #[error("{url} accepts no messages now (memory or disk alarm), so {request} was not answered")]
    Alarm {
        /// The URL without user info.
        url: String,
        /// The operation.
        request: String,
    },
    /// A response that topo cannot parse.
    #[error("cannot parse the response to {request}: {detail}")]
    Malformed {
        /// The method and the path.
        request: String,
        /// The reason.
        detail: String,
    },
    /// A name that the management API cannot carry.
    #[error("{request} cannot be sent: the management API cannot address an object named `{segment}`")]
    Unaddressable {
        /// The method and the path.
        request: String,
        /// The name.
        segment: String,
    },
    /// The broker does not report its RabbitMQ version.
    #[error("the broker does not report its RabbitMQ version (it identifies itself as {product} {reported})")]
    VersionUnknown {
        /// The name of the product.
        product: String,
        /// The reported version, if any.
        reported: String,
    },
    /// The broker is too old.
    #[error(
        "{product} {version} is too old: topo supports RabbitMQ {} and later",
        BrokerVersion::OLDEST_SUPPORTED.series()
    )]
    VersionTooOld {
        /// The name of the product.
        product: String,
        /// The RabbitMQ version.
        version: BrokerVersion,
    },
    /// The guard of a deletion: the queue contains messages. Nothing was deleted.
    #[error("queue {queue} was not deleted: it is not empty and holds {}", message_count(*.messages))]
    NotEmpty {
        /// The queue.
        queue: QueueName,
        /// The number of messages, if known.
        messages: Option<u64>,
    },
    /// The guard of a deletion: the queue contains more messages than may be lost. Nothing was deleted.
    #[error(
        "queue {queue} was not deleted: it holds {}, and at most {allowed} may be lost",
        message_count(Some(*.messages))
    )]
    MoreThanAllowed {
        /// The queue.
        queue: QueueName,
        /// The number of messages.
        messages: u64,
        /// The maximum number of messages that may be lost.
        allowed: u64,
    },
    /// The guard of a deletion: the number of messages is unknown. Nothing was deleted.
    #[error("queue {queue} was not deleted: {reason}")]
    EmptinessUnknown {
        /// The queue.
        queue: QueueName,
        /// The reason.
        reason: String,
    },
    /// A quorum queue is listed, but none of its members runs: a node stopped while the queue was declared or deleted.
    /// Nothing was deleted.
    #[error(
        "queue {queue} accepts no messages: none of its members is running ({reason}); unless a node that is down hosts \
         a member, delete the queue and apply again"
    )]
    NoMembers {
        /// The queue.
        queue: QueueName,
        /// The reason of the broker.
        reason: String,
    },
    /// 404 on the delete of a binding that is still listed.
    #[error(
        "binding {binding} cannot be deleted over HTTP: the management API misinterprets the routing keys `null` and \
         `undefined`; unbind it with an AMQP client"
    )]
    Undeletable {
        /// The binding.
        binding: Box<Binding>,
    },
    /// A binding was created between the plan and the deletion of its object. Nothing was deleted.
    #[error(
        "{object} was not deleted: a binding was added in the meantime ({binding}); run the command again to \
             include it"
    )]
    BoundMeanwhile {
        /// The queue or exchange.
        object: String,
        /// The binding.
        binding: String,
    },
    /// Topic permissions changed between the plan and the deletion of their exchange. Nothing was deleted.
    #[error(
        "{object} was not deleted: its topic permissions have changed since the plan was made; run the command \
             again"
    )]
    TopicPermissionsChanged {
        /// The exchange.
        object: String,
    },
    /// The broker accepted a request, but did not execute it.
    #[error(
        "the broker reported success, but {object} {}",
        if *.expected { "does not exist" } else { "still exists, or was declared again" }
    )]
    NotVerified {
        /// The queue or exchange.
        object: String,
        /// True if the object should exist.
        expected: bool,
    },
    /// The broker accepted a request, but its result could not be verified.
    #[error("the broker reported success, but {object} could not be read afterwards: {reason}")]
    Unverifiable {
        /// The queue or exchange.
        object: String,
        /// The reason.
        reason: String,
    },
    /// A queue was not drained, or held messages did not return.
    #[error("the messages of queue {queue} were not moved: {reason}")]
    NotMoved {
        /// The queue.
        queue: QueueName,
        /// The reason.
        reason: String,
    },
    /// An unmanaged binding could not be restored after the recreation. Nothing was deleted.
    #[error("{object} was not deleted: its binding {binding} could not be restored afterwards ({reason})")]
    NotRestorable {
        /// The queue or exchange.
        object: String,
        /// The binding.
        binding: String,
        /// The reason of the broker.
        reason: String,
    },
    /// A topic permission could not be restored after the recreation. Nothing was deleted.
    #[error("{object} was not deleted: the {permission} could not be restored afterwards ({reason})")]
    TopicPermissionNotRestorable {
        /// The exchange.
        object: String,
        /// The topic permission.
        permission: String,
        /// The reason of the broker.
        reason: String,
    },
    /// A binding that would make the bindings of its whole vhost unreadable. The request was not sent.
    #[error(
        "binding {binding} was not created: with a `~` in the routing key and additional arguments, the management API \
         would return 500 for every later list of the vhost's bindings"
    )]
    Unlistable {
        /// The binding.
        binding: Box<Binding>,
    },
    /// Another apply holds the lock.
    #[error(
        "vhost {vhost} is locked by {holder}{}",
        down.as_ref().map_or_else(String::new, |node| format!("; {node}, the node of the lock, is down"))
    )]
    LockHeld {
        /// The vhost.
        vhost: VhostName,
        /// The queue that is the lock.
        queue: QueueName,
        /// The description of its holder.
        holder: String,
        /// The node that hosts the lock, if it is known to be down.
        down: Option<String>,
    },
    /// This run has lost the lock.
    #[error("the lock on vhost {vhost} was lost: {reason}")]
    LockLost {
        /// The vhost.
        vhost: VhostName,
        /// The reason.
        reason: String,
    },
}

/// Formats a number of messages.
fn message_count(messages: Option<u64>) -> String {
    match messages {
        Some(messages) => count(messages, "message"),
        None => "an unknown number of messages".to_owned(),
    }
}
