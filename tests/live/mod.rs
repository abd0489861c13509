//! Stories on a real RabbitMQ.

mod quickstart;
mod support_works;
