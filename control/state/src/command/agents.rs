//! Commands about switches, tickets, certificates and control's own records.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proto_types::{
    AllocationId, BootTicketId, Digest, JoinTicketId, MacAddr, MachineId, PartitionId, SwitchId,
    Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::entities::{AgentKind, CaRecord, Certificate, PortObserved, ReplaceMode, SigningKey};
use crate::meta::{LabelsUpdate, Lock};

/// See [`Op::RegisterSwitch`](crate::Op::RegisterSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RegisterSwitch {
    /// Which.
    pub id: SwitchId,
    /// Where the agent is.
    pub partition: PartitionId,
    /// Rack.
    #[serde(default)]
    pub rack: String,
    /// Room.
    #[serde(default)]
    pub room: String,
    /// Address of the management interface.
    #[serde(default)]
    pub management_ip: Option<IpAddr>,
    /// Underlay address that tunnels end at.
    #[serde(default)]
    pub vtep_ip: Option<IpAddr>,
    /// Ports by name, with their addresses.
    #[serde(default)]
    pub ports: BTreeMap<String, Option<MacAddr>>,
    /// What LLDP calls a port, by name, where that is not its name.
    #[serde(default)]
    pub identifiers: BTreeMap<String, String>,
    /// `linux`, `sonic`, ...
    #[serde(default)]
    pub os_vendor: String,
    /// Version of that.
    #[serde(default)]
    pub os_version: String,
    /// Version of the core agent.
    #[serde(default)]
    pub agent_version: String,
    /// Whether its agent reports whom the ports hear. That of the published stack does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hears: bool,
}

/// See [`Op::ReportSwitch`](crate::Op::ReportSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportSwitch {
    /// Which.
    pub id: SwitchId,
    /// Raft term of the state that is applied.
    #[serde(default)]
    pub applied_term: u64,
    /// Generation of the state that is applied.
    #[serde(default)]
    pub applied_generation: u64,
    /// Milliseconds that it took.
    #[serde(default)]
    pub duration_ms: u64,
    /// Why the last reconcile failed.
    #[serde(default)]
    pub error: Option<String>,
    /// What the ports really are.
    #[serde(default)]
    pub ports: BTreeMap<String, PortObserved>,
}

/// See [`Op::UpdateSwitch`](crate::Op::UpdateSwitch). Fields that are none stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UpdateSwitch {
    /// Which.
    pub id: SwitchId,
    /// Guard.
    pub lock: Lock,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// See [`ReplaceMode`].
    #[serde(default)]
    pub replace_mode: Option<ReplaceMode>,
    /// Address of the management interface.
    #[serde(default)]
    pub management_ip: Option<IpAddr>,
    /// Login for people.
    #[serde(default)]
    pub management_user: Option<String>,
    /// How people reach its console.
    #[serde(default)]
    pub console_command: Option<String>,
    /// Labels.
    #[serde(default)]
    pub labels: Option<LabelsUpdate>,
}

/// See [`Op::SetSwitchPort`](crate::Op::SetSwitchPort).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetSwitchPort {
    /// Which.
    pub id: SwitchId,
    /// Port.
    pub port: String,
    /// Switched on.
    pub admin_up: bool,
}

/// See [`Op::MigrateSwitch`](crate::Op::MigrateSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MigrateSwitch {
    /// Where the cables are.
    pub from: SwitchId,
    /// Where they go, each to the port of the same name.
    pub to: SwitchId,
}

/// See [`Op::DeleteSwitch`](crate::Op::DeleteSwitch).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeleteSwitch {
    /// Which.
    pub id: SwitchId,
    /// Although machines are cabled to it.
    #[serde(default)]
    pub force: bool,
}

/// See [`Op::CreateJoinTicket`](crate::Op::CreateJoinTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CreateJoinTicket {
    /// Public name.
    pub id: JoinTicketId,
    /// For what kind of agent.
    pub kind: AgentKind,
    /// Where.
    pub partition: PartitionId,
    /// The agent's name; of a core agent the switch's id.
    pub agent: String,
    /// SHA-256 of the secret.
    pub secret: Digest,
    /// SHA-256 of the only public key that it is good for.
    #[serde(default)]
    pub key: Option<Digest>,
    /// SHA-256 of the endorsement key of the only TPM that it is good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpm: Option<Digest>,
    /// End of validity.
    pub expires_at: Timestamp,
}

/// See [`Op::RedeemJoinTicket`](crate::Op::RedeemJoinTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedeemJoinTicket {
    /// Public name.
    pub id: JoinTicketId,
    /// SHA-256 of the secret that was shown.
    pub secret: Digest,
    /// SHA-256 of the public key of the request.
    pub key: Digest,
    /// SHA-256 of the endorsement key of the TPM that the caller proved to sit at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpm: Option<Digest>,
}

/// See [`Op::RevokeJoinTicket`](crate::Op::RevokeJoinTicket).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeJoinTicket {
    /// Public name.
    pub id: JoinTicketId,
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

/// See [`Op::RecordCertificate`](crate::Op::RecordCertificate).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordCertificate(pub Certificate);

/// Which certificates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateChoice {
    /// The one of this serial number.
    Serial(String),
    /// All that carry this SPIFFE id.
    Identity(String),
    /// All of an allocation of a machine.
    Allocation(MachineId, AllocationId),
}

/// See [`Op::RevokeCertificates`](crate::Op::RevokeCertificates).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RevokeCertificates {
    /// Which.
    pub choice: CertificateChoice,
    /// Why.
    #[serde(default)]
    pub reason: String,
}

/// See [`Op::PutCa`](crate::Op::PutCa).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutCa(pub CaRecord);

/// See [`Op::PutSigningKey`](crate::Op::PutSigningKey).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PutSigningKey(pub SigningKey);

impl ReportSwitch {
    /// Whether it tells the addresses of neighbours, which older programs would forget.
    pub(crate) fn tells_addresses(&self) -> bool {
        let mut heard = self.ports.values().flat_map(|port| &port.neighbours);
        heard.any(|neighbour| neighbour.mac.is_some())
    }
}
