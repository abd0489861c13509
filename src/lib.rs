//! topo: topology as code for RabbitMQ.
//!
//! ```text
//! spec ──▶ expand ──▶ ┐
//!                     ├─▶ (Topology) ──▶ diff ──▶ plan ──▶ apply ──▶ Report
//! broker::read ──────▶┘                              ▲        │
//!         └──────────── Activity ────────────────────┘    broker::perform
//! export is the way back: a live vhost into a spec that plans to no changes.
//! contract describes what workers must know and the lifecycle of a message; it reads spec + topology, as lint does.
//! graph is the drawing of a spec or a plan, with its layout.
//! rabbitmq predicts the broker, for all of them.   render turns values into text.   cli joins them.
//! ```
//!
//! Data flows in one direction, and each module is one station of it. A test reads the `use` lines and enforces the direction.

// In the order of the layers. The empty lines keep rustfmt from sorting them.

pub mod model;

pub mod rabbitmq;

pub mod spec;

pub mod expand;

pub mod contract;

pub mod lint;

pub mod diff;

pub mod plan;

pub mod export;

pub mod graph;

pub mod broker;

pub mod apply;

pub mod render;

pub mod cli;
