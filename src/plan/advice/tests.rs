//! Advice over the whole table of known arguments.
