//! Operations: every change of the state, and the feature level that each needs.

use serde::{Deserialize, Serialize};

use crate::allocation::command::{
    CreateNodeAllocation, DeleteNodeAllocation, UpdateNodeAllocation,
};
use crate::audit::command::{AppendAudit, ForgetAuditExport, MarkAuditExport};
use crate::catalog::command::{
    CreateImage, CreateLayout, CreatePartition, CreateSize, CreateSizeImageConstraint,
    CreateSizeReservation, DeleteImage, DeleteLayout, DeletePartition, DeleteSize,
    DeleteSizeImageConstraint, DeleteSizeReservation, UpdateImage, UpdateLayout, UpdatePartition,
    UpdateSize, UpdateSizeImageConstraint, UpdateSizeReservation,
};
use crate::claim::command::{CreateClaim, DeleteClaim, HoldClaim, RebootClaim, UpdateClaim};
use crate::cluster::command::{
    AcceptTime, AnnounceNode, DeleteComponent, InviteNode, JoinNode, RemoveNode, RemovePolicy,
    ReportComponent, SetPolicy, SetSettings, Tick,
};
use crate::firewall::command::{
    DeleteFirewallRules, RemoveFirewallRelease, ReplaceFirewall, ReportFirewall,
    RollBackFirewallRules, SetFirewallRelease, SetFirewallRules,
};
use crate::identity::command::{
    BeginCaRotation, CreateComponentToken, CreateJoinTicket, CreateToken, CreateUser, DeleteUser,
    ForceCaRotation, IssueCertificate, LogIn, PutCa, PutSigningKey, RedeemJoinTicket,
    RevokeCertificates, RevokeIdentity, RevokeJoinTicket, RevokeToken, RotateIdentity, SetPassword,
    TouchToken, UpdateToken,
};
use crate::lease::command::{
    DecideLeaseTransfer, EndLease, ExtendLease, GrantLease, RequestLeaseTransfer, SetMachineOwner,
    TransferMachine, UpdateNode,
};
use crate::machine::command::{
    AllocateMachine, BmcOrderDone, ConfirmBmc, CreateMachineToken, DeleteBmcOrder, DeleteMachine,
    ForgetVpn, FreeMachine, InstallDone, IssueBootTicket, KeepBmcAccess, MachineEvent, MachineSeen,
    OrderBmc, PhoneHome, ReconcileRestore, RedeemBootTicket, RegisterMachine, ReportBmc, ReportVpn,
    SetMachineCapability, SetMachineState, TakeBmcOrder, UpdateMachine, WipeDone,
};
use crate::network::command::{
    CreateChildNetwork, CreateIp, CreateNetwork, DeleteIp, DeleteNetwork, UpdateIp, UpdateNetwork,
};
use crate::node::command::{DeleteNodeDocument, EnrolNode, SetNode, SetNodeDocument, WipeNode};
use crate::pool::command::{
    CleanHost, DeletePool, HoldHost, RemovePoolHost, SetPool, SetPoolHost, SetProjectLabels,
};
use crate::rollout::command::{
    AbortRollout, ClearRelease, PauseRollout, ReportAgent, ResumeRollout, StartRollout, StepRollout,
};
use crate::switch::command::{
    DeleteSwitch, DrainSwitch, MigrateSwitch, RegisterSwitch, ReportSwitch, SetSwitchPort,
    UpdateSwitch,
};
use crate::tenancy::command::{
    AcceptInvite, CreateInvite, CreateProject, CreateTenant, DeleteInvite, DeleteProject,
    DeleteTenant, RemoveProjectMember, RemoveQuota, RemoveTenantMember, SetProjectMember, SetQuota,
    SetTenantMember, UpdateProject, UpdateTenant,
};

