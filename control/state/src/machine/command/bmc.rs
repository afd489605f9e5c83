//! Commands about BMCs and orders to them.

use std::collections::BTreeSet;

use proto_types::{Digest, MachineId, OrderId, PartitionId, ProjectId, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::machine::entity::{BmcAccess, BmcAction, BmcStream, Draw, Fru};

/// See [`Op::OrderBmc`](crate::Op::OrderBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OrderBmc {
    /// For which machine.
    pub machine: MachineId,
    /// Who must have it; anyone when an admin orders.
    #[serde(default)]
    pub project: Option<ProjectId>,
    /// What to do.
    pub action: BmcAction,
    /// Said about it, for the LED.
    #[serde(default)]
    pub description: String,
}

/// See [`Op::DeleteBmcOrder`](crate::Op::DeleteBmcOrder).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteBmcOrder {
    /// Which.
    pub id: OrderId,
}

/// See [`Op::TakeBmcOrder`](crate::Op::TakeBmcOrder).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TakeBmcOrder {
    /// Which.
    pub id: OrderId,
    /// The partition that the stream serves; must be the order's.
    pub partition: PartitionId,
    /// The stream that takes it.
    pub stream: BmcStream,
    /// Ids of the partition's streams that are open on that control node. Orders that others of its
    /// streams have taken are free again: those streams have ended.
    pub open: BTreeSet<Uuid>,
}

/// See [`Op::KeepBmcAccess`](crate::Op::KeepBmcAccess).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeepBmcAccess {
    /// Of which machine.
    pub machine: MachineId,
    /// How its BMC lets an agent in.
    pub access: BmcAccess,
}

/// See [`Op::BmcOrderDone`](crate::Op::BmcOrderDone).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BmcOrderDone {
    /// Which.
    pub id: OrderId,
    /// Where the agent is: must be the order's partition.
    pub partition: PartitionId,
    /// Why it was not carried out.
    #[serde(default)]
    pub error: Option<String>,
    /// Power as read after the order.
    #[serde(default)]
    pub power_state: Option<String>,
    /// Of [`BmcAction::SetNonce`]: SHA-256 of what the BMC holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Digest>,
}

/// What the agent found at one BMC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BmcReading {
    /// SMBIOS UUID; readings without one are of no use here.
    pub machine: Option<MachineId>,
    /// host:port.
    pub address: String,
    /// Its address.
    pub mac: String,
    /// `redfish` or `ipmi`.
    pub interface: String,
    /// Firmware version of the BMC.
    pub bmc_version: String,
    /// Firmware of the machine.
    pub bios_version: String,
    /// Maker of that.
    pub bios_vendor: String,
    /// `on`, `off` or `unknown`.
    pub power_state: String,
    /// `on`, `off`, `blinking`; empty when unknown.
    pub led_state: String,
    /// Field-replaceable-unit data.
    pub fru: Fru,
    /// The user that the agent logs in as; empty when it does not tell.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// What the machine draws; none when the agent does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draw: Option<Draw>,
    /// Why the BMC could not be read.
    pub error: Option<String>,
    /// When it was read.
    pub observed_at: Timestamp,
}

/// See [`Op::ReportBmc`](crate::Op::ReportBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportBmc {
    /// Where the agent is.
    pub partition: PartitionId,
    /// What it found.
    pub readings: Vec<BmcReading>,
}

/// See [`Op::ConfirmBmc`](crate::Op::ConfirmBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmBmc {
    /// Of which machine.
    pub machine: MachineId,
    /// Address of the BMC, with or without a port.
    pub address: String,
}
