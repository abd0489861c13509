//! topo: topology as code for RabbitMQ.
//!
//! ```text
//! spec ──▶ expand ──▶ ┐
//!                     ├─▶ (Topology) ──▶ diff ──▶ plan ──▶ apply ──▶ Report
//! broker::read ──────▶┘                              ▲        │
//!         └──────────── Activity ────────────────────┘    broker::perform
//! render reads finished values.   cli joins them.
//! ```
//!
//! Data goes one way, and each module is one station of it. A test reads the `use` lines and enforces the direction.

pub mod cli;
pub mod expand;
pub mod model;
pub mod plan;
pub mod render;
pub mod spec;
