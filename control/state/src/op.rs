//! Operations: everything that can be wanted, and the feature level that each needs.

use serde::{Deserialize, Serialize};

use crate::audit::command::{AppendAudit, ForgetAuditExport, MarkAuditExport};
use crate::catalog::command::{
    CreateImage, CreateLayout, CreatePartition, CreateSize, CreateSizeImageConstraint,
    CreateSizeReservation, DeleteImage, DeleteLayout, DeletePartition, DeleteSize,
    DeleteSizeImageConstraint, DeleteSizeReservation, UpdateImage, UpdateLayout, UpdatePartition,
    UpdateSize, UpdateSizeImageConstraint, UpdateSizeReservation,
};
use crate::cluster::command::{
    AcceptTime, AnnounceNode, DeleteComponent, InviteNode, JoinNode, RemoveNode, RemovePolicy,
    ReportComponent, SetPolicy, SetSettings, Tick,
};
use crate::identity::command::{
    BeginCaRotation, CreateComponentToken, CreateJoinTicket, CreateToken, CreateUser, DeleteUser,
    ForceCaRotation, IssueCertificate, LogIn, PutCa, PutSigningKey, RedeemJoinTicket,
    RevokeCertificates, RevokeIdentity, RevokeJoinTicket, RevokeToken, RotateIdentity, SetPassword,
    TouchToken, UpdateToken,
};
use crate::machine::command::{
    AllocateMachine, BmcOrderDone, ConfirmBmc, CreateMachineToken, DeleteBmcOrder, DeleteMachine,
    ForgetVpn, FreeMachine, InstallDone, IssueBootTicket, KeepBmcAccess, MachineEvent, MachineSeen,
    OrderBmc, PhoneHome, ReconcileRestore, RedeemBootTicket, RegisterMachine, ReportBmc, ReportVpn,
    SetMachineState, TakeBmcOrder, UpdateMachine, WipeDone,
};
use crate::network::command::{
    CreateChildNetwork, CreateIp, CreateNetwork, DeleteIp, DeleteNetwork, UpdateIp, UpdateNetwork,
};
use crate::switch::command::{
    DeleteSwitch, MigrateSwitch, RegisterSwitch, ReportSwitch, SetSwitchPort, UpdateSwitch,
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
pub const FEATURE_LEVEL: u32 = if cfg!(feature = "next-level") { 2 } else { 1 };

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// What can be wanted; the payload has the same name. The doc of each names its reply.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum Op { $($(#[$doc])* $name(Box<$name>),)* }

        impl Op {
            /// Every name, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            /// Its name, for logs.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$name(_) => stringify!($name),)* }
            }

            /// The feature level that brought the operation, or brought the newest field in it that
            /// a node must not drop. 1 for every operation so far.
            pub const fn level(&self) -> u32 {
                // The only operation of the next level, which this level cannot read.
                if cfg!(feature = "next-level") && matches!(self, Self::CreateSize(_)) {
                    return FEATURE_LEVEL;
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
    /// → `Reply::Tenant` as it was
    DeleteTenant;
    /// Adds a member or changes the role of one. → `Reply::Tenant`
    SetTenantMember;
    /// → `Reply::Tenant`
    RemoveTenantMember;
    /// → `Reply::Project`
    CreateProject;
    /// → `Reply::Project`
    UpdateProject;
    /// Refused while it holds anything. → `Reply::Project` as it was
    DeleteProject;
    /// Adds a member or changes the role of one. → `Reply::Project`
    SetProjectMember;
    /// → `Reply::Project`
    RemoveProjectMember;
    /// → `Reply::Invite`
    CreateInvite;
    /// Makes a member, once. → `Reply::Invite` as it was
    AcceptInvite;
    /// → `Reply::Invite` as it was
    DeleteInvite;
    /// By a component: propose only what `query::component_report_matters`. → `Reply::Component`
    ReportComponent;
    /// → `Reply::Component` as it was
    DeleteComponent;
    /// Sets all bounds. → `Reply::Quota`
    SetQuota;
    /// → `Reply::Quota` as it was
    RemoveQuota;
    /// → `Reply::Policy`
    SetPolicy;
    /// → `Reply::Policy` as it was
    RemovePolicy;
    /// Settings of the whole cluster. → `Reply::Settings`
    SetSettings;
    /// → `Reply::Token`
    CreateToken;
    /// → `Reply::Token`
    UpdateToken;
    /// Idempotent. → `Reply::Token`
    RevokeToken;
    /// A built-in user. → `Reply::User`
    CreateUser;
    /// Ends the user's sessions. → `Reply::User`
    SetPassword;
    /// Ends all that the login can do. → `Reply::User` as it was
    DeleteUser;
    /// Makes the personal tenant at the first time, and a token. → `Reply::Token`
    LogIn;
    /// Remembers the last use; propose at most each few minutes. → `Reply::None`
    TouchToken;

    /// → `Reply::Partition`
    CreatePartition;
    /// → `Reply::Partition`
    UpdatePartition;
    /// → `Reply::Partition` as it was
    DeletePartition;
    /// Refused when it overlaps another size. → `Reply::Size`
    // To programs of this level, what those of the next one write is unknown.
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
    /// Refused while machines have it. → `Reply::Image` as it was
    DeleteImage;
    /// → `Reply::Layout`
    CreateLayout;
    /// → `Reply::Layout`
    UpdateLayout;
    /// → `Reply::Layout` as it was
    DeleteLayout;

    /// By an admin: any type. → `Reply::Network`
    CreateNetwork;
    /// By a user: a child of the partition's super network, or of a given one. → `Reply::Network`
    CreateChildNetwork;
    /// → `Reply::Network`
    UpdateNetwork;
    /// Refused while it has children, machines or addresses. → `Reply::Network` as it was
    DeleteNetwork;
    /// → `Reply::Ip`
    CreateIp;
    /// → `Reply::Ip`
    UpdateIp;
    /// Refused while a machine has it. → `Reply::Ip` as it was
    DeleteIp;

    /// Chooses a machine and gives it everything. → `Reply::Machine`
    AllocateMachine;
    /// → `Reply::Machine`
    UpdateMachine;
    /// Begins the way back; see `Phase::ReclaimPowerOff`. Idempotent. → `Reply::Machine`
    FreeMachine;
    /// By an admin. Setting a held machine available starts its way out. → `Reply::Machine`
    SetMachineState;
    /// Forgets a machine that nobody has. → `Reply::Machine` as it was
    DeleteMachine;
    /// By a user or admin. → `Reply::BmcOrder`
    OrderBmc;
    /// By the BMC agent; idempotent. → `Reply::BmcOrder`
    BmcOrderDone;
    /// For a stream of a BMC agent of the published stack: no other stream gets the order.
    /// Idempotent. → `Reply::BmcOrder`
    TakeBmcOrder;
    /// Cancels an open order of a user, forgets one that is over; what the life cycle waits for is
    /// refused. → `Reply::BmcOrder` as it was
    DeleteBmcOrder;
    /// By hammer or the BMC agent of the published stack. → `Reply::None`
    KeepBmcAccess;
    /// By the BMC agent: propose only what changed. → `Reply::MachineIds` of new machines
    ReportBmc;
    /// By an admin: which BMC is the machine's, when several claim it. → `Reply::Machine`
    ConfirmBmc;

    /// By the leader: propose only what changed. → `Reply::None`
    ReportVpn;
    /// By the leader, once node and key are gone from the VPN. Idempotent. → `Reply::None`
    ForgetVpn;

    /// By pixie: a machine asked for a boot. → `Reply::Machine`
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
    /// By the leader, each few seconds: liveliness, deadlines, purges. → `Reply::None`
    Tick;
    /// Sets the cluster's time by the word of an operator. → `Reply::ClusterClock`
    AcceptTime;
    /// Ends the hold of a restored state by the word of an operator. → `Reply::ClusterClock`
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
    /// Moves all cables to another switch of the rack. → `Reply::Switch` that has them now
    MigrateSwitch;
    /// Refused while machines are cabled to it, unless forced. → `Reply::Switch` as it was
    DeleteSwitch;

    /// → `Reply::JoinTicket`
    CreateJoinTicket;
    /// Once only. → `Reply::JoinTicket`
    RedeemJoinTicket;
    /// Idempotent. → `Reply::JoinTicket`
    RevokeJoinTicket;
    /// Older tickets of the machine end. → `Reply::BootTicket`
    IssueBootTicket;
    /// Once only. → `Reply::BootTicket`
    RedeemBootTicket;
    /// By serial number or identity. → `Reply::Serials` that were revoked now
    RevokeCertificates;
    /// Certificate and who it is of, as one. → `Reply::Identity`
    IssueCertificate;
    /// All that an identity holds, and the tickets by which it could come back. Idempotent.
    /// → `Reply::Identity`
    RevokeIdentity;
    /// Wants a new key of it. Idempotent. → `Reply::Identity`
    RotateIdentity;
    /// A token that a component of a project has for itself. → `Reply::Token`
    CreateComponentToken;
    /// A token for one boot of a machine's hammer; what earlier boots were given ends.
    /// → `Reply::Token`
    CreateMachineToken;
    /// → `Reply::None`
    PutCa;
    /// The next generation of the authority, beside the one of now. → `Reply::CaRotation`
    BeginCaRotation;
    /// Hurries the one that is under way. → `Reply::CaRotation`
    ForceCaRotation;
    /// → `Reply::None`
    PutSigningKey;
    /// → `Reply::None`
    AppendAudit;
    /// How far the trail was sent to a place outside; never back. → `Reply::None`
    MarkAuditExport;
    /// → `Reply::None`
    ForgetAuditExport;

    /// Gives out the next number. → `Reply::ControlNode`
    InviteNode;
    /// Once, by the key that was invited. → `Reply::ControlNode`
    JoinNode;
    /// What a node says about itself at its start. → `Reply::ControlNode`
    AnnounceNode;
    /// For good. Idempotent. → `Reply::ControlNode`
    RemoveNode;
}
