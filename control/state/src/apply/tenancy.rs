//! Tenants and projects.

use std::collections::BTreeMap;

use proto_errors::{Error, ErrorCode};
use proto_types::{TenantId, Timestamp};

use crate::apply::{budget, invite};
use crate::command::{
    CreateProject, CreateTenant, DeleteProject, DeleteTenant, InvitePlace, RemoveProjectMember,
    RemoveTenantMember, SetProjectMember, SetTenantMember, UpdateProject, UpdateTenant,
};
use crate::entities::{
    Ip, Member, Network, Project, ProjectRole, Quota, QuotaSubject, SizeReservation, Tenant,
    TenantRole, User,
};
use crate::fields::{check_description, check_name, in_use, set};
use crate::levels::{feature_level, has_contract_rules};
use crate::meta::Meta;
use crate::reply::Reply;
use crate::tables::Tx;

/// How many members a tenant or project may have.
const MEMBERS_MAX: usize = 1000;

type Result = std::result::Result<Reply, Error>;

pub(crate) fn create_tenant(tx: &mut Tx<'_>, op: &CreateTenant) -> Result {
    check_name(&op.name)?;
    check_description(&op.description)?;
    // An administrator makes tenants without an owner, and a login the user's own one.
    if let Some(owner) = op.owner.as_ref().filter(|owner| **owner != op.login) {
        budget::check_tenants(tx, owner)?;
    }
    let owner = op.owner.clone().map(|login| {
        (
            login,
            Member {
                role: TenantRole::Owner,
                created_at: tx.now,
            },
        )
    });
    let tenant = Tenant {
        login: op.login.clone(),
        meta: Meta::labelled(op.labels.clone()),
        name: op.name.clone(),
        email: op.email.clone(),
        description: op.description.clone(),
        avatar_url: op.avatar_url.clone(),
        created_by: tx.actor.to_owned(),
        members: owner.into_iter().collect(),
    };
    tx.create(tenant).map(Reply::Tenant)
}

pub(crate) fn update_tenant(tx: &mut Tx<'_>, op: &UpdateTenant) -> Result {
    let mut tenant: Tenant = tx.require(&op.login)?;
    op.lock.check("tenant", op.login.as_str(), &tenant.meta)?;
    if let Some(name) = &op.name {
        check_name(name)?;
        tenant.name.clone_from(name);
    }
    if let Some(description) = &op.description {
        check_description(description)?;
        tenant.description.clone_from(description);
    }
    set(&mut tenant.email, op.email.as_ref());
    set(&mut tenant.avatar_url, op.avatar_url.as_ref());
    if let Some(labels) = &op.labels {
        labels.apply(&mut tenant.meta.labels)?;
    }
    Ok(Reply::Tenant(tx.update(tenant)))
}

pub(crate) fn delete_tenant(tx: &mut Tx<'_>, op: &DeleteTenant) -> Result {
    let tenant = tx.tables().require::<Tenant>(&op.login)?.clone();
    if is_personal(tx, &tenant) && !op.personal && has_contract_rules(tx.tables()) {
        let message = format!("tenant \"{}\" is the personal one of that user", op.login);
        let error = Error::new(ErrorCode::PermissionDenied, message).object("tenant", &op.login);
        return Err(error.hint("an administrator can delete it once its user is gone"));
    }
    let projects = tx.tables().index().tenant_projects.get(&op.login);
    if let Some(project) = projects.and_then(|projects| projects.first()) {
        let project = project.to_string();
        return Err(in_use("tenant", op.login.as_str(), "project", &project));
    }
    invite::forget(tx, &InvitePlace::Tenant(op.login.clone()));
    tx.delete::<Quota>(&QuotaSubject::Tenant(op.login.clone()));
    tx.delete::<Tenant>(&op.login);
    Ok(Reply::Tenant(tenant))
}

/// `true` if the tenant is the one that its user got with the first log-in: its login is the
/// user's, who is a member or a user of the cluster's own.
fn is_personal(tx: &Tx<'_>, tenant: &Tenant) -> bool {
    tenant.members.contains_key(&tenant.login) || tx.get::<User>(&tenant.login).is_some()
}

