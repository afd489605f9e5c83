//! Answers to the questions of the first start, from a file or from a person.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::config::Overrides;

/// The answers. `None` and empty lists mean the default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SetupAnswers {
    /// Name of the cluster, the site. A node that joins gets it from the cluster.
    pub(super) cluster: Option<String>,
    /// Number of the node. A node that joins gets it from the cluster.
    pub(super) node_id: Option<u64>,
    pub(super) data_dir: Option<PathBuf>,
    /// Name or address at which other hosts reach this one, without a port.
    pub(super) host: Option<String>,
    pub(super) api_listen: Option<SocketAddr>,
    pub(super) api_certificate: Option<PathBuf>,
    pub(super) api_key: Option<PathBuf>,
    pub(super) mesh_listen: Option<SocketAddr>,
    pub(super) mesh_addresses: Vec<String>,
    pub(super) trust_domain: Option<String>,
    pub(super) peers_listen: Option<SocketAddr>,
    pub(super) peers_address: Option<String>,
    /// The first partition, for the commands that are shown at the end.
    pub(super) partition: Option<String>,
    /// New file for the first admin's token.
    pub(super) token_file: Option<PathBuf>,
    pub(super) backup: Option<BackupAnswers>,
}

/// Answers about the schedule of backups.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackupAnswers {
    pub(super) directory: PathBuf,
    /// Public halves of age keys. The private halves do not belong on this host.
    pub(super) recipients: Vec<String>,
    pub(super) every_minutes: Option<u64>,
    pub(super) keep: Option<u32>,
}

impl SetupAnswers {
    /// Reads a file of answers.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the answers {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in {}", path.display()))
    }

    /// Flags go before the file.
    pub(super) fn overridden(self, flags: &Overrides) -> Self {
        Self {
            data_dir: flags.data_dir.clone().or(self.data_dir),
            api_listen: flags.api_listen.or(self.api_listen),
            mesh_listen: flags.mesh_listen.or(self.mesh_listen),
            mesh_addresses: match flags.mesh_addresses.as_slice() {
                [] => self.mesh_addresses,
                addresses => addresses.to_vec(),
            },
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_go_before_the_file() {
        let answers: SetupAnswers = toml::from_str(
            "cluster = 'east'\ndata_dir = '/a'\nmesh_addresses = ['a:1']\n\
             [backup]\ndirectory = '/b'\nrecipients = ['age1']\n",
        )
        .unwrap();
        let flags = Overrides {
            data_dir: Some("/c".into()),
            ..Overrides::default()
        };
        let both = answers.clone().overridden(&flags);
        assert_eq!(both.data_dir, Some("/c".into()));
        assert_eq!(both.mesh_addresses, ["a:1"]);
        assert_eq!(both.cluster, answers.cluster);
        assert_eq!(answers.clone().overridden(&Overrides::default()), answers);
    }

    #[test]
    fn unknown_answers_are_refused() {
        for text in ["colour = 'red'", "[backup]\nkeep = 3", "node_id = 'one'"] {
            assert!(toml::from_str::<SetupAnswers>(text).is_err(), "{text}");
        }
    }
}
