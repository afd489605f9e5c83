//! Control nodes, time, settings, policies and components: what commands do to them.

pub(crate) mod clock;
pub(crate) mod component;
pub(crate) mod node;
pub(crate) mod policy;
pub(crate) mod settings;
