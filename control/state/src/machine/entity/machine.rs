//! The record of a machine.

use std::collections::{BTreeMap, BTreeSet};

use proto_types::{MacAddr, MachineId, PartitionId, PoolId, ProjectId, SizeId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{
    Allocation, Availability, Bios, Bmc, BmcAccess, BmcClaim, Capability, Condition, Fru, Hardware,
    HoldCause, MachinePool, Phase, PortLink, RelayedPort, Segment, Tenure, WipeLevel, WipeRecord,
};
use crate::meta::Meta;

/// The identify LED.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Led {
    /// `on`, `off`, `blinking`; empty if unknown.
    pub value: String,
    /// The reason why it is on.
    pub description: String,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// SMBIOS UUID; the key.
    pub id: MachineId,
    /// Labels, times and generation.
    pub meta: Meta,
    /// Partition; `None` means that no agent has reported the machine yet.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// Rack, from the switch that it is cabled to.
    #[serde(default)]
    pub rack: String,
    /// Room, from the switch that it is cabled to.
    #[serde(default)]
    pub room: String,
    /// The one size that matches; `None` if no size matches, or more than one.
    #[serde(default)]
    pub size: Option<SizeId>,
    /// Hardware, as hammer reported it.
    #[serde(default)]
    pub hardware: Hardware,
    /// Identity of the firmware.
    #[serde(default)]
    pub bios: Bios,
    /// Its BMC; `None` means unknown.
    #[serde(default)]
    pub bmc: Option<Bmc>,
    /// Other BMCs that claim to be its own. Orders are held while one of them is not rejected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bmc_claims: Vec<BmcClaim>,
    /// Login of its BMC for agents of the published stack; `None` means unknown.
    #[serde(default)]
    pub bmc_access: Option<BmcAccess>,
    /// Field-replaceable-unit data.
    #[serde(default)]
    pub fru: Fru,
    /// Identify LED.
    #[serde(default)]
    pub led: Led,
    /// Version of the hammer that registered it.
    #[serde(default)]
    pub hammer_version: String,
    /// Id of its last boot into hammer; empty means that it never registered.
    #[serde(default)]
    pub boot_id: String,
    /// MAC addresses of its boot requests, until it registers.
    #[serde(default)]
    pub boot_macs: BTreeSet<MacAddr>,
    /// Ports that its cards asked for their last lease at, as the relays of switches say. Not
    /// changed while its ports are a tenant's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub boot_ports: BTreeMap<MacAddr, RelayedPort>,
    /// MAC address that it was first seen with; `None` if it became known in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_mac: Option<MacAddr>,
    /// Its cables.
    #[serde(default)]
    pub links: Vec<PortLink>,
    /// The segment that its ports belong in.
    #[serde(default)]
    pub segment: Segment,
    /// Phase of its life.
    pub phase: Phase,
    /// Time at which it entered the phase.
    pub since: Timestamp,
    /// The reason for people; empty if the phase needs none.
    #[serde(default)]
    pub reason: String,
    /// Number of attempts of the current step.
    #[serde(default)]
    pub step_attempts: u32,
    /// `true` if a tenant's data may be on its disks. It is not on offer then.
    pub dirty: bool,
    /// Serial numbers of the disks that were wiped since the last allocation.
    #[serde(default)]
    pub clean_disks: BTreeSet<String>,
    /// The last wipes, newest last.
    #[serde(default)]
    pub wipes: Vec<WipeRecord>,
    /// Strength of the next wipe if less than a full one will do, because the host is kept for the
    /// project that had it. `None` means as strong as each disk can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wipe_level: Option<WipeLevel>,
    /// Availability, with reason and issuer.
    #[serde(default)]
    pub condition: Condition,
    /// The allocation; `None` means that it is free.
    #[serde(default)]
    pub allocation: Option<Box<Allocation>>,
    /// The projects that own and lease it.
    #[serde(default, skip_serializing_if = "Tenure::is_default")]
    pub tenure: Tenure,
    /// Resource class and traits.
    #[serde(default, skip_serializing_if = "Capability::is_default")]
    pub capability: Capability,
    /// `traceparent` of the call that set the machine on its way. `None` once it arrived, or if the
    /// call was not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// The pool that it is a host of: it is on offer to claims, and to nobody else. Nobody owns, leases
    /// or holds it then. `None` means that it is in no pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolId>,
    /// `true` if its node is in maintenance, retired, or in a stage of Ironic's life cycle: it is on
    /// offer to nobody. Its [`NodeRecord`](crate::NodeRecord) says why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// `true` if an operator enrolled it as a node: it is no stranger, and not forgotten.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enrolled: bool,
    /// `true` if a project enrolled it as its own, and neither an administrator confirmed that nor an
    /// agent saw the machine yet. It becomes the site's when an agent sees it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unconfirmed: bool,
    /// Number of its bindings to claims when it left its last pool: the next pool counts on from it.
    #[serde(default, skip_serializing_if = "crate::machine::entity::is_zero")]
    pub bindings: u64,
}

