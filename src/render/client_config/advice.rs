//! Describes how the workers of a framework use a queue without declaring it, and what they do on failure.

use crate::contract::OnFailure;
use crate::model::known_clients::Framework;

/// Returns the framework's option for skipping the declaration, without Markdown. Returns `None` if the framework has
/// no such option.
pub(super) fn without_declaration(framework: Framework) -> Option<String> {
    framework.client()?.without_declaration.map(|option| option.replace('`', ""))
}

/// Describes what a worker of the framework must do with a failed message. The text contains no queue names.
pub(super) fn on_failure(framework: Framework, kind: OnFailure) -> &'static str {
    match (framework, kind) {
        (_, OnFailure::Publish) => {
            "On failure, publish a copy and acknowledge the message. `topo contract` prints the exchange and the keys."
        }
        (Framework::Celery, OnFailure::Reject) => {
            "On failure, reject the message: set acks_late=True on the tasks, and either set \
             acks_on_failure_or_timeout=False or raise Reject(requeue=False)."
        }
        (Framework::Celery, OnFailure::Requeue) => {
            "On failure, raise Reject(requeue=True) in a task with acks_late=True."
        }
        (Framework::Dramatiq, OnFailure::Reject) => {
            "On failure, dramatiq must reject the message: set max_retries=0 on the actors. Otherwise, dramatiq \
             publishes the retry itself."
        }
        (Framework::Dramatiq, OnFailure::Requeue) => {
            "The retries of this queue require basic.reject with requeue=true, which dramatiq does not support."
        }
        (Framework::FastStream, OnFailure::Reject) => {
            "On failure, reject the message: set AckPolicy.REJECT_ON_ERROR on the subscriber. AckPolicy.NACK_ON_ERROR \
             requeues the message without a delay."
        }
        (Framework::FastStream, OnFailure::Requeue) => {
            "On failure, raise RejectMessage(requeue=True). RabbitMQ 4.3 does not count the basic.nack of \
             AckPolicy.NACK_ON_ERROR."
        }
        (Framework::Rascal, OnFailure::Reject) => {
            "on failure, call ackOrNack(error) without a recovery strategy: rascal rejects the message"
        }
        (Framework::Rascal, OnFailure::Requeue) => {
            "the retries require basic.reject with requeue=true; rascal sends basic.nack, which RabbitMQ 4.3 does not \
             count"
        }
        (Framework::NestJs, OnFailure::Reject) => {
            "On failure, reject the message. By default, a failed message is requeued without a delay."
        }
        (Framework::NestJs, OnFailure::Requeue) => {
            "On failure, requeue the message with basic.reject. RabbitMQ 4.3 does not count basic.nack."
        }
        (Framework::Symfony, OnFailure::Reject) => {
            "On failure, reject the message. Messenger's own retries require auto_setup."
        }
        (Framework::Symfony, OnFailure::Requeue) => {
            "The retries of this queue require basic.reject with requeue=true, which Messenger does not support."
        }
        (Framework::Spring, OnFailure::Reject) => {
            "On failure, throw AmqpRejectAndDontRequeueException, or set \
             spring.rabbitmq.listener.simple.default-requeue-rejected to false."
        }
        (Framework::Spring, OnFailure::Requeue) => {
            "On failure, call channel.basicReject(tag, true) with AcknowledgeMode.MANUAL. RabbitMQ 4.3 does not count \
             the default basic.nack."
        }
    }
}
