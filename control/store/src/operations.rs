//! The operations that a permit covers: the changes that a method of the public API, or an actor of
//! the system, may make.
//!
//! Invariant: a command whose permit does not cover its operation is refused before it is proposed.
//! So a mistake in a handler cannot change more than its method allows, whoever calls it. A method
//! that is not listed changes nothing.

use control_authz::{Actor, Permit, SystemActor};
use control_state::{ErrorCode, Op, StateError};

/// The operation that changes the members of the cluster; it is no command of the state.
pub(crate) const CHANGE_MEMBERS: &str = "ChangeMembers";

/// The operations of each method of the public API, sorted by method: found by binary search.
const METHODS: &[(&str, &[&str])] = &[
    (
        "metalmesh.admin.v1.AuditTrailService/ForgetExport",
        &["ForgetAuditExport"],
    ),
    (
        "metalmesh.admin.v1.BmcClaimService/Confirm",
        &["ConfirmBmc"],
    ),
    (
        "metalmesh.admin.v1.CaService/Rotate",
        &["BeginCaRotation", "ForceCaRotation"],
    ),
    (
        "metalmesh.admin.v1.ClusterService/AcceptTime",
        &["AcceptTime"],
    ),
    ("metalmesh.admin.v1.ClusterService/Invite", &["InviteNode"]),
    (
        "metalmesh.admin.v1.ClusterService/Promote",
        &["ChangeMembers"],
    ),
    (
        "metalmesh.admin.v1.ClusterService/ReconcileAfterRestore",
        &["ReconcileRestore"],
    ),
    (
        "metalmesh.admin.v1.ClusterService/Remove",
        &["ChangeMembers", "RemoveNode"],
    ),
    (
        "metalmesh.admin.v1.ClusterService/TransferLeader",
        &["ChangeMembers"],
    ),
    (
        "metalmesh.admin.v1.IdentityService/Revoke",
        &["RevokeIdentity"],
    ),
    (
        "metalmesh.admin.v1.IdentityService/Rotate",
        &["RotateIdentity"],
    ),
    (
        "metalmesh.admin.v1.JoinService/Create",
        &["CreateJoinTicket"],
    ),
    (
        "metalmesh.admin.v1.JoinService/Revoke",
        &["RevokeJoinTicket"],
    ),
    (
        "metalmesh.admin.v1.LoginUserService/ChangePassword",
        &["SetPassword"],
    ),
    (
        "metalmesh.admin.v1.LoginUserService/Create",
        &["CreateUser"],
    ),
    (
        "metalmesh.admin.v1.LoginUserService/Remove",
        &["DeleteUser"],
    ),
    (
        "metalmesh.admin.v1.LoginUserService/SetPassword",
        &["SetPassword"],
    ),
    ("metalmesh.admin.v1.PolicyService/Remove", &["RemovePolicy"]),
    ("metalmesh.admin.v1.PolicyService/Set", &["SetPolicy"]),
    (
        "metalmesh.admin.v1.ProjectComponentService/Create",
        &["CreateComponentToken"],
    ),
    (
        "metalmesh.admin.v1.ProjectComponentService/Revoke",
        &["RevokeToken"],
    ),
    ("metalmesh.admin.v1.QuotaService/Remove", &["RemoveQuota"]),
    ("metalmesh.admin.v1.QuotaService/Set", &["SetQuota"]),
    ("metalmesh.admin.v1.SettingsService/Set", &["SetSettings"]),
    (
        "metalstack.admin.v2.ComponentService/Delete",
        &["DeleteComponent"],
    ),
    (
        "metalstack.admin.v2.FilesystemService/Create",
        &["CreateLayout"],
    ),
    (
        "metalstack.admin.v2.FilesystemService/Delete",
        &["DeleteLayout"],
    ),
    (
        "metalstack.admin.v2.FilesystemService/Update",
        &["UpdateLayout"],
    ),
    ("metalstack.admin.v2.ImageService/Create", &["CreateImage"]),
    ("metalstack.admin.v2.ImageService/Delete", &["DeleteImage"]),
    ("metalstack.admin.v2.ImageService/Update", &["UpdateImage"]),
    (
        "metalstack.admin.v2.MachineService/BMCCommand",
        &["OrderBmc"],
    ),
    (
        "metalstack.admin.v2.MachineService/Delete",
        &["DeleteMachine", "FreeMachine"],
    ),
    (
        "metalstack.admin.v2.MachineService/SetState",
        &["SetMachineState"],
    ),
    (
        "metalstack.admin.v2.NetworkService/Create",
        &["CreateNetwork"],
    ),
    (
        "metalstack.admin.v2.NetworkService/Delete",
        &["DeleteNetwork"],
    ),
    (
        "metalstack.admin.v2.NetworkService/Update",
        &["UpdateNetwork"],
    ),
    (
        "metalstack.admin.v2.PartitionService/Create",
        &["CreatePartition"],
    ),
    (
        "metalstack.admin.v2.PartitionService/Delete",
        &["DeletePartition"],
    ),
    (
        "metalstack.admin.v2.PartitionService/Update",
        &["UpdatePartition"],
    ),
    (
        "metalstack.admin.v2.SizeImageConstraintService/Create",
        &["CreateSizeImageConstraint"],
    ),
    (
        "metalstack.admin.v2.SizeImageConstraintService/Delete",
        &["DeleteSizeImageConstraint"],
    ),
    (
        "metalstack.admin.v2.SizeImageConstraintService/Update",
        &["UpdateSizeImageConstraint"],
    ),
    (
        "metalstack.admin.v2.SizeReservationService/Create",
        &["CreateSizeReservation"],
    ),
    (
        "metalstack.admin.v2.SizeReservationService/Delete",
        &["DeleteSizeReservation"],
    ),
    (
        "metalstack.admin.v2.SizeReservationService/Update",
        &["UpdateSizeReservation"],
    ),
    ("metalstack.admin.v2.SizeService/Create", &["CreateSize"]),
    ("metalstack.admin.v2.SizeService/Delete", &["DeleteSize"]),
    ("metalstack.admin.v2.SizeService/Update", &["UpdateSize"]),
    (
        "metalstack.admin.v2.SwitchService/Delete",
        &["DeleteSwitch"],
    ),
    (
        "metalstack.admin.v2.SwitchService/Migrate",
        &["MigrateSwitch"],
    ),
    ("metalstack.admin.v2.SwitchService/Port", &["SetSwitchPort"]),
    (
        "metalstack.admin.v2.SwitchService/Update",
        &["UpdateSwitch"],
    ),
    (
        "metalstack.admin.v2.TaskService/Delete",
        &["DeleteBmcOrder"],
    ),
    (
        "metalstack.admin.v2.TenantService/AddMember",
        &["SetTenantMember"],
    ),
    (
        "metalstack.admin.v2.TenantService/Create",
        &["CreateTenant"],
    ),
    (
        "metalstack.admin.v2.TenantService/RemoveMember",
        &["RemoveTenantMember"],
    ),
    ("metalstack.admin.v2.TokenService/Create", &["CreateToken"]),
    ("metalstack.admin.v2.TokenService/Revoke", &["RevokeToken"]),
    ("metalstack.api.v2.IPService/Create", &["CreateIp"]),
    ("metalstack.api.v2.IPService/Delete", &["DeleteIp"]),
    ("metalstack.api.v2.IPService/Update", &["UpdateIp"]),
    ("metalstack.api.v2.MachineService/BMCCommand", &["OrderBmc"]),
    (
        "metalstack.api.v2.MachineService/Create",
        &["AllocateMachine"],
    ),
    ("metalstack.api.v2.MachineService/Delete", &["FreeMachine"]),
    (
        "metalstack.api.v2.MachineService/Update",
        &["UpdateMachine"],
    ),
    (
        "metalstack.api.v2.NetworkService/Create",
        &["CreateChildNetwork"],
    ),
    (
        "metalstack.api.v2.NetworkService/Delete",
        &["DeleteNetwork"],
    ),
    (
        "metalstack.api.v2.NetworkService/Update",
        &["UpdateNetwork"],
    ),
    (
        "metalstack.api.v2.ProjectService/AddMember",
        &["SetProjectMember"],
    ),
    (
        "metalstack.api.v2.ProjectService/Create",
        &["CreateProject"],
    ),
    (
        "metalstack.api.v2.ProjectService/Delete",
        &["DeleteProject"],
    ),
    ("metalstack.api.v2.ProjectService/Invite", &["CreateInvite"]),
    (
        "metalstack.api.v2.ProjectService/InviteAccept",
        &["AcceptInvite"],
    ),
    (
        "metalstack.api.v2.ProjectService/InviteDelete",
        &["DeleteInvite"],
    ),
    (
        "metalstack.api.v2.ProjectService/Leave",
        &["RemoveProjectMember"],
    ),
    (
        "metalstack.api.v2.ProjectService/RemoveMember",
        &["RemoveProjectMember"],
    ),
    (
        "metalstack.api.v2.ProjectService/Update",
        &["UpdateProject"],
    ),
    (
        "metalstack.api.v2.ProjectService/UpdateMember",
        &["SetProjectMember"],
    ),
    (
        "metalstack.api.v2.TenantService/AddMember",
        &["SetTenantMember"],
    ),
    ("metalstack.api.v2.TenantService/Create", &["CreateTenant"]),
    ("metalstack.api.v2.TenantService/Delete", &["DeleteTenant"]),
    ("metalstack.api.v2.TenantService/Invite", &["CreateInvite"]),
    (
        "metalstack.api.v2.TenantService/InviteAccept",
        &["AcceptInvite"],
    ),
    (
        "metalstack.api.v2.TenantService/InviteDelete",
        &["DeleteInvite"],
    ),
    (
        "metalstack.api.v2.TenantService/Leave",
        &["RemoveTenantMember"],
    ),
    (
        "metalstack.api.v2.TenantService/RemoveMember",
        &["RemoveTenantMember"],
    ),
    ("metalstack.api.v2.TenantService/Update", &["UpdateTenant"]),
    (
        "metalstack.api.v2.TenantService/UpdateMember",
        &["SetTenantMember"],
    ),
    ("metalstack.api.v2.TokenService/Create", &["CreateToken"]),
    ("metalstack.api.v2.TokenService/Refresh", &["CreateToken"]),
    ("metalstack.api.v2.TokenService/Revoke", &["RevokeToken"]),
    ("metalstack.api.v2.TokenService/Update", &["UpdateToken"]),
    (
        "metalstack.infra.v2.BMCService/BMCCommandDone",
        &["BmcOrderDone"],
    ),
    (
        "metalstack.infra.v2.BMCService/UpdateBMCInfo",
        &["KeepBmcAccess", "ReportBmc"],
    ),
    ("metalstack.infra.v2.BootService/Dhcp", &["MachineSeen"]),
    (
        "metalstack.infra.v2.BootService/InstallationSucceeded",
        &["InstallDone", "MachineEvent"],
    ),
    (
        "metalstack.infra.v2.BootService/MachineToken",
        &["CreateMachineToken"],
    ),
    (
        "metalstack.infra.v2.BootService/Register",
        &[
            "KeepBmcAccess",
            "MachineEvent",
            "MachineSeen",
            "RegisterMachine",
        ],
    ),
    (
        "metalstack.infra.v2.BootService/SendEvent",
        &["MachineEvent"],
    ),
    (
        "metalstack.infra.v2.BootService/Wait",
        &["MachineEvent", "WipeDone"],
    ),
    (
        "metalstack.infra.v2.ComponentService/Ping",
        &["ReportComponent"],
    ),
    (
        "metalstack.infra.v2.EventService/Send",
        &["MachineEvent", "PhoneHome"],
    ),
    (
        "metalstack.infra.v2.SwitchService/Heartbeat",
        &["ReportSwitch"],
    ),
    (
        "metalstack.infra.v2.SwitchService/Register",
        &["RegisterSwitch", "UpdateSwitch"],
    ),
];

