use std::path::PathBuf;

use ipnet::IpNet;
use serde::Deserialize;

/// Most prefixes of local addresses.
const PREFIXES_MAX: usize = 64;
/// Longest spread, seconds.
const SPREAD_MAX_S: u32 = 3600;
/// Spread by default, seconds.
const SPREAD_S: u32 = 60;

/// The section as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSection {
    keys: PathBuf,
    #[serde(default)]
    ca_certificate: Option<PathBuf>,
    #[serde(default)]
    local_prefixes: Vec<IpNet>,
    #[serde(default = "spread_seconds")]
    spread_seconds: u32,
}

fn spread_seconds() -> u32 {
    SPREAD_S
}

/// The section `[self_update]` of an agent's configuration. Without it nothing is replaced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenSection")]
pub struct SelfUpdateSection {
    /// File with the public keys that releases are signed with, one a line. A relative path is relative
    /// to the directory of the configuration. Without a key in it nothing is replaced.
    pub keys: PathBuf,
    /// File of the only authorities that the server of releases is trusted by, PEM. `None` means those of
    /// the system.
    pub ca_certificate: Option<PathBuf>,
    /// Prefixes of local addresses from which a release may be fetched. Empty means public addresses
    /// only.
    pub local_prefixes: Vec<IpNet>,
    /// Time over which the updates of many agents begin, seconds: each waits for a random part of it.
    pub spread_seconds: u32,
}

impl TryFrom<WrittenSection> for SelfUpdateSection {
    type Error = String;

    fn try_from(written: WrittenSection) -> Result<Self, String> {
        if written.local_prefixes.len() > PREFIXES_MAX {
            return Err(format!(
                "self_update.local_prefixes: there are more than {PREFIXES_MAX} prefixes; merge them"
            ));
        }
        if written.spread_seconds > SPREAD_MAX_S {
            return Err(format!(
                "self_update.spread_seconds: it is more than {SPREAD_MAX_S}; use 0 to {SPREAD_MAX_S}"
            ));
        }
        Ok(Self {
            keys: written.keys,
            ca_certificate: written.ca_certificate,
            local_prefixes: written.local_prefixes,
            spread_seconds: written.spread_seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_checked_as_a_whole() {
        let read = |text: &str| toml::from_str::<SelfUpdateSection>(text);
        let short = read("keys = \"release-keys\"").unwrap();
        assert_eq!(short.spread_seconds, SPREAD_S);
        assert!(short.ca_certificate.is_none() && short.local_prefixes.is_empty());
        let many = vec!["\"10.0.0.0/8\""; PREFIXES_MAX + 1].join(", ");
        for (text, reason) in [
            (String::new(), "missing field `keys`"),
            ("keys = \"k\"\nkey = 1".to_owned(), "unknown field `key`"),
            (
                "keys = \"k\"\nspread_seconds = 3601".to_owned(),
                "use 0 to 3600",
            ),
            (
                format!("keys = \"k\"\nlocal_prefixes = [{many}]"),
                "more than 64",
            ),
            (
                "keys = \"k\"\nlocal_prefixes = [\"10\"]".to_owned(),
                "invalid",
            ),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
