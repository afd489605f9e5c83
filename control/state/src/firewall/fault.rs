//! Faults of firewalls that only a replacement ends: how they were made, or installed.

use proto_types::MachineId;

use crate::firewall::read::{firewall_allocation, own_status};
use crate::identity::entity::Certificate;
use crate::machine::entity::{Allocation, Machine};
use crate::tables::Tables;

/// A fault that only a replacement of the firewall ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirewallFault {
    /// It may have SSH keys or user data of its project.
    TenantAccess,
    /// The published hammer installed it, without an agent.
    NoAgent,
}

impl FirewallFault {
    /// Its name in outputs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::TenantAccess => "tenant-access",
            Self::NoAgent => "no-agent",
        }
    }

    /// The problem, in words.
    #[must_use]
    pub const fn problem(self) -> &'static str {
        match self {
            Self::TenantAccess => {
                "it was made when its project could still give it SSH keys and user data, and has some: \
                 whoever has the keys may get into it, and from it into the underlay"
            }
            Self::NoAgent => {
                "the published hammer installed it, which brings no agent: no rules of control are in \
                 force there, and no report comes"
            }
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
    let machine = tables.get::<Machine>(&machine);
    if machine.is_some_and(|machine| lacks_agent(tables, machine)) {
        faults.push(FirewallFault::NoAgent);
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
