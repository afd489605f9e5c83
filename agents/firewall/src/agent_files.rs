use std::net::SocketAddr;
use std::path::PathBuf;

/// Places of the agent's files.
#[derive(Clone, Debug)]
pub struct AgentFiles {
    /// Configuration.
    pub config: PathBuf,
    /// Directory of the last good configuration.
    pub state_dir: PathBuf,
    /// Text of the rules, for others. `None` writes none.
    pub rules_file: Option<PathBuf>,
    /// Address of the listener for Prometheus. `None` has none.
    pub metrics: Option<SocketAddr>,
}
