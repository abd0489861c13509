//! Stories on a real RabbitMQ.

mod convergence;
mod quickstart;
mod support_works;
