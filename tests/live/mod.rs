//! Stories on a real RabbitMQ.

mod advice;
mod apply_report;
mod confirm;
mod conflicts;
mod convergence;
mod credentials;
mod cuts;
mod declared_by_applications;
mod differential;
mod differential_objects;
mod effective;
mod facts;
mod failures;
mod killed;
mod lock;
mod message_loss;
mod names;
mod others;
mod ownership;
mod quickstart;
mod requests;
mod retry;
mod saved_plans;
mod support_works;
mod tls;
mod versions;