pub(crate) fn set_tenant_member(tx: &mut Tx<'_>, op: &SetTenantMember) -> Result {
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

/// A user owns the tenant of its own login as long as there is that tenant.
fn check_personal(
    tenant: &TenantId,
    member: &TenantId,
    role: Option<TenantRole>,
) -> std::result::Result<(), Error> {
    if tenant != member || role == Some(TenantRole::Owner) {
        return Ok(());
    }
    let what = format!("\"{member}\" owns its personal tenant and cannot lose that");
    Err(Error::new(ErrorCode::LastOwner, what)
        .object("tenant", tenant)
        .hint("use another tenant for what others shall own"))
}

pub(crate) fn remove_tenant_member(tx: &mut Tx<'_>, op: &RemoveTenantMember) -> Result {
    let mut tenant: Tenant = tx.require(&op.login)?;
    let was = take_member(&mut tenant.members, &op.member)?;
    let key = op.login.as_str();
    check_personal(&op.login, &op.member, None)?;
    // Unlike a demotion, a removal may leave nobody at all.
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
) -> std::result::Result<(), Error> {
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
) -> std::result::Result<Member<R>, Error> {
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
) -> std::result::Result<(), Error> {
    if members.is_empty() || members.values().any(|member| member.role == owner) {
        return Ok(());
    }
    Err(last_owner(kind, key))
}

fn last_owner(kind: &str, key: &str) -> Error {
    let what = format!("{kind} \"{key}\" would be without an owner");
    Error::new(ErrorCode::LastOwner, what).object(kind, key)
}

/// The owners of its tenant own a project as well. Programs of level 1 did not count them, and
/// beside one of them all must come to its result. Where the tenant has no owner, the removal of a
/// project's owner may not leave the project without members.
fn keep_project_owner(
    tx: &Tx<'_>,
    project: &Project,
    removes_owner: bool,
) -> std::result::Result<(), Error> {
    let tenant = tx.get::<Tenant>(&project.tenant);
    let mut lenders = tenant.into_iter().flat_map(|it| it.members.values());
    let is_owned = lenders.any(|member| member.role == TenantRole::Owner);
    if is_owned && feature_level(tx.tables()) >= 2 {
        return Ok(());
    }
    let id = project.id.to_string();
    if removes_owner && !is_owned && project.members.is_empty() {
        return Err(last_owner("project", &id));
    }
    keep_owner(&project.members, ProjectRole::Owner, "project", &id)
}

pub(crate) fn create_project(tx: &mut Tx<'_>, op: &CreateProject) -> Result {
    check_name(&op.name)?;
    check_description(&op.description)?;
    tx.tables().require::<Tenant>(&op.tenant)?;
    check_project_name(tx, &op.tenant, &op.name)?;
    budget::check_projects(tx, &op.tenant)?;
    let owner = op.owner.clone().map(|login| {
        (
            login,
            Member {
                role: ProjectRole::Owner,
                created_at: tx.now,
            },
        )
    });
    let project = Project {
        id: op.id,
        meta: Meta::labelled(op.labels.clone()),
        name: op.name.clone(),
        description: op.description.clone(),
        tenant: op.tenant.clone(),
        avatar_url: op.avatar_url.clone(),
        members: owner.into_iter().collect(),
    };
    tx.create(project).map(Reply::Project)
}

fn check_project_name(
    tx: &Tx<'_>,
    tenant: &TenantId,
    name: &str,
) -> std::result::Result<(), Error> {
    let tables = tx.tables();
    let theirs = tables.index().tenant_projects.get(tenant);
    let mut theirs = theirs.into_iter().flatten();
    let is_taken = theirs.any(|id| {
        let project = tables.get::<Project>(id);
        project.is_some_and(|project| project.name == name)
    });
    if is_taken {
        Err(Error::already_exists("project", name))
    } else {
        Ok(())
    }
}

pub(crate) fn update_project(tx: &mut Tx<'_>, op: &UpdateProject) -> Result {
    let mut project: Project = tx.require(&op.id)?;
    op.lock
        .check("project", &op.id.to_string(), &project.meta)?;
    if let Some(name) = op.name.as_ref().filter(|name| **name != project.name) {
        check_name(name)?;
        check_project_name(tx, &project.tenant, name)?;
        project.name.clone_from(name);
    }
    if let Some(description) = &op.description {
        check_description(description)?;
        project.description.clone_from(description);
    }
    if op.avatar_url.is_some() {
        project.avatar_url.clone_from(&op.avatar_url);
    }
    if let Some(labels) = &op.labels {
        labels.apply(&mut project.meta.labels)?;
    }
    Ok(Reply::Project(tx.update(project)))
}

pub(crate) fn delete_project(tx: &mut Tx<'_>, op: &DeleteProject) -> Result {
    let project = tx.tables().require::<Project>(&op.id)?.clone();
    let key = op.id.to_string();
    let tables = tx.tables();
    let machine = tables
        .index()
        .project_machines
        .get(&op.id)
        .and_then(|set| set.first());
    let network = tables.all::<Network>().find(|n| n.project == Some(op.id));
    let ip = tables.all::<Ip>().find(|ip| ip.project == op.id);
    let reservation = tables.all::<SizeReservation>().find(|r| r.project == op.id);
    let holds = machine
        .map(|it| ("machine", it.to_string()))
        .or_else(|| ip.map(|it| ("ip", it.ip.to_string())))
        .or_else(|| network.map(|it| ("network", it.id.to_string())))
        .or_else(|| reservation.map(|it| ("size reservation", it.id.to_string())));
    if let Some((kind, by)) = holds {
        return Err(in_use("project", &key, kind, &by));
    }
    invite::forget(tx, &InvitePlace::Project(op.id));
    tx.delete::<Quota>(&QuotaSubject::Project(op.id));
    tx.delete::<Project>(&op.id);
    Ok(Reply::Project(project))
}

pub(crate) fn set_project_member(tx: &mut Tx<'_>, op: &SetProjectMember) -> Result {
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

pub(crate) fn remove_project_member(tx: &mut Tx<'_>, op: &RemoveProjectMember) -> Result {
    let mut project: Project = tx.require(&op.id)?;
    let was = take_member(&mut project.members, &op.member)?;
    keep_project_owner(tx, &project, was.role == ProjectRole::Owner)?;
    Ok(Reply::Project(tx.update(project)))
}
