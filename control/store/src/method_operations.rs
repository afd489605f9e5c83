//! The operations of each method of the public API.

/// The operations of each method of the public API, sorted by method: found by binary search.
pub(crate) const METHODS: &[(&str, &[&str])] = &[
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
    ("metalmesh.admin.v1.FabricService/Drain", &["DrainSwitch"]),
    (
        "metalmesh.admin.v1.FirewallReleaseService/Remove",
        &["RemoveFirewallRelease"],
    ),
    (
        "metalmesh.admin.v1.FirewallReleaseService/Set",
        &["SetFirewallRelease"],
    ),
    (
        "metalmesh.admin.v1.FirewallRulesService/Remove",
        &["DeleteFirewallRules"],
    ),
    (
        "metalmesh.admin.v1.FirewallRulesService/ReplaceFirewall",
        &["ReplaceFirewall"],
    ),
    (
        "metalmesh.admin.v1.FirewallRulesService/RollBack",
        &["RollBackFirewallRules"],
    ),
    (
        "metalmesh.admin.v1.FirewallRulesService/Set",
        &["SetFirewallRules"],
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
        "metalmesh.admin.v1.LeaseService/DecideTransfer",
        &["DecideLeaseTransfer"],
    ),
    ("metalmesh.admin.v1.LeaseService/End", &["EndLease"]),
    ("metalmesh.admin.v1.LeaseService/Extend", &["ExtendLease"]),
    ("metalmesh.admin.v1.LeaseService/Grant", &["GrantLease"]),
    (
        "metalmesh.admin.v1.LeaseService/RequestTransfer",
        &["RequestLeaseTransfer"],
    ),
    (
        "metalmesh.admin.v1.LeaseService/SetCapability",
        &["SetMachineCapability"],
    ),
    (
        "metalmesh.admin.v1.LeaseService/TransferMachine",
        &["TransferMachine"],
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
    (
        "metalmesh.admin.v1.NodeAllocationService/Create",
        &["CreateNodeAllocation"],
    ),
    (
        "metalmesh.admin.v1.NodeAllocationService/Remove",
        &["DeleteNodeAllocation"],
    ),
    (
        "metalmesh.admin.v1.NodeAllocationService/Update",
        &["UpdateNodeAllocation"],
    ),
    ("metalmesh.admin.v1.OperatorLeaseService/End", &["EndLease"]),
    (
        "metalmesh.admin.v1.OperatorLeaseService/SetCapability",
        &["SetMachineCapability"],
    ),
    (
        "metalmesh.admin.v1.OperatorLeaseService/SetOwner",
        &["SetMachineOwner"],
    ),
    (
        "metalmesh.admin.v1.OperatorNodeAllocationService/Create",
        &["CreateNodeAllocation"],
    ),
    (
        "metalmesh.admin.v1.OperatorNodeAllocationService/Remove",
        &["DeleteNodeAllocation"],
    ),
    (
        "metalmesh.admin.v1.OperatorRulesService/Remove",
        &["DeleteFirewallRules"],
    ),
    (
        "metalmesh.admin.v1.OperatorRulesService/RollBack",
        &["RollBackFirewallRules"],
    ),
    (
        "metalmesh.admin.v1.OperatorRulesService/Set",
        &["SetFirewallRules"],
    ),
    ("metalmesh.admin.v1.PolicyService/Remove", &["RemovePolicy"]),
    ("metalmesh.admin.v1.PolicyService/Set", &["SetPolicy"]),
    ("metalmesh.admin.v1.PoolService/CleanHost", &["CleanHost"]),
    (
        "metalmesh.admin.v1.PoolService/ClearHostHold",
        &["HoldHost"],
    ),
    ("metalmesh.admin.v1.PoolService/Remove", &["DeletePool"]),
    (
        "metalmesh.admin.v1.PoolService/RemoveHost",
        &["RemovePoolHost"],
    ),
    ("metalmesh.admin.v1.PoolService/Set", &["SetPool"]),
    ("metalmesh.admin.v1.PoolService/SetHost", &["SetPoolHost"]),
    ("metalmesh.admin.v1.PoolService/SetHostHold", &["HoldHost"]),
    (
        "metalmesh.admin.v1.PoolService/SetProject",
        &["SetProjectLabels"],
    ),
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
    ("metalmesh.admin.v1.RolloutService/Abort", &["AbortRollout"]),
    ("metalmesh.admin.v1.RolloutService/Clear", &["ClearRelease"]),
    ("metalmesh.admin.v1.RolloutService/Pause", &["PauseRollout"]),
    (
        "metalmesh.admin.v1.RolloutService/Resume",
        &["ResumeRollout"],
    ),
    ("metalmesh.admin.v1.RolloutService/Start", &["StartRollout"]),
    ("metalmesh.admin.v1.SettingsService/Set", &["SetSettings"]),
    ("metalmesh.tenant.v1.ClaimService/ClearHold", &["HoldClaim"]),
    ("metalmesh.tenant.v1.ClaimService/Create", &["CreateClaim"]),
    ("metalmesh.tenant.v1.ClaimService/Delete", &["DeleteClaim"]),
    ("metalmesh.tenant.v1.ClaimService/Reboot", &["RebootClaim"]),
    ("metalmesh.tenant.v1.ClaimService/SetHold", &["HoldClaim"]),
    ("metalmesh.tenant.v1.ClaimService/Update", &["UpdateClaim"]),
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
