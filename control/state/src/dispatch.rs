//! Dispatch of commands: the only way to change the tables. Each operation goes to its resource.

use proto_errors::{Error, ErrorCode};

use crate::allocation::apply::{change as allocation_change, create as allocation_create};
use crate::audit::apply::trail;
use crate::catalog::apply::{image, image_constraint, layout, partition, reservation};
use crate::claim::apply::{claim, follow, power};
use crate::cluster::apply::{clock, component, node, policy, settings};
use crate::command::{Command, TRACE_LEN};
use crate::firewall::apply::{
    release as firewall_release, replace as firewall_replace, report as firewall_report,
    rules as firewall_rules,
};
use crate::identity::apply::{ca, certificate, identity, issue, join_ticket, token, user};
use crate::lease::apply::{end, grant, node as lease_node, owner, transfer};
use crate::machine::apply::{
    allocate, bmc_claims, bmc_report, boots, capability, events, install, machine, orders,
    phone_home, reclaim, register, restored, rewipe, sizing, vpn, wipe,
};
use crate::network::apply::{child_network, ip, network};
use crate::node::apply::{document as node_document, record as node_record};
use crate::op::FEATURE_LEVEL;
use crate::op::Op;
use crate::pool::apply::{host as pool_host, pool as host_pool, project_labels};
use crate::reply::ApplyResult;
use crate::rollout::{apply as rollout, report as agent_report};
use crate::switch::apply::{drain, replace, switch};
use crate::tables::{Change, Tables, Tx};
use crate::tenancy::apply::{invite, member, project, quota, tenant};
use crate::{bounds, tick};

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Outcome {
    /// The reply. An error left the tables unchanged.
    pub result: ApplyResult,
    /// The changes, in the order of kind and key. Empty means that nothing changed.
    pub changes: Vec<Change>,
    /// Revision of the tables after the command.
    pub revision: u64,
}

/// Applies a command, wholly or not at all.
pub fn apply(tables: &mut Tables, command: &Command) -> Outcome {
    let mut tx = Tx::new(tables, command.now, &command.actor);
    let result = carry_out(&mut tx, command);
    let changes = if result.is_ok() {
        tx.commit()
    } else {
        tx.abort();
        Vec::new()
    };
    Outcome {
        result,
        changes,
        revision: tables.revision(),
    }
}

/// The reply that a command would get. The command is applied and rolled back: the trial costs as
/// much as the command changes, however large the tables are.
///
/// # Errors
/// Those of [`apply`].
pub fn attempt(tables: &mut Tables, command: &Command) -> ApplyResult {
    let mut tx = Tx::new(tables, command.now, &command.actor);
    let result = carry_out(&mut tx, command);
    tx.abort();
    result
}

fn carry_out<'a>(tx: &mut Tx<'a>, command: &'a Command) -> ApplyResult {
    let trace = command.trace.as_deref();
    // A malformed trace is ignored: it is no reason to refuse a change.
    tx.trace = trace.filter(|text| text.len() == TRACE_LEN && text.is_ascii());
    // All nodes must reach the same result. A node that skipped or misread a command of a level
    // that it does not know would diverge from the others.
    if command.version > FEATURE_LEVEL {
        return Err(Error::new(
            ErrorCode::UnsupportedVersion,
            format!(
                "the command is of feature level {}, this program knows up to {FEATURE_LEVEL}",
                command.version
            ),
        ));
    }
    // Before the dispatch: no operation has to expect a list or text beyond its bound.
    bounds::check(&command.op)?;
    let reply = dispatch(tx, &command.op)?;
    // In the same transaction as well: a host that a command frees is a waiting claim's from then on.
    follow(tx);
    // In the same transaction: a change without its audit record, or a record of a change that
    // was rolled back, cannot exist.
    if let Some(call) = &command.call {
        trail::of_change(tx, call);
    }
    Ok(reply)
}

macro_rules! routes {
    ($($name:ident $to:path;)*) => {
        fn dispatch(tx: &mut Tx<'_>, op: &Op) -> ApplyResult {
            match op { $(Op::$name(op) => $to(tx, op),)* }
        }
    };
}

