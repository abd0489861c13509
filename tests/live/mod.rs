//! Stories on a real RabbitMQ.

mod conflicts;
mod killed;
mod message_loss;
mod names;
mod ownership;
mod quickstart;
mod saved_plans;
mod support_works;
