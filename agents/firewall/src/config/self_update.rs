use std::path::PathBuf;

use agents_update::RELEASE_KEYS_MAX;
use ipnet::IpNet;
use proto_release::ReleaseKey;
use serde::Deserialize;

use super::error::ConfigError;
use super::lines::nearest_line;

/// Path of the fields.
const PATH: [&str; 3] = ["controllers", "firewall", "selfUpdate"];
/// Most prefixes of local addresses.
const PREFIXES_MAX: usize = 64;
/// Longest spread, seconds.
const SPREAD_MAX_S: u32 = 3600;
/// Spread by default, seconds.
const SPREAD_S: u32 = 60;

/// Replacement of the agent's program by a signed release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SelfUpdateConfig {
    /// `true` if the agent replaces its program by the version that its source names.
    pub enabled: bool,
    /// Keys that releases are signed with, those of the file beside this one included. No source has keys:
    /// the one that names version and URL must not choose them.
    #[serde(default)]
    pub keys: Vec<ReleaseKey>,
    /// File of the only authorities that the server of releases is trusted by, PEM. `None` means those of
    /// the system.
    #[serde(default)]
    pub ca_certificate: Option<PathBuf>,
    /// Prefixes of local addresses from which a release may be fetched. Empty means public addresses
    /// only.
    #[serde(default)]
    pub local_prefixes: Vec<IpNet>,
    /// Time over which the updates of many firewalls begin, seconds: each waits for a random part of
    /// it.
    #[serde(default = "spread_seconds")]
    pub spread_seconds: u32,
}

impl SelfUpdateConfig {
    /// The reason why nothing is replaced although it is to be. `None` if there is none.
    pub(crate) fn obstacle(&self) -> Option<&'static str> {
        let is_keyless = self.enabled && self.keys.is_empty();
        is_keyless.then_some(
            "keys: no key of releases is trusted here; add one to selfUpdate.keys, or to release-keys \
             beside the configuration",
        )
    }
}

fn spread_seconds() -> u32 {
    SPREAD_S
}

/// Checks what the types of the fields do not say.
pub(super) fn check(config: &SelfUpdateConfig, text: &str) -> Result<(), ConfigError> {
    let wrong = |field: &str, problem: String, remedy: &str| {
        Err(ConfigError::Field {
            line: nearest_line(text, &[PATH[0], PATH[1], PATH[2], field]),
            field: format!("{}.{field}", PATH.join(".")),
            problem,
            remedy: remedy.to_owned(),
        })
    };
    if config.keys.len() > RELEASE_KEYS_MAX {
        let problem = format!("there are more than {RELEASE_KEYS_MAX} keys");
        return wrong("keys", problem, "remove those that sign no more");
    }
    if config.local_prefixes.len() > PREFIXES_MAX {
        let problem = format!("there are more than {PREFIXES_MAX} prefixes");
        return wrong("localPrefixes", problem, "merge them");
    }
    if config.spread_seconds > SPREAD_MAX_S {
        let problem = format!("it is more than {SPREAD_MAX_S}");
        return wrong("spreadSeconds", problem, "use 0 to 3600");
    }
    Ok(())
}
