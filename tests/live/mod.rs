//! Stories on a real RabbitMQ.

mod convergence;
mod quickstart;
mod requests;
mod support_works;
