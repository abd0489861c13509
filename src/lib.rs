//! topo: topology as code for RabbitMQ.
//!
//! ```text
//! spec ──▶ expand ──▶ ┐
//!                     ├─▶ (Topology) ──▶ diff ──▶ plan ──▶ apply ──▶ Report
//! broker::read ──────▶┘                              ▲        │
//!         └──────────── Activity ────────────────────┘    broker::perform
//! export is the way back: a live vhost into a spec that plans to no changes.
//! contract says what workers must know, life what becomes of a message: both read spec + topology, as lint does.
//! picture says what is drawn of a spec or a plan, and where it is.
//! behaviour predicts the broker, for all of them.   render reads finished values.   cli joins them.
//! ```
//!
//! Data goes one way, and each module is one station of it. A test reads the `use` lines and enforces the direction.

// In the order of the layers; rustfmt sorts what no empty line parts.

pub mod model;

pub mod behaviour;

pub mod spec;

pub mod expand;

pub mod contract;

pub mod life;

pub mod lint;

pub mod diff;

pub mod plan;

pub mod export;

pub mod picture;

pub mod broker;

pub mod apply;

pub mod render;

pub mod cli;
