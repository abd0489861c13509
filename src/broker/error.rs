//! Defines the errors from requests to a broker. Each variant requires a different reaction.
//!
//! The `Display` output is one line that includes the broker's reason, if any. It contains no passwords, and its URLs
//! contain no user info.

use super::connect_problem::ConnectProblem;
use crate::model::count::count;
use crate::model::{Binding, BrokerVersion, QueueName, VhostName};
use std::time::Duration;

/// The reason why topo could not read a broker, or why a broker did not process a request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BrokerError {
    /// A specified certificate or key cannot be used. topo did not send a request.
    #[error("the {what} cannot be used: {reason}")]
    Certificate {
        /// The kind of file, such as `CA certificate`.
        what: &'static str,
        /// The message from the TLS library.
        reason: String,
    },
    /// The value of a secret cannot be used. topo did not send a request that contains it.
    #[error("cannot use the secret from {secret}: {reason}")]
    Secret {
        /// The source of the value, such as `environment variable NAME`.
        secret: String,
        /// The reason, without the value.
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
    /// The AMQP address and the management URL lead to different brokers, so topo must not move or delete anything.
    #[error("the broker at {amqp} is not the broker at {url}: {reason}")]
    DifferentBroker {
        /// The AMQP address, without user info.
        amqp: String,
        /// The management URL, without user info.
        url: String,
        /// The difference between the two brokers.
        reason: String,
    },
    /// The broker did not respond in time.
    #[error("{url} did not respond to {request} within {}", humantime::format_duration(*.after))]
    Timeout {
        /// The URL without user info.
        url: String,
        /// The method and the path.
        request: String,
        /// The timeout.
        after: Duration,
    },
    /// 401: the user does not exist, or the password is wrong.
    #[error("login as user `{username}` failed: {reason}")]
    Unauthorized {
        /// The user name.
        username: String,
        /// The broker's reason.
        reason: String,
    },
    /// 401, or 403 on some brokers: the user has no permission for the request.
    #[error("user `{username}` has no permission for {request}: {reason}")]
    AccessRefused {
        /// The user name.
        username: String,
        /// The method and the path.
        request: String,
        /// The broker's reason, such as `Access refused.`
        reason: String,
    },
    /// 401: the user does not have the tag that the management API requires for the request.
    #[error("user `{username}` does not have the tag that {request} requires: {reason}")]
    WrongTag {
        /// The user name.
        username: String,
        /// The method and the path.
        request: String,
        /// The broker's reason, such as `Not management user`.
        reason: String,
    },
    /// The response is not from a management API, but from a reverse proxy, a login page or another port.
    #[error(
        "{url} is not a RabbitMQ management API: it returned {status} with {} for {request}{}",
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
        /// The first 80 characters of the response, without HTML tags.
        excerpt: String,
    },
    /// The response is a redirect, which topo does not follow because the password would be sent to another server.
    #[error("{url} redirects to {to}; use that URL if it is the broker's")]
    Redirected {
        /// The URL without user info.
        url: String,
        /// The target of the redirect, without user info or a query.
        to: String,
    },
    /// The broker refused the request, usually with 400.
    #[error("the broker refused {request}: {status} {reason}")]
    Refused {
        /// The method and the path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The broker's reason.
        reason: String,
    },
    /// The object exists with different properties. Over AMQP, the broker returns the same reason with the reply code
    /// 406 (`PRECONDITION_FAILED`).
    #[error("the object already exists with different properties: {reason}")]
    Inequivalent {
        /// The method and the path.
        request: String,
        /// The broker's reason, such as `inequivalent arg 'x-message-ttl' for queue …`.
        reason: String,
    },
    /// 404: the requested object, or an object that the request refers to, does not exist.
    #[error("the broker returned 404 for {request}: {reason}")]
    NotFound {
        /// The method and the path.
        request: String,
        /// The broker's reason.
        reason: String,
    },
    /// 404, although the queue exists, because the queue's node is down.
    #[error("the broker cannot process {request} while the queue's node is down: {reason}")]
    HomeNodeDown {
        /// The method and the path.
        request: String,
        /// The broker's reason.
        reason: String,
    },
    /// 408, 429, 5xx, or a 400 for an operation that temporarily failed inside the broker. If it was safe to retry, the
    /// retries failed as well.
    #[error("the broker failed to process {request}: {status} {reason}")]
    Unavailable {
        /// The method and the path.
        request: String,
        /// The HTTP status.
        status: u16,
        /// The reason from the broker or a proxy.
        reason: String,
    },
    /// The broker blocks publishers until its memory or disk alarm clears.
    #[error("{url} is blocking publishers because of a memory or disk alarm, and did not respond to {request}")]
    Alarm {
        /// The URL without user info.
        url: String,
        /// The operation.
        request: String,
    },
    /// topo cannot parse the response, or the response is too large.
    #[error("cannot parse the response to {request}: {detail}")]
    Malformed {
        /// The method and the path.
        request: String,
        /// The reason.
        detail: String,
    },
    /// The request contains a name that the management API cannot address.
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
        /// The product name.
        product: String,
        /// The reported version; empty if the broker reports none.
        reported: String,
    },
    /// topo does not support the broker's version.
    #[error(
        "{product} {version} is too old: topo supports RabbitMQ {} and later",
        BrokerVersion::OLDEST_SUPPORTED.series()
    )]
    VersionTooOld {
        /// The product name.
        product: String,
        /// The RabbitMQ version.
        version: BrokerVersion,
    },
    /// The guard on a deletion was not satisfied, because the queue contains messages. Nothing was deleted.
    #[error("queue {queue} was not deleted: it contains {}", message_count(*.messages))]
    NotEmpty {
        /// The queue.
        queue: QueueName,
        /// The number of messages, if known.
        messages: Option<u64>,
    },
    /// The guard on a deletion was not satisfied, because the queue contains more messages than may be lost. Nothing
    /// was deleted.
    #[error(
        "queue {queue} was not deleted: it contains {}, and at most {allowed} may be lost",
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
    /// The guard on a deletion was not satisfied, because the message count is unknown or may be out of date. Nothing
    /// was deleted.
    #[error("queue {queue} was not deleted: {reason}")]
    EmptinessUnknown {
        /// The queue.
        queue: QueueName,
        /// The reason.
        reason: String,
    },
    /// The broker lists a quorum queue that has no running members, because a node stopped while the queue was being
    /// declared or deleted. Nothing was deleted.
    #[error(
        "queue {queue} is not accepting messages: none of its members is running ({reason}); unless a node that is down \
         hosts a member, delete the queue and apply again"
    )]
    NoMembers {
        /// The queue.
        queue: QueueName,
        /// The broker's reason.
        reason: String,
    },
    /// The broker returned 404 for a request to delete a binding that it still lists.
    #[error(
        "binding {binding} cannot be deleted over HTTP: the management API misinterprets the routing keys `null` and \
         `undefined`; delete it with an AMQP client"
    )]
    Undeletable {
        /// The binding.
        binding: Box<Binding>,
    },
    /// A binding was created after the plan was made, so its queue or exchange was not deleted.
    #[error(
        "{object} was not deleted: a binding was added after the plan was made ({binding}); run the command again to \
         include the binding"
    )]
    BoundSincePlan {
        /// The queue or exchange.
        object: String,
        /// The binding.
        binding: String,
    },
    /// Topic permissions changed after the plan was made, so their exchange was not deleted.
    #[error(
        "{object} was not deleted: its topic permissions have changed since the plan was made; run the command \
         again"
    )]
    TopicPermissionsChanged {
        /// The exchange.
        object: String,
    },
    /// The broker reported success, but the object is not in the expected state.
    #[error(
        "the broker reported success, but {object} {}",
        if *.expected { "does not exist" } else { "still exists, or was declared again" }
    )]
    NotVerified {
        /// The object.
        object: String,
        /// True if the object was expected to exist, and false if it was expected not to exist.
        expected: bool,
    },
    /// The broker reported success, but topo could not verify the result.
    #[error("the broker reported success, but {object} could not be read afterward: {reason}")]
    Unverifiable {
        /// The object.
        object: String,
        /// The reason.
        reason: String,
    },
    /// A migration could not drain a queue, could not return its messages, or could not continue for another reason.
    #[error("the messages in queue {queue} were not moved: {reason}")]
    NotMoved {
        /// The queue.
        queue: QueueName,
        /// The reason.
        reason: String,
    },
    /// topo would not be able to restore a binding after the recreation. Nothing was deleted.
    #[error("{object} was not deleted: topo would not be able to restore its binding {binding} ({reason})")]
    NotRestorable {
        /// The queue or exchange.
        object: String,
        /// The binding.
        binding: String,
        /// The reason.
        reason: String,
    },
    /// topo would not be able to restore a topic permission after the recreation. Nothing was deleted.
    #[error("{object} was not deleted: topo would not be able to restore the {permission} ({reason})")]
    TopicPermissionNotRestorable {
        /// The exchange.
        object: String,
        /// The topic permission.
        permission: String,
        /// The broker's reason.
        reason: String,
    },
    /// The binding would make all bindings in its vhost unreadable. topo did not send the request.
    #[error(
        "binding {binding} was not created: its routing key contains a `~` and it has arguments, so the management API \
         would return 500 for every request that lists the vhost's bindings"
    )]
    Unlistable {
        /// The binding.
        binding: Box<Binding>,
    },
    /// Another apply holds the lock.
    #[error(
        "vhost {vhost} is locked by {holder}{}",
        down.as_ref().map_or_else(String::new, |node| format!("; node {node}, which hosts the lock, is down"))
    )]
    LockHeld {
        /// The vhost.
        vhost: VhostName,
        /// The queue that serves as the lock.
        queue: QueueName,
        /// The holder's description.
        holder: String,
        /// The node that hosts the lock, if the broker reports that the node is down.
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

/// Formats a message count. `None` means that the count is unknown.
fn message_count(messages: Option<u64>) -> String {
    match messages {
        Some(messages) => count(messages, "message"),
        None => "an unknown number of messages".to_owned(),
    }
}