/// The highest feature level that this program knows. Commands of this level are refused until
/// every control node knows it.
///
/// The cargo feature `next-level`, which no product is built with, makes a program of the next
/// level. Tests run it beside this one.
pub const FEATURE_LEVEL: u32 = proto_types::FEATURE_LEVEL + cfg!(feature = "next-level") as u32;

/// The feature level from which switches can be drained, and their reports say more than ports.
pub const SWITCH_HEALTH: u32 = 2;

/// The feature level from which control keeps firewall rules, replaces firewalls, and names the release
/// of their agent.
pub const FIREWALL_RULES: u32 = 2;

/// The feature level from which releases of agents are rolled out in waves.
pub const ROLLOUTS: u32 = 2;

/// The feature level from which machines have owners, lessees, resource classes and node allocations.
pub const LEASES: u32 = 2;

/// The feature level from which there are pools and claims.
pub const CLAIMS: u32 = 2;

/// The feature level from which machines have node records, and there are node documents.
pub const NODES: u32 = 2;

/// The feature level from which a control node may be invited by its address instead of its key.
pub const INVITATIONS: u32 = 2;

/// The feature level from which an agent whose identity was revoked joins only by a ticket that was made
/// for it.
pub(crate) const REVOKED_AGENTS: u32 = 2;

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// An operation. Its payload has the same name, and its doc names the reply.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum Op { $($(#[$doc])* $name(Box<$name>),)* }

        impl Op {
            /// Every name, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            /// Its name, for logs.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name),)* }
            }

            const fn is_of_rollouts(&self) -> bool {
                matches!(
                    self,
                    Self::StartRollout(_)
                        | Self::StepRollout(_)
                        | Self::PauseRollout(_)
                        | Self::ResumeRollout(_)
                        | Self::AbortRollout(_)
                        | Self::ClearRelease(_)
                        | Self::ReportAgent(_)
                )
            }

            /// The feature level that introduced the operation, or the newest of its fields that a
            /// node must not drop.
            pub fn level(&self) -> u32 {
                // The only operation of the next level, which this level cannot read.
                if cfg!(feature = "next-level") && matches!(self, Self::CreateSize(_)) {
                    return FEATURE_LEVEL;
                }
                if matches!(self, Self::DrainSwitch(_)) {
                    return SWITCH_HEALTH;
                }
                if matches!(
                    self,
                    Self::SetFirewallRules(_)
                        | Self::RollBackFirewallRules(_)
                        | Self::DeleteFirewallRules(_)
                        | Self::ReportFirewall(_)
                        | Self::ReplaceFirewall(_)
                        | Self::SetFirewallRelease(_)
                        | Self::RemoveFirewallRelease(_)
                ) {
                    return FIREWALL_RULES;
                }
                if self.is_of_rollouts() {
                    return ROLLOUTS;
                }
                if matches!(
                    self,
                    Self::SetMachineOwner(_)
                        | Self::TransferMachine(_)
                        | Self::GrantLease(_)
                        | Self::ExtendLease(_)
                        | Self::EndLease(_)
                        | Self::RequestLeaseTransfer(_)
                        | Self::DecideLeaseTransfer(_)
                        | Self::SetMachineCapability(_)
                        | Self::CreateNodeAllocation(_)
                        | Self::UpdateNodeAllocation(_)
                        | Self::DeleteNodeAllocation(_)
                ) {
                    return LEASES;
                }
                if matches!(
                    self,
                    Self::SetPool(_)
                        | Self::DeletePool(_)
                        | Self::SetPoolHost(_)
                        | Self::RemovePoolHost(_)
                        | Self::HoldHost(_)
                        | Self::CleanHost(_)
                        | Self::SetProjectLabels(_)
                        | Self::CreateClaim(_)
                        | Self::UpdateClaim(_)
                        | Self::DeleteClaim(_)
                        | Self::RebootClaim(_)
                        | Self::HoldClaim(_)
                ) {
                    return CLAIMS;
                }
                if matches!(
                    self,
                    Self::EnrolNode(_)
                        | Self::SetNode(_)
                        | Self::WipeNode(_)
                        | Self::SetNodeDocument(_)
                        | Self::DeleteNodeDocument(_)
                        | Self::UpdateNode(_)
                ) {
                    return NODES;
                }
                // A program of level 1 cannot read an invitation without a key, and would drop the
                // address that another one is bound to.
                if let Self::InviteNode(invite) = self
                    && (invite.key.is_none() || !invite.peer_address.is_empty())
                {
                    return INVITATIONS;
                }
                // A program of level 1 would drop what the ticket is for.
                if let Self::CreateJoinTicket(create) = self
                    && create.reenrols
                {
                    return REVOKED_AGENTS;
                }
                1
            }
        }

        $(impl From<$name> for Op {
            fn from(op: $name) -> Self {
                Self::$name(Box::new(op))
            }
        })*
    };
}

