//! Transitions of nodes and documents.

mod content;
pub(crate) mod document;
mod ports;
pub(crate) mod record;
pub(crate) mod take_over;
