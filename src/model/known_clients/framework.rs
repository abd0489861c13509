//! The frameworks for which `topo contract --for` prints a configuration.

use super::{KNOWN_CLIENTS, KnownClient};

/// A framework for which topo can generate the configuration of queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framework {
    /// Celery, for Python.
    Celery,
    /// dramatiq, for Python.
    Dramatiq,
    /// FastStream, for Python.
    FastStream,
    /// rascal, for Node.js.
    Rascal,
    /// `@golevelup/nestjs-rabbitmq`, for TypeScript.
    NestJs,
    /// The AMQP transport of Symfony Messenger, for PHP.
    Symfony,
    /// Spring AMQP, for Java.
    Spring,
}

impl Framework {
    /// All frameworks, in display order.
    pub const ALL: [Self; 7] =
        [Self::Celery, Self::Dramatiq, Self::FastStream, Self::Rascal, Self::NestJs, Self::Symfony, Self::Spring];

    /// Returns the value of `--for`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Celery => "celery",
            Self::Dramatiq => "dramatiq",
            Self::FastStream => "faststream",
            Self::Rascal => "rascal",
            Self::NestJs => "nestjs",
            Self::Symfony => "symfony",
            Self::Spring => "spring",
        }
    }

    /// Returns the name of the framework, and the format of its configuration.
    pub fn description(self) -> &'static str {
        match self {
            Self::Celery => "Celery: task_queues, in Python",
            Self::Dramatiq => "dramatiq: a broker class, in Python",
            Self::FastStream => "FastStream: RabbitQueue objects, in Python",
            Self::Rascal => "rascal: queues of each vhost, as JSON",
            Self::NestJs => "NestJS (@golevelup/nestjs-rabbitmq): handlers, in TypeScript",
            Self::Symfony => "Symfony Messenger: transports, as YAML",
            Self::Spring => "Spring AMQP: beans, in Java",
        }
    }

    /// Returns the framework's row in the table of known clients; `None` for Spring, which is not in the table.
    pub fn client(self) -> Option<&'static KnownClient> {
        KNOWN_CLIENTS.iter().find(|client| client.page == self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_contains_all_frameworks_except_spring() {
        let missing: Vec<_> = Framework::ALL.into_iter().filter(|framework| framework.client().is_none()).collect();
        assert_eq!(missing, [Framework::Spring]);
    }
}
