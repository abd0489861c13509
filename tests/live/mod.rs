//! Stories on a real RabbitMQ.

mod conflicts;
mod support_works;
