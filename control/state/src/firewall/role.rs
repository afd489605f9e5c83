//! The role of a firewall among those of its project, and the reason for it.

use proto_types::MachineId;

use crate::firewall::health::{FirewallAilment, ailment};
use crate::firewall::read::{firewall_allocation, own_status, rule_sets_of_firewall};
use crate::firewall::standby::{DISTANCE_MAX, firewall_distance};
use crate::machine::entity::Machine;
use crate::tables::Tables;

/// The role of a firewall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirewallRole {
    /// Control prefers its routes to those of all others.
    Active,
    /// Control prefers the routes of others.
    Standby,
    /// Its routes are not there, or keep as far as they can.
    Withdrawn,
}

impl FirewallRole {
    /// Its name in outputs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Standby => "standby",
            Self::Withdrawn => "withdrawn",
        }
    }
}

/// A firewall's place among those of its project, and its health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirewallStanding {
    /// Its role.
    pub role: FirewallRole,
    /// Number of firewalls that control prefers to it: the distance that it is told.
    pub place: u32,
    /// Why it is withdrawn, or else why it is not healthy. Empty means neither.
    pub reason: String,
    /// Why it is not healthy. `None` means that it is.
    pub ailment: Option<FirewallAilment>,
}

/// The standing of a firewall. `None` for a machine that is none.
pub fn firewall_standing(tables: &Tables, machine: MachineId) -> Option<FirewallStanding> {
    firewall_allocation(tables, machine)?;
    let machine = tables.get::<Machine>(&machine)?;
    let place = firewall_distance(tables, machine.id);
    let ailment = ailment(tables, machine);
    let routes = own_status(tables, machine).and_then(|status| status.routes.as_ref());
    // The agent knows of a failure before control does, and withdraws by itself.
    let withdraws = routes.is_some_and(|routes| routes.wanted == DISTANCE_MAX);
    let (role, reason) = role(
        place,
        machine.is_leaving(),
        ailment.as_ref(),
        withdraws && place < DISTANCE_MAX,
    );
    Some(FirewallStanding {
        role,
        place,
        reason,
        ailment,
    })
}

fn role(
    place: u32,
    is_leaving: bool,
    ailment: Option<&FirewallAilment>,
    withdraws: bool,
) -> (FirewallRole, String) {
    use FirewallAilment::{NoAgent, NoRules, NotRunning};
    let said = ailment.map(ToString::to_string).unwrap_or_default();
    match ailment {
        _ if is_leaving => (FirewallRole::Withdrawn, "it is being freed".to_owned()),
        Some(NotRunning(_) | NoAgent | NoRules) => (FirewallRole::Withdrawn, said),
        _ if withdraws => {
            let reason = "its agent says that its rules are not in force";
            (FirewallRole::Withdrawn, reason.to_owned())
        }
        _ if place == 0 => (FirewallRole::Active, said),
        _ => (FirewallRole::Standby, said),
    }
}

/// The reason why a firewall cannot carry the traffic of another one yet. `None` means that it can:
/// it is healthy, its rules are in force, and its kernel has the newest revision of each of its sets.
pub(crate) fn unready(tables: &Tables, machine: &Machine) -> Option<String> {
    let standing = firewall_standing(tables, machine.id)?;
    if standing.ailment.is_some() || standing.role == FirewallRole::Withdrawn {
        return Some(standing.reason);
    }
    let status = own_status(tables, machine);
    let sets = rule_sets_of_firewall(tables, machine.id);
    sets.into_iter().find_map(|set| {
        let applied = status.and_then(|status| status.applied_sets.get(&set.set.to_string()));
        let (applied, newest) = (applied.copied().unwrap_or_default(), set.current.number);
        let reason = format!(
            "its kernel has revision {applied} of the rules {}, and not {newest}",
            set.set
        );
        (applied != newest).then_some(reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::entity::Phase;

    #[test]
    fn a_role_has_its_reason() {
        use FirewallRole::{Active, Standby, Withdrawn};
        let installing = FirewallAilment::NotRunning(Phase::Installing);
        let silent = FirewallAilment::Silent;
        let failed = FirewallAilment::NotApplied("a probe failed".into());
        for (place, is_leaving, ailment, withdraws, wanted, reason) in [
            (0, false, None, false, Active, ""),
            (2, false, None, false, Standby, ""),
            (8, true, None, false, Withdrawn, "being freed"),
            (8, true, Some(&silent), false, Withdrawn, "being freed"),
            (
                1,
                false,
                Some(&installing),
                false,
                Withdrawn,
                "does not run",
            ),
            (
                0,
                false,
                Some(&FirewallAilment::NoRules),
                false,
                Withdrawn,
                "has not reported",
            ),
            (0, false, None, true, Withdrawn, "not in force"),
            // A firewall that is alone carries the traffic as well as it can.
            (0, false, Some(&failed), false, Active, "a probe failed"),
            (1, false, Some(&silent), false, Standby, "no sign of life"),
        ] {
            let (role, said) = role(place, is_leaving, ailment, withdraws);
            assert_eq!(role, wanted, "{place} {ailment:?}");
            assert!(said.contains(reason), "{said}");
            assert_eq!(said.is_empty(), reason.is_empty(), "{said}");
        }
    }
}