/// The operations of an actor of the system.
const fn of_system(actor: SystemActor) -> &'static [&'static str] {
    match actor {
        SystemActor::Audit => &["AppendAudit", "MarkAuditExport"],
        SystemActor::Bootstrap => &[
            "AnnounceNode",
            "ChangeMembers",
            "CreateTenant",
            "CreateToken",
            "PutCa",
            "PutSigningKey",
        ],
        SystemActor::Gate => &["TouchToken"],
        SystemActor::Gateway => &[
            "BmcOrderDone",
            "ChangeMembers",
            "InstallDone",
            "MachineEvent",
            "MachineSeen",
            "PhoneHome",
            "RegisterMachine",
            "RegisterSwitch",
            "ReportBmc",
            "ReportSwitch",
            "TakeBmcOrder",
            "WipeDone",
        ],
        SystemActor::Login => &["LogIn"],
        SystemActor::Pki => &[
            "IssueBootTicket",
            "IssueCertificate",
            "JoinNode",
            "RedeemBootTicket",
            "RedeemJoinTicket",
            "RevokeCertificates",
        ],
        SystemActor::Reconcile => &["ForgetVpn", "ReportVpn", "Tick"],
    }
}

/// The operations of a method. `path` begins with a slash, as gRPC has it.
fn of_method(path: &str) -> &'static [&'static str] {
    let name = path.trim_start_matches('/');
    let found = METHODS.binary_search_by_key(&name, |(method, _)| method);
    found.map_or(&[], |at| METHODS[at].1)
}

