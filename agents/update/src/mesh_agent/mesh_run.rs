use std::path::Path;

use agents_kit::AgentArgs;
use clap::Args;

/// Arguments of `run`.
pub trait MeshRun: Args + AsRef<AgentArgs> {
    /// The configuration file.
    fn config(&self) -> &Path;
}
