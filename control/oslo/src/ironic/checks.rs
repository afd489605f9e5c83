//! The check strings of Ironic's rules, by the callers that they permit.
//!
//! Facts of Ironic 39.0.0, an Apache-2.0 project. "Managers" includes administrators, whose role
//! implies the others; each string also names services.

/// Administrators of the system.
pub(super) const SYSTEM_ADMIN: &str = "role:admin and system_scope:all";
/// Administrators and services of the system.
pub(super) const SYSTEM_ADMIN_OR_SERVICE: &str =
    "(role:admin and system_scope:all) or (role:service and system_scope:all)";
/// Members of the system.
pub(super) const SYSTEM_MEMBER: &str = "(role:member and system_scope:all) or rule:service_role";
/// Readers of the system.
pub(super) const SYSTEM_READER: &str = "\
    (role:reader and system_scope:all) or (role:service and system_scope:all) or \
    rule:service_role";
/// Readers of the system, of the owner and of the lessee.
pub(super) const READER: &str = "\
    ((role:reader and system_scope:all) or (role:service and system_scope:all) or \
    rule:service_role) or (role:reader and (project_id:%(node.owner)s or \
    project_id:%(node.lessee)s)) or (role:service and project_id:%(node.owner)s)";
/// Readers of the system and of the owner.
pub(super) const OWNER_READER: &str = "\
    ((role:reader and system_scope:all) or (role:service and system_scope:all) or \
    rule:service_role) or (role:service and system_scope:all) or (role:reader and \
    project_id:%(node.owner)s) or (role:service and project_id:%(node.owner)s)";
/// Members of the system, of the owner and of the lessee.
pub(super) const MEMBER: &str = "\
    ((role:member and system_scope:all) or rule:service_role) or (role:member and \
    (project_id:%(node.owner)s or project_id:%(node.lessee)s)) or (role:service and \
    system_scope:all)";
/// Members of the system and of the owner.
pub(super) const OWNER_MEMBER: &str = "\
    ((role:member and system_scope:all) or rule:service_role) or (role:service and \
    system_scope:all) or (role:member and project_id:%(node.owner)s) or (role:service \
    and project_id:%(node.owner)s)";
/// Members of the system and of the owner, managers of the lessee.
pub(super) const OWNER_MEMBER_OR_LESSEE_MANAGER: &str = "\
    ((role:member and system_scope:all) or rule:service_role) or (role:service and \
    system_scope:all) or (role:member and project_id:%(node.owner)s) or (role:admin and \
    project_id:%(node.lessee)s) or (role:manager and project_id:%(node.lessee)s) or \
    (role:service and project_id:%(node.owner)s)";
/// Members of the system, managers of the owner.
pub(super) const SYSTEM_MEMBER_OR_OWNER_MANAGER: &str = "\
    ((role:member and system_scope:all) or rule:service_role) or (role:service and \
    system_scope:all) or (role:admin and project_id:%(node.owner)s) or (role:manager \
    and project_id:%(node.owner)s) or (role:service and project_id:%(node.owner)s)";
/// Members of the system, managers of the owner and of the lessee.
pub(super) const SYSTEM_MEMBER_OR_MANAGER: &str = "\
    ((role:member and system_scope:all) or rule:service_role) or (role:service and \
    system_scope:all) or (role:admin and project_id:%(node.owner)s) or (role:manager \
    and project_id:%(node.owner)s) or (role:admin and project_id:%(node.lessee)s) or \
    (role:manager and project_id:%(node.lessee)s) or (role:service and \
    project_id:%(node.owner)s)";
/// Administrators of the system, managers of the owner.
pub(super) const SYSTEM_ADMIN_OR_OWNER_MANAGER: &str = "\
    (role:admin and system_scope:all) or (role:service and system_scope:all) or \
    (role:admin and project_id:%(node.owner)s) or (role:manager and \
    project_id:%(node.owner)s) or (role:service and project_id:%(node.owner)s)";
/// Administrators of the owner.
pub(super) const OWNER_ADMIN: &str = "role:admin and project_id:%(node.owner)s";
/// Readers of any scope.
pub(super) const ANY_READER: &str = "(role:reader) or (role:service)";
/// Administrators and services of any scope.
pub(super) const ANY_ADMIN_OR_SERVICE: &str = "(role:admin) or (role:service)";
/// Readers of the system, administrators of any scope.
pub(super) const SYSTEM_READER_OR_ADMIN: &str = "\
    ((role:reader and system_scope:all) or (role:service and system_scope:all) or \
    rule:service_role) or (role:admin)";
/// Readers of the system and of the allocation's project.
pub(super) const ALLOCATION_READER: &str = "\
    ((role:reader and system_scope:all) or (role:service and system_scope:all) or \
    rule:service_role) or (role:reader and project_id:%(allocation.owner)s)";
/// Members of the system and of the allocation's project.
pub(super) const ALLOCATION_MEMBER: &str = "\
    ((role:member and system_scope:all) or rule:service_role) or (role:member and \
    project_id:%(allocation.owner)s)";
/// Members of any scope.
pub(super) const ALLOCATION_CREATOR: &str =
    "((role:member and system_scope:all) or rule:service_role) or (role:member)";
/// Administrators as releases before scopes knew them.
pub(super) const ALLOCATION_LEGACY: &str =
    "(rule:is_member and role:baremetal_admin) or (is_admin_project:True and role:admin)";
/// Readers of the system and of the runbook's project, services of any scope.
pub(super) const RUNBOOK_READER: &str = "\
    ((role:reader and system_scope:all) or (role:service and system_scope:all) or \
    rule:service_role) or (role:reader and project_id:%(runbook.owner)s) or role:service";
/// Members of the system, managers of the runbook's project, services of any scope.
pub(super) const RUNBOOK_MANAGER: &str = "\
    ((role:member and system_scope:all) or rule:service_role) or (role:manager and \
    project_id:%(runbook.owner)s) or role:service";
/// Members of the system, managers and services of any scope.
pub(super) const RUNBOOK_CREATOR: &str =
    "((role:member and system_scope:all) or rule:service_role) or role:manager or role:service";