/// The operations of a permit. A permit of neither an actor nor a method covers nothing.
fn of_permit(permit: &Permit) -> &'static [&'static str] {
    match (permit.actor(), permit.path()) {
        (Actor::System(actor), _) => of_system(*actor),
        (_, Some(path)) => of_method(path),
        (_, None) => &[],
    }
}

/// Checks that a permit covers the operation of a command.
///
/// # Errors
/// [`ErrorCode::Internal`] if it does not: the code that proposes the command has the wrong permit.
pub fn check_covers(permit: &Permit, operation: &Op) -> Result<(), StateError> {
    check(permit, operation.name())
}

/// Checks that a permit covers changes of the members of the cluster.
///
/// # Errors
/// As [`check_covers`].
pub(crate) fn check_covers_members(permit: &Permit) -> Result<(), StateError> {
    check(permit, CHANGE_MEMBERS)
}

fn check(permit: &Permit, operation: &str) -> Result<(), StateError> {
    if of_permit(permit).contains(&operation) {
        return Ok(());
    }
    let message = match (permit.actor(), permit.path()) {
        (Actor::System(actor), _) => format!("{actor:?} does not cover {operation}"),
        (_, path) => format!("{} does not cover {operation}", path.unwrap_or_default()),
    };
    Err(StateError::new(ErrorCode::Internal, message))
}

