//! Stories on a real RabbitMQ.

mod support_works;
