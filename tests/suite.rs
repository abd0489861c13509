//! The one test binary: one link step, and one shared RabbitMQ node for every live test.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on says so by panicking")]

mod broken;
mod cli;
mod editor;
mod examples;
mod fuzz;
mod layers;
mod live;
mod new_rule;
mod pages;
mod readme;
mod realistic;
mod resolutions;
mod scenarios;
mod schema;
mod settings_without_effect;
mod shipping;
mod support;
mod svg;