/// The methods and the actors of the system that cover an operation, by its name. Tests find a
/// permit for their commands with it.
#[must_use]
pub fn coverers(operation: &str) -> (Vec<&'static str>, Vec<SystemActor>) {
    let methods = METHODS.iter();
    let methods = methods.filter(|(_, operations)| operations.contains(&operation));
    let actors = SystemActor::ALL.iter().copied();
    (
        methods.map(|(method, _)| *method).collect(),
        actors
            .filter(|actor| of_system(*actor).contains(&operation))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn methods_and_operations_are_those_of_the_contracts_and_the_state() {
        let names = METHODS.iter().map(|(method, _)| *method);
        assert!(names.clone().is_sorted(), "found by binary search");
        for name in names {
            let path = format!("/{name}");
            assert!(proto_public::method(&path).is_some(), "{name}");
        }
        let of_systems = SystemActor::ALL.iter().map(|actor| of_system(*actor));
        let of_methods = METHODS.iter().map(|(_, operations)| *operations);
        let covered: BTreeSet<&str> = of_systems.chain(of_methods).flatten().copied().collect();
        let known = Op::NAMES.iter().copied().chain([CHANGE_MEMBERS]);
        assert_eq!(
            covered,
            known.collect(),
            "each operation has somebody who may"
        );
    }

    #[test]
    fn methods_that_only_read_are_not_listed() {
        for method in proto_public::methods() {
            let (service, name) = method.path.rsplit_once('/').unwrap();
            let reads = ["Get", "List"].iter().any(|read| name.starts_with(read));
            let covers = !of_method(&method.path).is_empty();
            assert!(!(reads && covers), "{service}/{name}");
        }
    }

    #[test]
    fn a_part_of_the_system_covers_its_own_operations_only() {
        let tick = Op::from(control_state::Tick::default());
        let duties = Permit::system(SystemActor::Reconcile);
        assert!(check_covers(&duties, &tick).is_ok());
        for actor in SystemActor::ALL {
            let permit = Permit::system(*actor);
            let is_duty = *actor == SystemActor::Reconcile;
            assert_eq!(check_covers(&permit, &tick).is_ok(), is_duty, "{actor:?}");
        }
        let refused = check_covers(&Permit::system(SystemActor::Gate), &tick).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Internal);
        assert!(refused.to_string().contains("Gate does not cover Tick"));
    }
}