impl Machine {
    /// A machine that was just seen for the first time; its disks may hold anything.
    pub(crate) fn seen(id: MachineId, partition: Option<PartitionId>, now: Timestamp) -> Self {
        Self {
            id,
            meta: Meta::default(),
            partition,
            rack: String::new(),
            room: String::new(),
            size: None,
            hardware: Hardware::default(),
            bios: Bios::default(),
            bmc: None,
            bmc_claims: Vec::new(),
            bmc_access: None,
            fru: Fru::default(),
            led: Led::default(),
            hammer_version: String::new(),
            boot_id: String::new(),
            boot_macs: BTreeSet::new(),
            boot_ports: BTreeMap::new(),
            first_mac: None,
            links: Vec::new(),
            segment: Segment::Provisioning,
            phase: Phase::New,
            since: now,
            reason: String::new(),
            step_attempts: 0,
            dirty: true,
            clean_disks: BTreeSet::new(),
            wipes: Vec::new(),
            wipe_level: None,
            condition: Condition::default(),
            allocation: None,
            tenure: Tenure::default(),
            capability: Capability::default(),
            trace: None,
            pool: None,
            withheld: false,
            enrolled: false,
            unconfirmed: false,
            bindings: 0,
        }
    }

    /// `true` if the tenancy is over although the allocation still holds its addresses and AS
    /// number.
    pub const fn is_leaving(&self) -> bool {
        self.phase.is_reclaim()
            || matches!(self.phase, Phase::Held(HoldCause::Bmc | HoldCause::Ports))
    }

    /// `true` if a project has the machine by its id. A machine that serves a claim of the project is
    /// not shown to it: the project has the claim.
    pub fn is_held_by(&self, project: ProjectId) -> bool {
        let allocation = self.allocation.as_ref();
        allocation.is_some_and(|found| found.project == project && found.claim.is_none())
    }

    /// `true` if a project has the machine by its id, or is the one that may get it while nobody has it.
    pub fn obeys(&self, project: ProjectId) -> bool {
        let is_for_it = self.tenure.pool() == MachinePool::Of(project);
        self.is_held_by(project) || (self.allocation.is_none() && is_for_it)
    }

    /// `true` if its last wipe left data on its disks, for the project that had them.
    pub(crate) fn has_light_wipe(&self) -> bool {
        let last = self.wipes.last();
        !self.dirty && last.is_some_and(|last| last.level() < WipeLevel::Erase)
    }

    /// `true` if every project may get it by partition and size: nobody owns, leases or holds it, it is
    /// in no pool, and its node does not withhold it.
    pub fn is_shared(&self) -> bool {
        self.tenure.is_default() && self.pool.is_none() && !self.withheld
    }

    /// `true` if a project that has the machine has one of those that are reserved for it. Machines of
    /// its own are not, and neither are hosts of pools, which it gets by claims.
    pub fn uses_reservation(&self) -> bool {
        self.tenure.pool() == MachinePool::Shared && self.pool.is_none()
    }

    /// `true` if it was only seen so far: it never registered, and no BMC or operator vouches for
    /// it.
    pub fn is_stranger(&self) -> bool {
        self.phase == Phase::New
            && self.bmc.is_none()
            && self.allocation.is_none()
            && self.condition.state == Availability::Available
            && self.is_shared()
            && !self.enrolled
    }

    /// `true` if an operator enrolled it, and no agent has seen it yet.
    pub fn is_unseen(&self) -> bool {
        self.enrolled
            && self.phase == Phase::New
            && self.partition.is_none()
            && self.boot_id.is_empty()
    }

    /// `true` if its orders are held because another BMC claims the machine as well.
    pub fn is_bmc_contested(&self) -> bool {
        self.bmc_claims.iter().any(|claim| !claim.rejected)
    }

    /// The port that a card's lease was asked for at, if that is not the port of this cable.
    pub(crate) fn denied_by(&self, link: &PortLink) -> Option<&RelayedPort> {
        let relayed = self.boot_ports.get(&link.mac);
        relayed.filter(|at| (&at.switch, &at.port) != (&link.switch, &link.port))
    }

    /// All MAC addresses that it may boot from.
    pub fn macs(&self) -> BTreeSet<MacAddr> {
        self.hardware
            .nics
            .iter()
            .map(|nic| nic.mac)
            .chain(self.boot_macs.iter().copied())
            .collect()
    }
}
