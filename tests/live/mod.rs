//! Stories on a real RabbitMQ.

mod conflicts;
mod convergence;
mod cuts;
mod failures;
mod killed;
mod message_loss;
mod ownership;
mod quickstart;
mod requests;
mod support_works;
