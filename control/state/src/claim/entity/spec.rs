//! The intent of a claim.

use std::collections::BTreeSet;
use std::fmt;

use proto_types::{Digest, ImageId, LayoutId, PoolId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::claim::entity::{ClaimSelector, ClaimToleration, DomainWish, PreferredTerm};
use crate::machine::command::WantedNetwork;
use crate::machine::entity::WipeLevel;

/// The rule for a claim whose host is taken away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostRule {
    /// The claim stays lost until its project deletes it.
    #[default]
    Stay,
    /// The claim waits for another host.
    Rebind,
}

/// A wish to get a released host back, or to keep one for the next claim.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ReuseWish {
    /// Key that both claims of the project name.
    pub key: String,
    /// `true` if no other host will do.
    #[serde(default)]
    pub required: bool,
    /// Time for which the host stays reserved after the claim, milliseconds. The pool has an upper
    /// limit.
    #[serde(default)]
    pub keep_ms: u64,
    /// Strength of the wipe that is enough for the next claim of the project with the key; the pool
    /// has a lower limit. `None` means the floor of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wipe: Option<WipeLevel>,
}

/// The intent of a claim.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClaimSpec {
    /// Pools to look in. Empty means every pool that admits the project.
    pub pools: BTreeSet<PoolId>,
    /// Labels that the host must have.
    pub selector: ClaimSelector,
    /// Labels that make a host better than others.
    pub preferred: Vec<PreferredTerm>,
    /// Taints that are no obstacle.
    pub tolerations: Vec<ClaimToleration>,
    /// Failure domain. `None` means any.
    pub domain: Option<DomainWish>,
    /// Priority among the claims that wait, up to the one that the pool's policy allows.
    pub priority: u32,
    /// A host that an earlier claim had. `None` means any.
    pub reuse: Option<ReuseWish>,
    /// Claims of the project with the same text are spread over racks. Empty means all of them.
    pub spread: String,
    /// The rule for a host that is taken away.
    pub on_lost: LostRule,
    /// `true` if nothing is done for the claim: it is neither bound nor changed.
    pub paused: bool,
    /// `true` if the host is to be on once it is installed.
    pub powered_on: bool,
    /// Image to install. `None` means that the host is only bound; taking it away wipes the host.
    pub image: Option<ImageId>,
    /// Filesystem layout. `None` means the one that fits.
    pub layout: Option<LayoutId>,
    /// Host name of the installed system. `None` means the name of the claim if that is one of a
    /// host, and else "metal".
    pub hostname: Option<String>,
    /// Networks; required with an image.
    pub networks: Vec<WantedNetwork>,
    /// Keys that may log in.
    pub ssh_public_keys: Vec<String>,
    /// cloud-init or Ignition, base64; may hold secrets.
    pub userdata: String,
}

impl ClaimSpec {
    /// SHA-256 of the user data as it was given. `None` means that there is none.
    pub fn userdata_sha256(&self) -> Option<Digest> {
        let hash = || Digest::sha256(Sha256::digest(&self.userdata).into());
        (!self.userdata.is_empty()).then(hash)
    }
}

impl fmt::Debug for ClaimSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimSpec")
            .field("pools", &self.pools)
            .field("selector", &self.selector)
            .field("tolerations", &self.tolerations)
            .field("domain", &self.domain)
            .field("priority", &self.priority)
            .field("reuse", &self.reuse)
            .field("paused", &self.paused)
            .field("powered_on", &self.powered_on)
            .field("image", &self.image)
            .field("networks", &self.networks)
            .field("userdata", &"<redacted>")
            .finish_non_exhaustive()
    }
}
