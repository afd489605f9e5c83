use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::rule::NameSelector;

/// An address of a name in the state file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedName {
    name: String,
    /// `true` if `name` is a pattern.
    is_pattern: bool,
    pub(super) address: IpAddr,
    /// End of its lifetime, seconds since 1970.
    until: u64,
}

impl SavedName {
    pub(super) fn new(name: &NameSelector, address: IpAddr, until: SystemTime) -> Self {
        let until = until.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            name: name.text().to_owned(),
            is_pattern: matches!(name, NameSelector::Pattern(_)),
            address,
            until: until.as_secs(),
        }
    }

    /// Reads the state file's content. Empty if it is damaged: addresses are learned again.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Vec<Self> {
        match serde_json::from_slice(bytes) {
            Ok(saved) => saved,
            Err(error) => {
                tracing::warn!(%error, "the addresses of names in the state file are not read");
                Vec::new()
            }
        }
    }

    pub(super) fn selector(&self) -> Option<NameSelector> {
        if self.is_pattern {
            NameSelector::pattern(&self.name)
        } else {
            NameSelector::name(&self.name)
        }
    }

    pub(super) fn until(&self) -> SystemTime {
        // Bounded: a damaged number must not overflow the clock.
        UNIX_EPOCH + Duration::from_secs(self.until.min(u64::from(u32::MAX) * 2))
    }
}
