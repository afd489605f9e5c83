//! Commands about machines: by users, by admins, by hammer, by the BMC agent, by the clock.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use proto_types::{
    AllocationId, BootTicketId, Digest, ImageId, LayoutId, MacAddr, MachineId, NetworkId, OrderId,
    PartitionId, ProjectId, SizeId, Timestamp,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::entities::{
    AllocationType, Availability, Bios, BmcAccess, BmcAction, BmcStream, DiskWipe, Draw, EventKind,
    FirewallRules, Fru, Hardware, VpnAccess,
};
use crate::identity::command::CreateToken;
use crate::meta::{Labels, LabelsUpdate, Lock};

/// See [`Op::ReconcileRestore`](crate::Op::ReconcileRestore).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReconcileRestore {
    /// `true` judges free machines that were not heard since, too; otherwise they are locked.
    #[serde(default)]
    pub judge_silent: bool,
}

/// A network that an allocation asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedNetwork {
    /// Which.
    pub network: NetworkId,
    /// Addresses that the project has already; new ones of each version when empty.
    #[serde(default)]
    pub ips: Vec<IpAddr>,
}

/// A client's key: the same key and request give the same machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyRequest {
    /// The client's key.
    pub key: String,
    /// SHA-256 of the request as the client sent it.
    pub request: Digest,
}

/// See [`Op::AllocateMachine`](crate::Op::AllocateMachine).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct AllocateMachine {
    /// Id of the allocation, new each time.
    pub id: AllocationId,
    /// For whom.
    pub project: ProjectId,
    /// This machine and no other; tainted is fine then. Only for admins: the API checks.
    #[serde(default)]
    pub machine: Option<MachineId>,
    /// Shown name.
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Host name; `metal` without one.
    #[serde(default)]
    pub hostname: Option<String>,
    /// Where; required without a machine.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// What; required without a machine.
    #[serde(default)]
    pub size: Option<SizeId>,
    /// Exact image, or `os-major[.minor]` for the newest supported patch.
    pub image: ImageId,
    /// Layout; `None` means the one whose constraints match, without which it is refused.
    #[serde(default)]
    pub layout: Option<LayoutId>,
    /// Keys that may log in.
    #[serde(default)]
    pub ssh_public_keys: Vec<String>,
    /// Base64.
    #[serde(default)]
    pub userdata: String,
    /// Labels.
    #[serde(default)]
    pub labels: Labels,
    /// At least one.
    pub networks: Vec<WantedNetwork>,
    /// Machines with equal ones are spread over racks.
    #[serde(default)]
    pub placement_labels: Labels,
    /// Those of the partition without.
    #[serde(default)]
    pub dns_servers: Vec<IpAddr>,
    /// Those of the partition without.
    #[serde(default)]
    pub ntp_servers: Vec<String>,
    /// What it is used as.
    #[serde(default)]
    pub kind: AllocationType,
    /// Of a firewall.
    #[serde(default)]
    pub firewall_rules: FirewallRules,
    /// Of a firewall: its way into the VPN, made for it alone.
    #[serde(default)]
    pub vpn: Option<VpnAccess>,
    /// Chooses among machines that are equally good; random, from the proposer.
    pub seed: u64,
    /// The client's key.
    #[serde(default)]
    pub idempotency: Option<IdempotencyRequest>,
}

impl AllocateMachine {
    /// Whether its way into the VPN is sealed, which nodes below
    /// [`VPN_SEAL_LEVEL`](crate::VPN_SEAL_LEVEL) cannot open.
    pub(crate) fn seals_vpn(&self) -> bool {
        let access = self.vpn.as_ref();
        access.is_some_and(|it| !it.sealed_key.is_empty())
    }
}

impl fmt::Debug for AllocateMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AllocateMachine")
            .field("id", &self.id)
            .field("project", &self.project)
            .field("machine", &self.machine)
            .field("name", &self.name)
            .field("partition", &self.partition)
            .field("size", &self.size)
            .field("image", &self.image)
            .field("networks", &self.networks)
            .field("userdata", &"<redacted>")
            .finish_non_exhaustive()
    }
}

/// See [`Op::UpdateMachine`](crate::Op::UpdateMachine). Fields that are none stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateMachine {
    /// Which.
    pub id: MachineId,
    /// Guard.
    pub lock: Lock,
    /// Who must have it.
    pub project: ProjectId,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Labels of the allocation.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
    /// Keys that may log in; refused once an installation has begun that writes others.
    #[serde(default)]
    pub ssh_public_keys: Option<Vec<String>>,
}

/// See [`Op::FreeMachine`](crate::Op::FreeMachine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FreeMachine {
    /// Which.
    pub id: MachineId,
    /// The project that must have it. `None` means that an administrator frees it, whoever has it:
    /// only a machine that gives no sign of life.
    #[serde(default)]
    pub project: Option<ProjectId>,
}

/// See [`Op::SetMachineState`](crate::Op::SetMachineState).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetMachineState {
    /// Which.
    pub id: MachineId,
    /// Whether users may have it.
    pub state: Availability,
    /// Why.
    #[serde(default)]
    pub description: String,
}

/// See [`Op::DeleteMachine`](crate::Op::DeleteMachine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteMachine {
    /// Which.
    pub id: MachineId,
}

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

impl ReportBmc {
    /// Whether it says what a machine draws, which nodes below [`DRAW_LEVEL`](crate::DRAW_LEVEL)
    /// leave out.
    pub(crate) fn tells_draw(&self) -> bool {
        self.readings.iter().any(|it| it.draw.is_some())
    }