routes! {
    CreateTenant tenant::create_tenant;
    UpdateTenant tenant::update_tenant;
    DeleteTenant tenant::delete_tenant;
    SetTenantMember member::set_tenant_member;
    RemoveTenantMember member::remove_tenant_member;
    CreateProject project::create_project;
    UpdateProject project::update_project;
    DeleteProject project::delete_project;
    SetProjectMember member::set_project_member;
    RemoveProjectMember member::remove_project_member;
    CreateInvite invite::create;
    AcceptInvite invite::accept;
    DeleteInvite invite::delete;
    ReportComponent component::report;
    DeleteComponent component::delete;
    SetQuota quota::set;
    RemoveQuota quota::remove;
    SetPolicy policy::set;
    RemovePolicy policy::remove;
    SetSettings settings::set;
    CreateToken token::create;
    UpdateToken token::update;
    RevokeToken token::revoke;
    CreateUser user::create;
    SetPassword user::set_password;
    DeleteUser user::delete;
    LogIn user::log_in;
    TouchToken token::touch;
    CreatePartition partition::create_partition;
    UpdatePartition partition::update_partition;
    DeletePartition partition::delete_partition;
    CreateSize sizing::size_created;
    UpdateSize sizing::size_updated;
    DeleteSize sizing::size_deleted;
    CreateSizeReservation reservation::create_reservation;
    UpdateSizeReservation reservation::update_reservation;
    DeleteSizeReservation reservation::delete_reservation;
    CreateSizeImageConstraint image_constraint::create_image_constraint;
    UpdateSizeImageConstraint image_constraint::update_image_constraint;
    DeleteSizeImageConstraint image_constraint::delete_image_constraint;
    CreateImage image::create_image;
    UpdateImage image::update_image;
    DeleteImage image::delete_image;
    CreateLayout layout::create_layout;
    UpdateLayout layout::update_layout;
    DeleteLayout layout::delete_layout;
    CreateNetwork network::create;
    CreateChildNetwork child_network::create_child_network;
    UpdateNetwork network::update;
    DeleteNetwork network::delete;
    CreateIp ip::create_ip;
    UpdateIp ip::update;
    DeleteIp ip::delete;
    AllocateMachine allocate::allocate_machine;
    UpdateMachine machine::update;
    FreeMachine reclaim::free;
    SetMachineState machine::set_state;
    DeleteMachine machine::delete;
    OrderBmc orders::order_by_user;
    BmcOrderDone orders::done;
    TakeBmcOrder orders::take;
    DeleteBmcOrder orders::delete;
    KeepBmcAccess bmc_claims::keep_access;
    ReportBmc bmc_report::report;
    ConfirmBmc bmc_claims::confirm;
    ReportVpn vpn::report;
    ForgetVpn vpn::forget;
    MachineSeen events::seen;
    RegisterMachine register::register;
    MachineEvent events::event;
    WipeDone wipe::wipe_done;
    InstallDone install::install_done;
    PhoneHome phone_home::phone_home;
    Tick tick::tick;
    AcceptTime clock::accept;
    ReconcileRestore restored::reconcile;
    RegisterSwitch switch::register;
    ReportSwitch switch::report;
    UpdateSwitch switch::update;
    SetSwitchPort switch::set_port;
    MigrateSwitch replace::migrate;
    DrainSwitch drain::set_drain;
    DeleteSwitch switch::delete;
    SetFirewallRules firewall_rules::set;
    RollBackFirewallRules firewall_rules::roll_back;
    DeleteFirewallRules firewall_rules::delete;
    ReportFirewall firewall_report::report;
    ReplaceFirewall firewall_replace::replace;
    SetFirewallRelease firewall_release::set;
    RemoveFirewallRelease firewall_release::remove;
    StartRollout rollout::start;
    StepRollout rollout::step;
    PauseRollout rollout::pause;
    ResumeRollout rollout::resume;
    AbortRollout rollout::abort;
    ClearRelease rollout::clear;
    ReportAgent agent_report::report;
    SetMachineOwner owner::set_owner;
    TransferMachine owner::transfer_machine;
    GrantLease grant::grant;
    ExtendLease grant::extend;
    EndLease end::end;
    RequestLeaseTransfer transfer::request;
    DecideLeaseTransfer transfer::decide;
    SetMachineCapability capability::set;
    CreateNodeAllocation allocation_create::create;
    UpdateNodeAllocation allocation_change::update;
    DeleteNodeAllocation allocation_change::delete;
    SetPool host_pool::set;
    DeletePool host_pool::delete;
    SetPoolHost pool_host::set;
    RemovePoolHost pool_host::remove;
    HoldHost pool_host::hold;
    CleanHost pool_host::clean;
    SetProjectLabels project_labels::set;
    CreateClaim claim::create;
    UpdateClaim claim::update;
    DeleteClaim claim::delete;
    RebootClaim power::reboot;
    HoldClaim power::hold;
    EnrolNode node_record::enrol;
    SetNode node_record::set;
    UpdateNode lease_node::update;
    WipeNode rewipe::wipe_node;
    SetNodeDocument node_document::set;
    DeleteNodeDocument node_document::delete;
    CreateJoinTicket join_ticket::create_join_ticket;
    RedeemJoinTicket join_ticket::redeem_join_ticket;
    RevokeJoinTicket join_ticket::revoke_join_ticket;
    IssueBootTicket boots::issue_boot_ticket;
    RedeemBootTicket boots::redeem_boot_ticket;
    RevokeCertificates certificate::revoke_certificates;
    IssueCertificate issue::issue_certificate;
    RevokeIdentity identity::revoke_identity;
    RotateIdentity identity::rotate_identity;
    CreateComponentToken token::create_of_component;
    CreateMachineToken boots::create_token;
    PutCa ca::put_ca;
    BeginCaRotation ca::begin_rotation;
    ForceCaRotation ca::force_rotation;
    PutSigningKey ca::put_signing_key;
    AppendAudit trail::append;
    MarkAuditExport trail::mark_export;
    ForgetAuditExport trail::forget_export;
    InviteNode node::invite;
    JoinNode node::join;
    AnnounceNode node::announce;
    RemoveNode node::remove;
}
