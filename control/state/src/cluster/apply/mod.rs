//! Transitions of control nodes, time, settings, policies and components.

pub(crate) mod clock;
pub(crate) mod component;
pub(crate) mod node;
pub(crate) mod policy;
pub(crate) mod settings;
