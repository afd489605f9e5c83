//! The provision state of a node: Ironic's machine as a table, and the state of a node in it.
//!
//! The state is not stored: [`node_state`] derives it. The machine's phase says it, and a stage of the
//! node's record overlays it until the machine has moved on.

mod derive;
mod event;
mod overlay;
mod state;
mod table;
#[cfg(test)]
mod tests;

pub use derive::node_state;
pub use event::ProvisionEvent;
pub use state::NodeState;
