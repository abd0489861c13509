//! Stories on a real RabbitMQ.

mod credentials;
mod cuts;
mod failures;
mod lock;
mod support_works;
mod tls;
