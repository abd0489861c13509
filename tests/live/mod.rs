//! Stories on a real RabbitMQ.

mod confirm;
mod conflicts;
mod convergence;
mod credentials;
mod cuts;
mod failures;
mod killed;
mod lock;
mod message_loss;
mod ownership;
mod quickstart;
mod support_works;
mod tls;
