//! Lines to paste into a shell.

pub(super) use crate::render::shell::quoted;
