//! The proof that a port was in a segment because control wanted it there.

use proto_types::{Timestamp, Vni};
use serde::{Deserialize, Serialize};

/// The segment that a port was seen in while control wanted it there, and has been in ever since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedPort {
    /// VNI of the segment, or L3 VNI of the VRF.
    pub vni: Vni,
    /// Time of the first report that says so although control wants the port elsewhere. `None`
    /// means that there was none yet.
    #[serde(default)]
    pub overdue_since: Option<Timestamp>,
}

impl PlacedPort {
    /// Longest time for which a switch that reports holds the segment of a port that it does not
    /// move, milliseconds: a day, in which an operator hears of it. Afterwards its report holds
    /// nothing: it would hold the number forever. A switch that does not report holds on.
    const OVERDUE_MAX_MS: u64 = 24 * 3_600_000;

    /// The proof after a report that sees the port in `seen` while control wants it in `wanted`.
    pub(crate) fn after(
        before: Option<Self>,
        seen: Vni,
        wanted: Vni,
        now: Timestamp,
    ) -> Option<Self> {
        if seen == Vni::NONE {
            return None;
        }
        if seen == wanted {
            return Some(Self {
                vni: seen,
                overdue_since: None,
            });
        }
        let before = before.filter(|before| before.vni == seen)?;
        Some(Self {
            overdue_since: before.overdue_since.or(Some(now)),
            ..before
        })
    }

    /// `true` if the port keeps the segment from another owner.
    pub(crate) fn holds(&self, vni: Vni, now: Timestamp) -> bool {
        let is_current = |since: Timestamp| now < since.plus_ms(Self::OVERDUE_MAX_MS);
        self.vni == vni && self.overdue_since.is_none_or(is_current)
    }
}
