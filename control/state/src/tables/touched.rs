//! Objects that a command has touched.

use super::{Kind, Record};

/// An object before and after the command.
#[derive(Clone)]
pub(super) struct Touched {
    pub(super) before: Option<Record>,
    pub(super) after: Option<Record>,
}

/// An entry of the touched ones as it was before a write.
pub(super) type WasTouched = ((Kind, String), Option<Touched>);