ops! {
    /// → `Reply::Tenant`
    CreateTenant;
    /// → `Reply::Tenant`
    UpdateTenant;
    /// Refused while it has projects. → `Reply::Tenant` as it was
    DeleteTenant;
    /// Adds a member or changes the role of one. → `Reply::Tenant`
    SetTenantMember;
    /// → `Reply::Tenant`
    RemoveTenantMember;
    /// → `Reply::Project`
    CreateProject;
    /// → `Reply::Project`
    UpdateProject;
    /// Refused while it has machines, addresses, networks or reservations. → `Reply::Project` as it
    /// was
    DeleteProject;
    /// Adds a member or changes the role of one. → `Reply::Project`
    SetProjectMember;
    /// → `Reply::Project`
    RemoveProjectMember;
    /// → `Reply::Invite`
    CreateInvite;
    /// Makes the caller a member; an invite is good for one. → `Reply::Invite` as it was
    AcceptInvite;
    /// → `Reply::Invite` as it was
    DeleteInvite;
    /// By a component: propose only what `query::component_report_matters`. → `Reply::Component`
    ReportComponent;
    /// → `Reply::Component` as it was
    DeleteComponent;
    /// Replaces all limits. → `Reply::Quota`
    SetQuota;
    /// → `Reply::Quota` as it was
    RemoveQuota;
    /// → `Reply::Policy`
    SetPolicy;
    /// → `Reply::Policy` as it was
    RemovePolicy;
    /// Changes settings of the whole cluster. → `Reply::Settings`
    SetSettings;
    /// → `Reply::Token`
    CreateToken;
    /// → `Reply::Token`
    UpdateToken;
    /// Idempotent. → `Reply::Token`
    RevokeToken;
    /// Creates a built-in user. → `Reply::User`
    CreateUser;
    /// Ends the user's sessions. → `Reply::User`
    SetPassword;
    /// Revokes all tokens of the login. → `Reply::User` as it was
    DeleteUser;
    /// Creates a token, and at the first login the personal tenant. → `Reply::Token`
    LogIn;
    /// Records the last use; propose it at most every few minutes. → `Reply::None`
    TouchToken;

    /// → `Reply::Partition`
    CreatePartition;
    /// → `Reply::Partition`
    UpdatePartition;
    /// → `Reply::Partition` as it was
    DeletePartition;
    /// Refused when it overlaps another size. → `Reply::Size`
    // Programs of this level do not know the name that those of the next level write.
    #[cfg_attr(feature = "next-level", serde(rename = "CreateSizeNext", alias = "CreateSize"))]
    CreateSize;
    /// → `Reply::Size`
    UpdateSize;
    /// → `Reply::Size` as it was
    DeleteSize;
    /// → `Reply::SizeReservation`
    CreateSizeReservation;
    /// → `Reply::SizeReservation`
    UpdateSizeReservation;
    /// → `Reply::SizeReservation` as it was
    DeleteSizeReservation;
    /// → `Reply::SizeImageConstraint`
    CreateSizeImageConstraint;
    /// → `Reply::SizeImageConstraint`
    UpdateSizeImageConstraint;
    /// → `Reply::SizeImageConstraint` as it was
    DeleteSizeImageConstraint;
    /// → `Reply::Image`
    CreateImage;
    /// → `Reply::Image`
    UpdateImage;
    /// Refused while machines are allocated with it. → `Reply::Image` as it was
    DeleteImage;
    /// → `Reply::Layout`
    CreateLayout;
    /// → `Reply::Layout`
    UpdateLayout;
    /// → `Reply::Layout` as it was
    DeleteLayout;

    /// By an admin: any type. → `Reply::Network`
    CreateNetwork;
    /// By a user: a child of the partition's super network, or of the given network.
    /// → `Reply::Network`
    CreateChildNetwork;
    /// → `Reply::Network`
    UpdateNetwork;
    /// Refused while it has children, machines or addresses. → `Reply::Network` as it was
    DeleteNetwork;
    /// → `Reply::Ip`
    CreateIp;
    /// → `Reply::Ip`
    UpdateIp;
    /// Refused while it is bound to a machine. → `Reply::Ip` as it was
    DeleteIp;

    /// Chooses a machine and allocates it, with its addresses and numbers. → `Reply::Machine`
    AllocateMachine;
    /// → `Reply::Machine`
    UpdateMachine;
    /// Begins the reclaim; see `Phase::ReclaimPowerOff`. Idempotent. → `Reply::Machine`
    FreeMachine;
    /// By an admin. A held machine that is set available leaves the hold. → `Reply::Machine`
    SetMachineState;
    /// Deletes the record of a machine that is not allocated. → `Reply::Machine` as it was
    DeleteMachine;
    /// By a user or admin. → `Reply::BmcOrder`
    OrderBmc;
    /// By the BMC agent; idempotent. → `Reply::BmcOrder`
    BmcOrderDone;
    /// Assigns the order to one stream of a BMC agent of the published stack: no other stream gets
    /// it. Idempotent. → `Reply::BmcOrder`
    TakeBmcOrder;
    /// Cancels an open order of a user, or deletes a finished one. Refused for an order that the
    /// life cycle waits for. → `Reply::BmcOrder` as it was
    DeleteBmcOrder;
    /// By hammer or the BMC agent of the published stack. → `Reply::None`
    KeepBmcAccess;
    /// By the BMC agent: propose only what changed. → `Reply::MachineIds` of new machines
    ReportBmc;
    /// By an admin: decides which BMC is the machine's when several claim it. → `Reply::Machine`
    ConfirmBmc;

    /// By the leader: propose only what changed. → `Reply::None`
    ReportVpn;
    /// By the leader, once node and key are gone from the VPN. Idempotent. → `Reply::None`
    ForgetVpn;

    /// By pixie: a machine requested a boot. → `Reply::Machine`
    MachineSeen;
    /// By hammer. → `Reply::Machine`
    RegisterMachine;
    /// By hammer or a leaf. → `Reply::EventLog`
    MachineEvent;
    /// By hammer. → `Reply::Machine`
    WipeDone;
    /// By hammer. → `Reply::Machine`
    InstallDone;
    /// By an installed machine, under its project's identity. → `Reply::EventLog`
    PhoneHome;
    /// By the leader, every few seconds: liveliness, deadlines, rotations, expired records.
    /// → `Reply::None`
    Tick;
    /// By an operator: sets the cluster's time. → `Reply::ClusterClock`
    AcceptTime;
    /// By an operator: ends the hold of a restored state. → `Reply::ClusterClock`
    ReconcileRestore;

    /// By a core agent. → `Reply::Switch`
    RegisterSwitch;
    /// By a core agent: propose only what changed, see `desired::switch_report_matters`.
    /// → `Reply::Switch`
    ReportSwitch;
    /// → `Reply::Switch`
    UpdateSwitch;
    /// → `Reply::Switch`
    SetSwitchPort;
    /// Moves all cables to another switch of the rack. → `Reply::Switch`, the new one
    MigrateSwitch;
    /// Moves traffic away from a switch or back. Refused, unless forced, while another switch of its
    /// machines is not ready. Idempotent. → `Reply::Switch`
    DrainSwitch;
    /// Refused while machines are cabled to it, unless forced. → `Reply::Switch` as it was
    DeleteSwitch;

    /// Writes a new revision of a set. → `Reply::FirewallRuleSet`
    SetFirewallRules;
    /// Writes the content of an earlier revision as a new one. → `Reply::FirewallRuleSet`
    RollBackFirewallRules;
    /// Deletes a set with its history. → `Reply::FirewallRuleSet` as it was
    DeleteFirewallRules;
    /// By a firewall's agent: propose only what changed, see `query::firewall_report_matters`.
    /// → `Reply::None`
    ReportFirewall;
    /// A firewall takes the place of another one of its project, step by step. Idempotent.
    /// → `Reply::Machine`, the replacement
    ReplaceFirewall;
    /// Names the release of the agent that firewalls are to run. → `Reply::FirewallRelease`
    SetFirewallRelease;
    /// Idempotent. → `Reply::FirewallRelease` as it was, or `Reply::None`
    RemoveFirewallRelease;
    /// Begins to tell agents of a release, in waves. Refused while another rollout to them is under
    /// way. → `Reply::Rollout`
    StartRollout;
    /// By the leader: begins the next wave, records failures, stops or finishes the rollout, as agents
    /// and time decide; propose only what is due, see `due_rollout`. → `Reply::Rollout`, or
    /// `Reply::None` if nothing changes
    StepRollout;
    /// Stops a rollout that runs, until it is resumed. Idempotent. → `Reply::Rollout`
    PauseRollout;
    /// Forgives the failed agents, and gives all of the wave the time of the gate once more.
    /// → `Reply::Rollout`
    ResumeRollout;
    /// Ends a rollout: its agents are told of the site's release again. → `Reply::Rollout` as it was
    AbortRollout;
    /// Ends the site's release of agents: they keep the program that they run. Refused while a rollout
    /// to them is under way. Idempotent. → `Reply::SiteRelease` as it was, or `Reply::None`
    ClearRelease;
    /// By the agent of a switch, of BMCs or of a boot server: propose only what changed, see
    /// `query::agent_report_matters`. → `Reply::None`
    ReportAgent;

    /// By an administrator: sets or clears the owner of a machine. Refused while it is leased, or in
    /// use by another project. → `Reply::Machine`
    SetMachineOwner;
    /// By the owner: another project owns the machine. Refused while it is leased or in use.
    /// → `Reply::Machine`
    TransferMachine;
    /// By the owner: another project uses the machine until a date. → `Reply::Lease`
    GrantLease;
    /// By the owner, or by the lessee within the owner's limit. → `Reply::Lease`
    ExtendLease;
    /// Ends a lease before its date; the machine is released and wiped. → `Reply::Lease` as it was
    EndLease;
    /// By the lessee: asks for another lessee. → `Reply::Lease`
    RequestLeaseTransfer;
    /// By the owner: consents to the lessee that is asked for, or refuses it. → `Reply::Lease`
    DecideLeaseTransfer;
    /// By an administrator or the owner: resource class and traits. → `Reply::Machine`
    SetMachineCapability;
    /// Chooses a machine by class, traits and owner and holds it, or records why there is none.
    /// → `Reply::NodeAllocation`
    CreateNodeAllocation;
    /// → `Reply::NodeAllocation`
    UpdateNodeAllocation;
    /// Refused while its machine is in use. → `Reply::NodeAllocation` as it was
    DeleteNodeAllocation;

    /// Creates a pool, or replaces the settings of one. → `Reply::HostPool`
    SetPool;
    /// Refused while it has hosts. → `Reply::HostPool` as it was
    DeletePool;
    /// Puts a machine into a pool, or changes it as a host of one. → `Reply::PoolHost`
    SetPoolHost;
    /// Refused while a claim has the host, unless forced. → `Reply::PoolHost` as it was
    RemovePoolHost;
    /// Sets or ends a hold of power by an administrator. Idempotent. → `Reply::PoolHost`
    HoldHost;
    /// Has a host wiped again, which ends its quarantine. → `Reply::PoolHost`
    CleanHost;
    /// Sets the alias and labels that policies know of a project. → `Reply::ProjectLabels`
    SetProjectLabels;
    /// Creates a claim and binds it at once if a host fits. Idempotent by its name. → `Reply::Claim`
    CreateClaim;
    /// → `Reply::Claim`
    UpdateClaim;
    /// Begins the wipe of its host. Idempotent. → `Reply::Claim`
    DeleteClaim;
    /// Idempotent by the id of the request. → `Reply::Claim`
    RebootClaim;
    /// Sets or ends a hold of power by the project. Idempotent. → `Reply::Claim`
    HoldClaim;

    /// By a client of Ironic's API: a machine becomes a node with fields of its own, also before it is
    /// seen. → `Reply::NodeRecord`
    EnrolNode;
    /// Replaces the fields of a node. → `Reply::NodeRecord`
    SetNode;
    /// Changes a node with its owner, lessee and class, wholly or not at all. → `Reply::Machine`
    UpdateNode;
    /// Has a free machine wiped again. → `Reply::Machine`
    WipeNode;
    /// Creates a document, or replaces its fields. → `Reply::NodeDocument`
    SetNodeDocument;
    /// Refused while nodes refer to it. → `Reply::NodeDocument` as it was
    DeleteNodeDocument;

    /// → `Reply::JoinTicket`
    CreateJoinTicket;
    /// Once only. → `Reply::JoinTicket`
    RedeemJoinTicket;
    /// Idempotent. → `Reply::JoinTicket`
    RevokeJoinTicket;
    /// Deletes older tickets of the machine. → `Reply::BootTicket`
    IssueBootTicket;
    /// Once only. → `Reply::BootTicket`
    RedeemBootTicket;
    /// By serial number, identity or allocation. → `Reply::Serials` that this command revoked
    RevokeCertificates;
    /// Records a certificate together with its identity. → `Reply::Identity`
    IssueCertificate;
    /// Revokes an identity, its certificates, and the tickets by which it could join again.
    /// Idempotent. → `Reply::Identity`
    RevokeIdentity;
    /// Requests a new key from the identity. Idempotent. → `Reply::Identity`
    RotateIdentity;
    /// Creates a token for a component of a project. → `Reply::Token`
    CreateComponentToken;
    /// Creates a token for one boot of a machine's hammer; tokens of earlier boots end.
    /// → `Reply::Token`
    CreateMachineToken;
    /// → `Reply::None`
    PutCa;
    /// Adds the next generation of the authority beside the current one. → `Reply::CaRotation`
    BeginCaRotation;
    /// Shortens the rotation that is in progress. → `Reply::CaRotation`
    ForceCaRotation;
    /// → `Reply::None`
    PutSigningKey;
    /// → `Reply::None`
    AppendAudit;
    /// Records how far the trail was exported to a destination; never goes back. → `Reply::None`
    MarkAuditExport;
    /// → `Reply::None`
    ForgetAuditExport;

    /// Assigns the next node number. → `Reply::ControlNode`
    InviteNode;
    /// Once only, by the key that was invited. → `Reply::ControlNode`
    JoinNode;
    /// By a node at its start: its addresses, version and feature level. → `Reply::ControlNode`
    AnnounceNode;
    /// Permanent: the number is never given again. Idempotent. → `Reply::ControlNode`
    RemoveNode;
}
