//! The certificate authority: its keys, and the rotation from one generation to the next.

use std::fmt;

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::blob;

/// A certificate authority: its key is sealed before it comes here.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaRecord {
    /// The key: `root`, `agents-1`, ...; of later generations `root-2`, `agents-2`, ...
    pub id: String,
    /// Certificate, DER.
    #[serde(with = "blob")]
    pub certificate: Vec<u8>,
    /// Sealed private key; opaque here.
    #[serde(with = "blob")]
    pub sealed_key: Vec<u8>,
    /// Time of creation.
    pub created_at: Timestamp,
    /// End of validity.
    pub not_after: Timestamp,
    /// `true` if the authority is trusted and no longer signs.
    #[serde(default)]
    pub retired: bool,
    /// Generation of the authority, from 1.
    #[serde(
        default = "first_generation",
        skip_serializing_if = "is_first_generation"
    )]
    pub generation: u32,
    /// The same authority, certified by the root of the generation before, DER: peers that know
    /// only that root trust it through this certificate. Empty if it is not needed.
    #[serde(default, with = "blob", skip_serializing_if = "Vec::is_empty")]
    pub crossed: Vec<u8>,
}

const fn first_generation() -> u32 {
    1
}

const fn is_first_generation(generation: &u32) -> bool {
    *generation == 1
}

/// Progress of a rotation of the authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaPhase {
    /// Both generations are trusted; the new one signs for agents, the old one for peers.
    Overlap,
    /// Both are trusted; the new one signs for all.
    Switched,
    /// The old generation is deleted.
    Done,
}

/// A rotation of the certificate authority: the one in progress, or the last one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaRotation {
    /// The key: [`CaRotation::ONE`].
    pub name: String,
    /// The old generation.
    pub from: u32,
    /// The new generation.
    pub to: u32,
    /// Begin of the overlap.
    pub began_at: Timestamp,
    /// Latest end of the trust in the old generation.
    pub until: Timestamp,
    /// `true` if all identities are asked to renew now. The old generation ends once they did.
    pub is_forced: bool,
    /// Progress of the rotation.
    pub phase: CaPhase,
    /// Time at which the new generation began to sign for peers. `None` means not yet.
    #[serde(default)]
    pub switched_at: Option<Timestamp>,
    /// Time at which the old generation was deleted. `None` means not yet.
    #[serde(default)]
    pub done_at: Option<Timestamp>,
}

impl CaRotation {
    /// Name of the one that there is.
    pub const ONE: &'static str = "rotation";
    /// Shortest overlap, milliseconds: a minute.
    pub const OVERLAP_MIN_MS: u64 = 60_000;
    /// Longest overlap, milliseconds: ninety days.
    pub const OVERLAP_MAX_MS: u64 = 90 * 24 * 3_600_000;

    /// Time from which the new generation signs for peers.
    pub fn switch_at(&self) -> Timestamp {
        let whole = self.until.since_ms(self.began_at);
        let before = PEERS_MS.min(whole / 2);
        Timestamp::from_ms(self.until.ms().saturating_sub(before))
    }
}

/// Time before the end of an overlap at which the new generation starts to sign for peers,
/// milliseconds: a day, so that a control node that is down does not miss it. At most half of the
/// overlap.
const PEERS_MS: u64 = 24 * 3_600_000;

impl fmt::Debug for CaRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CaRecord")
            .field("id", &self.id)
            .field("sealed_key", &"<redacted>")
            .field("not_after", &self.not_after)
            .field("retired", &self.retired)
            .finish_non_exhaustive()
    }
}
