//! The condition of a switch, as its agent reports it.

use proto_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::switch::entity::{EvpnTables, RoutingSession};

/// The condition of a switch beside its ports. The report bounds every list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SwitchHealth {
    /// Objects that are not as desired.
    pub problems: Vec<ObjectProblem>,
    /// Number of problems that are not listed.
    pub problems_omitted: u32,
    /// Changes by hand of the last minutes, oldest first.
    pub drift: Vec<ObjectDrift>,
    /// BGP sessions.
    pub sessions: Vec<RoutingSession>,
    /// Number of sessions that are not listed.
    pub sessions_omitted: u32,
    /// EVPN's tables. `None` means that the switch has no EVPN.
    pub evpn: Option<EvpnTables>,
    /// `true` if BGP announces its routes as the last resort.
    pub is_draining: bool,
}

/// An object of a switch that is not as desired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectProblem {
    /// The object in words: `port swp1`. Empty for a part of the desired state that names none.
    pub object: String,
    /// The reason.
    pub reason: String,
    /// Failed attempts in a row; 0 if nothing was tried. A change of it alone is not written.
    pub attempts: u32,
}

/// A change of a switch that neither control nor the agent made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectDrift {
    /// The object in words.
    pub object: String,
    /// Its state when the agent noticed the change, in words.
    pub seen: String,
    /// Its desired state, in words.
    pub desired: String,
    /// Time when the agent noticed it.
    pub noticed_at: Timestamp,
    /// `true` if the object is as desired again.
    pub is_healed: bool,
    /// `true` if the site's policy leaves the object so.
    pub is_held: bool,
}

impl SwitchHealth {
    /// `true` if nothing was reported.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// `true` if another report says the same, numbers apart that change all the time.
    pub fn is_like(&self, other: &Self) -> bool {
        let without_numbers = |health: &Self| {
            let mut health = health.clone();
            for problem in &mut health.problems {
                problem.attempts = 0;
            }
            for session in &mut health.sessions {
                session.clear_numbers();
            }
            if let Some(evpn) = &mut health.evpn {
                evpn.routes = 0;
            }
            health
        };
        without_numbers(self) == without_numbers(other)
    }
}
