//! The grammar as a JSON Schema (draft-07), for editors.
