//! Self-update of the agents that follow control over the mesh: those of switches, BMCs and boot servers.
//!
//! Control names the release (`UpdateService`). The keys are in a file of the host, which the section
//! `[self_update]` of the agent's configuration names: without it, or without a key there, nothing is
//! replaced.

mod arguments;
mod beside;
mod mesh_run;
mod own_files;
mod program;
mod reports;
mod runner;
mod section;
mod stamp;

pub use arguments::{CheckArgs, MeshCommand, UpdateCommand, main};
pub use beside::beside_update;
pub use mesh_run::MeshRun;
pub use program::MeshProgram;
pub use runner::AgentUpdate;
pub use section::SelfUpdateSection;
