//! Finished values into text for people. Nothing here reads, decides or prints.

pub mod diagnostics;
