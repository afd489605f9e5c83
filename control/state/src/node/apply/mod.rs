//! Transitions of nodes and documents.

mod content;
pub(crate) mod document;
pub(crate) mod instance;
mod ports;
pub(crate) mod record;
pub(crate) mod take_over;
pub(crate) mod unconfirmed;
mod writer;
