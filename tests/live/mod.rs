//! Stories on a real RabbitMQ.

mod failures;
mod support_works;