    /// `true` if it names users, which nodes below [`CONTRACT_LEVEL`](crate::CONTRACT_LEVEL) leave
    /// out.
    pub(crate) fn tells_users(&self) -> bool {
        self.readings.iter().any(|reading| !reading.user.is_empty())
    }
}

/// See [`Op::ConfirmBmc`](crate::Op::ConfirmBmc).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmBmc {
    /// Of which machine.
    pub machine: MachineId,
    /// Address of the BMC, with or without a port.
    pub address: String,
}

/// See [`Op::MachineSeen`](crate::Op::MachineSeen).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineSeen {
    /// Which.
    pub id: MachineId,
    /// Where pixie is.
    pub partition: PartitionId,
    /// Where the request came from; none when the boot server does not tell.
    #[serde(default)]
    pub mac: Option<MacAddr>,
    /// Time of the packet by control's clock; older than now when pixie kept it.
    pub seen_at: Timestamp,
    /// Time of the packet as pixie stated it, by which a repetition is known; `None` when the boot
    /// server tells each boot once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated_at: Option<Timestamp>,
    /// Pixie sent it to its disk by what it knew last: control did not answer in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub to_disk: bool,
}

/// See [`Op::RegisterMachine`](crate::Op::RegisterMachine).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisterMachine {
    /// Which.
    pub id: MachineId,
    /// Where it is when nobody has seen it before: it is made with this change, as
    /// [`Op::MachineSeen`](crate::Op::MachineSeen) would have made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_in: Option<PartitionId>,
    /// Version of hammer.
    #[serde(default)]
    pub hammer_version: String,
    /// Changes with each boot.
    pub boot_id: String,
    /// What it is made of.
    pub hardware: Hardware,
    /// Firmware's identity.
    #[serde(default)]
    pub bios: Bios,
    /// Field-replaceable-unit data as seen in band.
    #[serde(default)]
    pub fru: Fru,
    /// Address of the BMC as seen in band; empty without one.
    #[serde(default)]
    pub bmc_address: String,
    /// MAC address of the BMC as seen in band.
    #[serde(default)]
    pub bmc_mac: String,
    /// Firmware version of the BMC as seen in band.
    #[serde(default)]
    pub bmc_version: String,
}

/// See [`Op::MachineEvent`](crate::Op::MachineEvent).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineEvent {
    /// Which.
    pub id: MachineId,
    /// What happened.
    pub kind: EventKind,
    /// Said about it.
    #[serde(default)]
    pub message: String,
    /// The sender's time, as stated: a repetition is known by it. What is recorded is not beyond
    /// reason.
    pub time: Timestamp,
}

/// See [`Op::WipeDone`](crate::Op::WipeDone).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WipeDone {
    /// Which.
    pub id: MachineId,
    /// Disk by disk.
    pub disks: Vec<DiskWipe>,
}

/// See [`Op::InstallDone`](crate::Op::InstallDone).
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct InstallDone {
    /// Which.
    pub id: MachineId,
    /// Of which allocation.
    pub allocation: AllocationId,
    /// Why it failed; none on success.
    #[serde(default)]
    pub error: Option<String>,
    /// The step that failed.
    #[serde(default)]
    pub step: String,
    /// Whether another try may help.
    #[serde(default)]
    pub retryable: bool,
    /// The last lines of hammer's log.
    #[serde(default)]
    pub log_tail: String,
    /// Password of the console.
    #[serde(default)]
    pub console_password: String,
    /// Disk that the system is on.
    #[serde(default)]
    pub primary_disk: String,
}

impl fmt::Debug for InstallDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstallDone")
            .field("id", &self.id)
            .field("allocation", &self.allocation)
            .field("error", &self.error)
            .field("step", &self.step)
            .field("retryable", &self.retryable)
            .field("console_password", &"<redacted>")
            .finish_non_exhaustive()
    }
}

/// See [`Op::PhoneHome`](crate::Op::PhoneHome).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhoneHome {
    /// Which.
    pub id: MachineId,
    /// Of its identity: must be the project that has the machine.
    pub project: ProjectId,
    /// Said about it: kernel, uptime.
    #[serde(default)]
    pub message: String,
    /// The sender's time.
    pub time: Timestamp,
}

/// See [`Op::CreateMachineToken`](crate::Op::CreateMachineToken).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateMachineToken {
    /// The token, with a role on the machine alone.
    pub token: CreateToken,
    /// Which machine boots.
    pub machine: MachineId,
}

/// See [`Op::IssueBootTicket`](crate::Op::IssueBootTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IssueBootTicket {
    /// Public name.
    pub id: BootTicketId,
    /// For which machine.
    pub machine: MachineId,
    /// That booted from this address.
    pub mac: MacAddr,
    /// Where pixie is: the machine must be there.
    pub partition: PartitionId,
    /// SHA-256 of the secret.
    pub secret: Digest,
    /// End of validity.
    pub expires_at: Timestamp,
}

/// See [`Op::RedeemBootTicket`](crate::Op::RedeemBootTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedeemBootTicket {
    /// Public name.
    pub id: BootTicketId,
    /// SHA-256 of the secret that was shown.
    pub secret: Digest,
    /// Machine that says so.
    pub machine: MachineId,
    /// Address that it says it booted from.
    pub mac: MacAddr,
    /// SHA-256 of what it read in its BMC, where its partition demands that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<Digest>,
}
