//! Stories on a real RabbitMQ.

mod conflicts;
mod convergence;
mod killed;
mod message_loss;
mod ownership;
mod quickstart;
mod cuts;
mod failures;
mod support_works;
