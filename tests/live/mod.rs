//! Stories on a real RabbitMQ.

mod conflicts;
mod convergence;
mod message_loss;
mod quickstart;
mod support_works;
