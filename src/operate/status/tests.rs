//! Tests the evaluation of readings.
