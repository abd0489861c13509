//! Stories on a real RabbitMQ.

mod apply_report;
mod conflicts;
mod convergence;
mod cuts;
mod failures;
mod killed;
mod message_loss;
mod names;
mod ownership;
mod quickstart;
mod saved_plans;
mod support_works;
