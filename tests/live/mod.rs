//! Stories on a real RabbitMQ.

mod cuts;
mod failures;
mod support_works;
