//! Tests the text of a status.
