use std::path::PathBuf;

use ipnet::IpNet;
use proto_release::ReleaseKey;

/// The settings of self-update, from the agent's own files. No source of releases has keys: the one that
/// names version and URL must not choose them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateSettings {
    /// `true` if the agent is to replace its program.
    pub is_enabled: bool,
    /// Keys that releases are signed with.
    pub keys: Vec<ReleaseKey>,
    /// File of the only authorities that the server of releases is trusted by, PEM. `None` means those of
    /// the system.
    pub ca_certificate: Option<PathBuf>,
    /// Prefixes of local addresses from which a release may be fetched. Empty means public addresses
    /// only.
    pub local_prefixes: Vec<IpNet>,
    /// Time over which the updates of many agents begin, seconds: each waits for a random part of it.
    pub spread_seconds: u32,
    /// `true` if the release may be a file of this host: the agent's own configuration names it.
    pub may_be_file: bool,
    /// Level of the mesh protocol that control has. `None` if the agent does not speak with control.
    pub mesh_level: Option<u32>,
}

impl UpdateSettings {
    /// `true` if the agent replaces its program: it is to, and somebody is trusted to sign releases.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        self.is_enabled && !self.keys.is_empty()
    }
}
