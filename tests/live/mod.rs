//! Stories on a real RabbitMQ.

mod quickstart;
mod conflicts;
mod message_loss;
mod support_works;
