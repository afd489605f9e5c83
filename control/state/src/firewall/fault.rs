//! Faults of firewalls that somebody has to mend: how they were made, or installed, and rules that did
//! not get from a firewall to its replacement, or back.

use proto_firewall::RuleOwner;
use proto_types::MachineId;

use crate::firewall::entity::RuleSetKey;
use crate::firewall::read::{firewall_allocation, own_status};
use crate::firewall::replacement::{
    RuleSetPair, apply_command, firewall_replacement, replaced_firewall, revision_of,
};
use crate::identity::entity::Certificate;
use crate::machine::entity::{Allocation, Machine};
use crate::tables::Tables;

/// A fault of a firewall that somebody has to mend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirewallFault {
    /// It may have SSH keys or user data of its project. Only a replacement ends that.
    TenantAccess,
    /// The published hammer installed it, without an agent. Only a replacement ends that.
    NoAgent,
    /// It is one of a firewall and the replacement that took its place, and lacks rules that were
    /// written for the other one and could not be carried over.
    RulesDiffer {
        /// The other one.
        other: MachineId,
        /// The owner of the rules.
        owner: RuleOwner,
        /// Number of the revision of the other one's set. 0 means that it was deleted.
        revision: u64,
    },
}

impl FirewallFault {
    /// Its name in outputs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::TenantAccess => "tenant-access",
            Self::NoAgent => "no-agent",
            Self::RulesDiffer { .. } => "rules-differ",
        }
    }

    /// The problem, in words.
    #[must_use]
    pub fn problem(self) -> String {
        match self {
            Self::TenantAccess => {
                "it was made when its project could still give it SSH keys and user data, and has some: \
                 whoever has the keys may get into it, and from it into the underlay"
                    .to_owned()
            }
            Self::NoAgent => {
                "the published hammer installed it, which brings no agent: no rules of control are in \
                 force there, and no report comes"
                    .to_owned()
            }
            Self::RulesDiffer {
                other,
                owner,
                revision: 0,
            } => format!(
                "the {owner}'s rules of firewall {other} were deleted, and its own could not be: they \
                 are in force while it carries the traffic"
            ),
            Self::RulesDiffer {
                other,
                owner,
                revision,
            } => format!(
                "revision {revision} of the {owner}'s rules of firewall {other} could not be carried \
                 over to it: they are not in force while it carries the traffic"
            ),
        }
    }

    /// The remedy for this firewall.
    #[must_use]
    pub fn remedy(self, firewall: MachineId) -> String {
        match self {
            Self::TenantAccess => format!("metalmesh firewall roll {firewall}"),
            Self::NoAgent => format!(
                "have the partition boot metalmesh-hammer, then: metalmesh firewall roll {firewall} \
                 --force"
            ),
            Self::RulesDiffer { owner, .. } => {
                let command = apply_command(firewall, owner);
                format!("write the same rules for both: {command}")
            }
        }
    }
}

/// The faults of a firewall. Empty for a machine that is none.
pub fn firewall_faults(tables: &Tables, machine: MachineId) -> Vec<FirewallFault> {
    let Some(allocation) = firewall_allocation(tables, machine) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    if allocation.may_be_entered_by_project() {
        faults.push(FirewallFault::TenantAccess);
    }
    let found = tables.get::<Machine>(&machine);
    if found.is_some_and(|found| lacks_agent(tables, found)) {
        faults.push(FirewallFault::NoAgent);
    }
    faults.extend(lacking_rules(tables, machine));
    faults
}

/// The sets that a firewall lacks of the one whose place it took, or of the one that took its place.
fn lacking_rules(tables: &Tables, machine: MachineId) -> Vec<FirewallFault> {
    let mut faults = Vec::new();
    let fault = |other, set: &RuleSetKey| FirewallFault::RulesDiffer {
        other,
        owner: set.owner,
        revision: revision_of(tables, set),
    };
    let replaced = replaced_firewall(tables, machine);
    if let Some(replaced) = replaced.filter(|replaced| replaced.taken_at.is_some()) {
        let pairs = RuleSetPair::all(machine, replaced).into_iter();
        let behind = pairs.filter(|pair| pair.is_behind(tables));
        faults.extend(behind.map(|pair| fault(replaced.machine, &pair.from)));
    }
    if let Some((new, replaced)) = firewall_replacement(tables, machine) {
        let pairs = RuleSetPair::all(new, replaced).into_iter();
        let ahead = pairs.filter(|pair| pair.is_ahead(tables));
        faults.extend(ahead.map(|pair| fault(new, &pair.to)));
    }
    faults
}

/// `true` for a firewall that the published hammer installed. Ours tells the disk of the system, which
/// the published contract cannot, and has control certify the system: without that no agent can speak
/// with control.
pub(crate) fn lacks_agent(tables: &Tables, machine: &Machine) -> bool {
    let Some(allocation) = &machine.allocation else {
        return false;
    };
    let install = &allocation.install;
    install.installed_at.is_some()
        && install.primary_disk.is_empty()
        && own_status(tables, machine).is_none()
        && !has_certificate(tables, machine.id, allocation)
}

fn has_certificate(tables: &Tables, machine: MachineId, allocation: &Allocation) -> bool {
    let serials = tables.index().machine_certificates.get(&machine);
    let certificates = serials.into_iter().flatten();
    let mut certificates = certificates.filter_map(|serial| tables.get::<Certificate>(serial));
    certificates.any(|certificate| certificate.allocation == Some(allocation.id))
}
