//! A firewall that takes the place of another one, and the sets of rules of both.

use proto_firewall::{RuleContent, RuleOwner};
use proto_types::MachineId;

use crate::firewall::entity::{FirewallRuleSet, RuleSetKey, RuleTarget};
use crate::firewall::read::{firewall_allocation, owners};
use crate::machine::entity::{CarriedRules, Machine, ReplacedFirewall};
use crate::machine::read::project_machines;
use crate::tables::Tables;

/// The firewall that takes the place of another one, and since when. `None` if none does.
pub fn firewall_replacement(
    tables: &Tables,
    replaced: MachineId,
) -> Option<(MachineId, &ReplacedFirewall)> {
    let own = firewall_allocation(tables, replaced)?;
    let mut machines = project_machines(tables, own.project);
    machines.find_map(|machine| {
        let allocation = machine.allocation.as_ref()?;
        let found = allocation.replaces.as_ref()?;
        let is_own = found.allocation == own.id && !machine.is_leaving();
        is_own.then_some((machine.id, found))
    })
}

/// The firewall that another one replaces, while it is there. `None` if there is none.
pub(crate) fn replaced_firewall(tables: &Tables, by: MachineId) -> Option<&ReplacedFirewall> {
    let replaced = firewall_allocation(tables, by)?.replaces.as_ref()?;
    is_present(tables, replaced).then_some(replaced)
}

/// `true` if a firewall that is replaced is still there, and not being freed.
pub(crate) fn is_present(tables: &Tables, replaced: &ReplacedFirewall) -> bool {
    let machine = tables.get::<Machine>(&replaced.machine);
    machine.is_some_and(|machine| {
        let allocation = machine.allocation.as_ref();
        let is_same = allocation.is_some_and(|own| own.id == replaced.allocation);
        is_same && !machine.is_leaving()
    })
}

/// The sets of one owner: that of a firewall that is replaced, and that of its replacement.
#[derive(Debug)]
pub(crate) struct RuleSetPair {
    /// The set of the firewall that is replaced.
    pub(crate) from: RuleSetKey,
    /// The set of its replacement.
    pub(crate) to: RuleSetKey,
    /// Their revisions when the two were last compared.
    pub(crate) known: CarriedRules,
}

impl RuleSetPair {
    pub(crate) fn of(new: MachineId, replaced: &ReplacedFirewall, owner: RuleOwner) -> Self {
        let known = replaced.carried.get(&owner).copied();
        Self {
            from: firewall_set(replaced.machine, owner),
            to: firewall_set(new, owner),
            known: known.unwrap_or_default(),
        }
    }

    /// Those of both owners.
    pub(crate) fn all(new: MachineId, replaced: &ReplacedFirewall) -> [Self; 2] {
        owners().map(|owner| Self::of(new, replaced, owner))
    }

    /// `true` if both say the same.
    pub(crate) fn is_alike(&self, tables: &Tables) -> bool {
        content(tables, &self.from) == content(tables, &self.to)
    }

    /// `true` if the replacement lacks what was written for the other firewall.
    pub(crate) fn is_behind(&self, tables: &Tables) -> bool {
        revision_of(tables, &self.from) != self.known.original && !self.is_alike(tables)
    }

    /// `true` if the other firewall lacks what was written for the replacement since that has the
    /// place.
    pub(crate) fn is_ahead(&self, tables: &Tables) -> bool {
        let number = revision_of(tables, &self.to);
        self.known.own.is_some_and(|own| own != number) && !self.is_alike(tables)
    }

    /// `true` if both were alike when they were last compared, since the replacement has the place.
    pub(crate) fn is_shared(&self) -> bool {
        let CarriedRules {
            original,
            copy,
            own,
        } = self.known;
        // Without a copy both had no set. A replacement that had none beside a set of the other one
        // was meant to differ.
        own == Some(copy) && (copy != 0 || original == 0)
    }
}

/// Key of a set of rules that is attached to a firewall.
pub(crate) fn firewall_set(machine: MachineId, owner: RuleOwner) -> RuleSetKey {
    RuleSetKey {
        target: RuleTarget::Firewall(machine),
        owner,
    }
}

/// Number of the revision of a set that is in force. 0 means that there is none.
pub(crate) fn revision_of(tables: &Tables, set: &RuleSetKey) -> u64 {
    let row = tables.get::<FirewallRuleSet>(set);
    row.map_or(0, |row| row.current.number)
}

/// The command that writes an owner's set of a firewall, for remedies.
pub(crate) fn apply_command(firewall: MachineId, owner: RuleOwner) -> String {
    let operator = match owner {
        RuleOwner::Operator => " --operator",
        RuleOwner::Tenant => "",
    };
    format!("metalmesh firewall rules apply --firewall {firewall}{operator} -f FILE")
}

fn content<'a>(tables: &'a Tables, set: &RuleSetKey) -> Option<&'a RuleContent> {
    let row = tables.get::<FirewallRuleSet>(set);
    row.map(|row| &row.current.content)
}
