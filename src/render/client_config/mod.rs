//! Renders the configuration of a client framework, with the declarations of its queues: `topo contract --for`.
//!
//! The configuration declares no exchange and no binding, because topo declares them. If the framework has an option to
//! use a queue without declaring it, the configuration sets this option.

mod dramatiq;
mod javascript;
mod literal;
mod python;
mod spring;
mod symfony;
#[cfg(test)]
mod tests;

use super::style::clean;
use crate::contract::{ClientVhost, OnFailure};
use crate::model::known_clients::Framework;
use literal::comment;
use std::collections::BTreeSet;

/// The configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The configuration.
    pub text: String,
    /// Notes for the user, if the format of the configuration has no comments.
    pub notes: Vec<String>,
}

/// Renders the configuration of the queues of each vhost. `specs` contains the paths of the specs.
pub fn client_config(framework: Framework, vhosts: &[ClientVhost], specs: &str) -> ClientConfig {
    if framework == Framework::Rascal {
        return javascript::rascal(vhosts);
    }
    let texts: Vec<String> = vhosts.iter().map(|vhost| of_vhost(framework, vhost, specs)).collect();
    ClientConfig { text: texts.join("\n"), notes: Vec::new() }
}

fn of_vhost(framework: Framework, vhost: &ClientVhost, specs: &str) -> String {
    let mark = match framework {
        Framework::NestJs | Framework::Spring | Framework::Rascal => "// ",
        Framework::Celery | Framework::Dramatiq | Framework::FastStream | Framework::Symfony => "# ",
    };
    let mut text = String::new();
    let name = clean(vhost.vhost.as_str());
    comment(&mut text, mark, &format!("The queues of vhost {name}, as topo declares them ({}).", clean(specs)));
    if let Some(option) = without_declaration(framework) {
        comment(&mut text, mark, &format!("Its workers use the queues without declaring them: {option}."));
    }
    match framework {
        Framework::Celery => python::celery(&mut text, vhost),
        Framework::FastStream => python::faststream(&mut text, vhost),
        Framework::Dramatiq => dramatiq::dramatiq(&mut text, vhost),
        Framework::NestJs => javascript::nestjs(&mut text, vhost),
        Framework::Symfony => symfony::symfony(&mut text, vhost),
        Framework::Spring => spring::spring(&mut text, vhost),
        Framework::Rascal => {}
    }
    text
}

/// Returns the option of the framework that skips the declaration, without Markdown.
fn without_declaration(framework: Framework) -> Option<String> {
    framework.client()?.without_declaration.map(|option| option.replace('`', ""))
}

/// Describes what a worker of the framework must do with a failed message. Sentences without names of queues.
fn on_failure(framework: Framework, kind: OnFailure) -> &'static str {
    match (framework, kind) {
        (_, OnFailure::Publish) => {
            "On failure, publish a copy and acknowledge the message. `topo contract` prints the exchange and the keys."
        }
        (Framework::Celery, OnFailure::Reject) => {
            "On failure, reject the message: set acks_late=True and acks_on_failure_or_timeout=False on its tasks, or \
             raise Reject(requeue=False)."
        }
        (Framework::Celery, OnFailure::Requeue) => {
            "On failure, raise Reject(requeue=True) in a task with acks_late=True."
        }
        (Framework::Dramatiq, OnFailure::Reject) => {
            "On failure, dramatiq must reject the message: set max_retries=0 on its actors. Otherwise, dramatiq \
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
            "On failure, reject the message. With other retries, Messenger declares its own delay queues."
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

/// Returns the name, with a number if the name is in use.
fn unused(name: String, used: &mut BTreeSet<String>) -> String {
    let numbered = (2_u32..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| used.insert(name.clone()));
    free.unwrap_or(name)
}
