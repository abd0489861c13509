//! The test binary: a single binary requires only one link step, and all live tests share a RabbitMQ node.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod broken;
mod cli;
mod editor;
mod examples;
mod fuzz;
mod language;
mod layers;
mod lifecycle;
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
