//! Stories on a real RabbitMQ.

mod conflicts;
mod message_loss;
mod support_works;
