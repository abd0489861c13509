//! Stories on a real RabbitMQ.

mod conflicts;
mod message_loss;
mod quickstart;
mod support_works;
