//! Members of tenants and projects. Neither loses its last owner.

use std::collections::BTreeMap;

use proto_errors::{Error, ErrorCode};
use proto_types::{TenantId, Timestamp};

use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;
use crate::tenancy::command::{
    RemoveProjectMember, RemoveTenantMember, SetProjectMember, SetTenantMember,
};
use crate::tenancy::entity::{Member, Project, ProjectRole, Tenant, TenantRole};

/// Most members of a tenant or project; a further one is refused.
const MEMBERS_MAX: usize = 1000;

pub(crate) fn set_tenant_member(tx: &mut Tx<'_>, op: &SetTenantMember) -> ApplyResult {
    let mut tenant: Tenant = tx.require(&op.login)?;
    put_member(
        &mut tenant.members,
        &op.member,
        op.role,
        op.must_be_new,
        tx.now,
    )?;
    check_personal(&op.login, &op.member, Some(op.role))?;
    keep_owner(
        &tenant.members,
        TenantRole::Owner,
        "tenant",
        op.login.as_str(),
    )?;
    Ok(Reply::Tenant(tx.update(tenant)))
}

/// Refuses to take the ownership of a personal tenant from its user.
fn check_personal(tenant: &TenantId, member: &TenantId, role: Option<TenantRole>) -> CheckResult {
    if tenant != member || role == Some(TenantRole::Owner) {
        return Ok(());
    }
    let what = format!("\"{member}\" owns its personal tenant and cannot lose that");
    Err(Error::new(ErrorCode::LastOwner, what)
        .object("tenant", tenant)
        .hint("use another tenant for what others shall own"))
}

pub(crate) fn remove_tenant_member(tx: &mut Tx<'_>, op: &RemoveTenantMember) -> ApplyResult {
    let mut tenant: Tenant = tx.require(&op.login)?;
    let was = take_member(&mut tenant.members, &op.member)?;
    let key = op.login.as_str();
    check_personal(&op.login, &op.member, None)?;
    // `keep_owner` accepts an empty list, which tenants of administrators start with. A removal
    // would lead to one as well.
    if was.role == TenantRole::Owner && tenant.members.is_empty() {
        return Err(last_owner("tenant", key));
    }
    keep_owner(&tenant.members, TenantRole::Owner, "tenant", key)?;
    Ok(Reply::Tenant(tx.update(tenant)))
}

fn put_member<R>(
    members: &mut BTreeMap<TenantId, Member<R>>,
    login: &TenantId,
    role: R,
    must_be_new: Option<bool>,
    now: Timestamp,
) -> Result<(), Error> {
    let there = members.get(login).map(|member| member.created_at);
    match (must_be_new, there) {
        (Some(true), Some(_)) => return Err(Error::already_exists("member", login)),
        (Some(false), None) => return Err(Error::not_found("member", login)),
        (_, None) if members.len() >= MEMBERS_MAX => {
            return Err(Error::new(
                ErrorCode::TooMany,
                format!("there are {MEMBERS_MAX} members already"),
            ));
        }
        _ => {}
    }
    members.insert(
        login.clone(),
        Member {
            role,
            created_at: there.unwrap_or(now),
        },
    );
    Ok(())
}

fn take_member<R>(
    members: &mut BTreeMap<TenantId, Member<R>>,
    login: &TenantId,
) -> Result<Member<R>, Error> {
    members
        .remove(login)
        .ok_or_else(|| Error::not_found("member", login))
}

/// Refuses to leave members without an owner among them.
fn keep_owner<R: PartialEq>(
    members: &BTreeMap<TenantId, Member<R>>,
    owner: R,
    kind: &str,
    key: &str,
) -> Result<(), Error> {
    if members.is_empty() || members.values().any(|member| member.role == owner) {
        return Ok(());
    }
    Err(last_owner(kind, key))
}

fn last_owner(kind: &str, key: &str) -> Error {
    let what = format!("{kind} \"{key}\" would be without an owner");
    Error::new(ErrorCode::LastOwner, what).object(kind, key)
}

/// Refuses to leave a project without an owner. The owners of its tenant own it as well; without
/// them, the last owner of the project cannot be removed.
fn keep_project_owner(tx: &Tx<'_>, project: &Project, removes_owner: bool) -> Result<(), Error> {
    let tenant = tx.get::<Tenant>(&project.tenant);
    let mut lenders = tenant
        .into_iter()
        .flat_map(|tenant| tenant.members.values());
    let is_owned = lenders.any(|member| member.role == TenantRole::Owner);
    if is_owned {
        return Ok(());
    }
    let id = project.id.to_string();
    if removes_owner && project.members.is_empty() {
        return Err(last_owner("project", &id));
    }
    keep_owner(&project.members, ProjectRole::Owner, "project", &id)
}

pub(crate) fn set_project_member(tx: &mut Tx<'_>, op: &SetProjectMember) -> ApplyResult {
    let mut project: Project = tx.require(&op.id)?;
    put_member(
        &mut project.members,
        &op.member,
        op.role,
        op.must_be_new,
        tx.now,
    )?;
    keep_project_owner(tx, &project, false)?;
    Ok(Reply::Project(tx.update(project)))
}

pub(crate) fn remove_project_member(tx: &mut Tx<'_>, op: &RemoveProjectMember) -> ApplyResult {
    let mut project: Project = tx.require(&op.id)?;
    let was = take_member(&mut project.members, &op.member)?;
    keep_project_owner(tx, &project, was.role == ProjectRole::Owner)?;
    Ok(Reply::Project(tx.update(project)))
}
