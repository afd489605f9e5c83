//! The record of a machine.

use std::collections::BTreeSet;

use proto_types::{MacAddr, MachineId, PartitionId, SizeId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::machine::entity::{
    Allocation, Availability, Bios, Bmc, BmcAccess, BmcClaim, Condition, Fru, Hardware, HoldCause,
    Phase, PortLink, Segment, WipeRecord,
};
use crate::meta::Meta;

/// The identify LED.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Led {
    /// `on`, `off`, `blinking`; empty when unknown.
    pub value: String,
    /// Why it is on.
    pub description: String,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The key: SMBIOS UUID.
    pub id: MachineId,
    /// Head.
    pub meta: Meta,
    /// Where it is.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// Rack, from the switch that it is cabled to.
    #[serde(default)]
    pub rack: String,
    /// Room, from the switch that it is cabled to.
    #[serde(default)]
    pub room: String,
    /// The one size that matches.
    #[serde(default)]
    pub size: Option<SizeId>,
    /// What it is made of.
    #[serde(default)]
    pub hardware: Hardware,
    /// Firmware's identity.
    #[serde(default)]
    pub bios: Bios,
    /// What its BMC is.
    #[serde(default)]
    pub bmc: Option<Bmc>,
    /// Other BMCs that claim to be its own. While one of them is not rejected, no orders are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bmc_claims: Vec<BmcClaim>,
    /// How its BMC lets an agent of the published stack in.
    #[serde(default)]
    pub bmc_access: Option<BmcAccess>,
    /// Field-replaceable-unit data.
    #[serde(default)]
    pub fru: Fru,
    /// Identify LED.
    #[serde(default)]
    pub led: Led,
    /// Version of hammer that registered it.
    #[serde(default)]
    pub hammer_version: String,
    /// Changes with each boot into hammer.
    #[serde(default)]
    pub boot_id: String,
    /// Addresses that it asked pixie from.
    #[serde(default)]
    pub boot_macs: BTreeSet<MacAddr>,
    /// MAC address that it was first seen with; `None` when it became known in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_mac: Option<MacAddr>,
    /// Its cables.
    #[serde(default)]
    pub links: Vec<PortLink>,
    /// Where its ports belong.
    #[serde(default)]
    pub segment: Segment,
    /// Where it stands.
    pub phase: Phase,
    /// Since when.
    pub since: Timestamp,
    /// Why; empty when the phase says it all.
    #[serde(default)]
    pub reason: String,
    /// How often the current step was tried.
    #[serde(default)]
    pub step_attempts: u32,
    /// Whether somebody's data may be on its disks. Never on offer while it is set.
    pub dirty: bool,
    /// Serial numbers of the disks that were wiped since the last allocation.
    #[serde(default)]
    pub clean_disks: BTreeSet<String>,
    /// The last wipes, newest last.
    #[serde(default)]
    pub wipes: Vec<WipeRecord>,
    /// Whether users may have it.
    #[serde(default)]
    pub condition: Condition,
    /// Who has it.
    #[serde(default)]
    pub allocation: Option<Box<Allocation>>,
    /// The trace of the call that the machine is on its way for, a `traceparent`; none once it is
    /// there, or when nobody traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
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
            condition: Condition::default(),
            allocation: None,
            trace: None,
        }
    }

    /// `true` if the tenancy is over although the allocation still holds its numbers.
    pub const fn is_leaving(&self) -> bool {
        self.phase.is_reclaim()
            || matches!(self.phase, Phase::Held(HoldCause::Bmc | HoldCause::Ports))
    }

    /// `true` if it was only seen so far: it never registered, and nobody else knows of it.
    pub fn is_stranger(&self) -> bool {
        self.phase == Phase::New
            && self.bmc.is_none()
            && self.allocation.is_none()
            && self.condition.state == Availability::Available
    }

    /// Whether its orders are held: another BMC claims the machine as well.
    pub fn is_bmc_contested(&self) -> bool {
        self.bmc_claims.iter().any(|claim| !claim.rejected)
    }

    /// All addresses that it may boot from.
    pub fn macs(&self) -> BTreeSet<MacAddr> {
        self.hardware
            .nics
            .iter()
            .map(|nic| nic.mac)
            .chain(self.boot_macs.iter().copied())
            .collect()
    }
}
