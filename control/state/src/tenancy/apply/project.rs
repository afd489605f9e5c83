//! Projects.

use proto_errors::Error;
use proto_types::{MachineId, ProjectId, TenantId};

use crate::fields::{check_description, check_name, in_use};
use crate::identity::entity::Token;
use crate::meta::Meta;
use crate::node::apply::document::forget_documents;
use crate::pool::entity::{PoolHost, ProjectLabels};
use crate::references;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;
use crate::tenancy::apply::{budget, invite};
use crate::tenancy::command::{CreateProject, DeleteProject, UpdateProject};
use crate::tenancy::entity::{
    InvitePlace, Member, Project, ProjectRole, Quota, QuotaSubject, Tenant,
};

pub(crate) fn create_project(tx: &mut Tx<'_>, op: &CreateProject) -> ApplyResult {
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

fn check_project_name(tx: &Tx<'_>, tenant: &TenantId, name: &str) -> CheckResult {
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

pub(crate) fn update_project(tx: &mut Tx<'_>, op: &UpdateProject) -> ApplyResult {
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

pub(crate) fn delete_project(tx: &mut Tx<'_>, op: &DeleteProject) -> ApplyResult {
    let project = tx.tables().require::<Project>(&op.id)?.clone();
    let key = op.id.to_string();
    if let Some((kind, by)) = references::holder_of_project(tx.tables(), op.id) {
        return Err(in_use("project", &key, kind, &by));
    }
    invite::forget(tx, &InvitePlace::Project(op.id));
    tx.delete::<Quota>(&QuotaSubject::Project(op.id));
    tx.delete::<ProjectLabels>(&op.id);
    forget_documents(tx, op.id);
    end_reservations(tx, op.id);
    revoke_components(tx, op.id);
    tx.delete::<Project>(&op.id);
    Ok(Reply::Project(project))
}

/// Ends the reservations of hosts for a project that is deleted.
fn end_reservations(tx: &mut Tx<'_>, project: ProjectId) {
    let reserved = &tx.tables().index().hosts.reserved;
    let own = reserved.range((project, String::new())..);
    let own = own.take_while(|((of, _), _)| *of == project);
    let hosts: Vec<MachineId> = own.flat_map(|(_, hosts)| hosts).copied().collect();
    for id in hosts {
        if let Some(mut host) = tx.get::<PoolHost>(&id).map(|host| PoolHost::clone(host)) {
            host.reserved = None;
            tx.save(host);
        }
    }
}

/// Revokes the tokens of a project's components. They were made for the project, and would
/// otherwise stay valid for up to a year after it.
fn revoke_components(tx: &mut Tx<'_>, project: ProjectId) {
    let is_of = |token: &Token| {
        let component = token.component.as_ref();
        token.revoked_at.is_none()
            && component.is_some_and(|component| component.project == project)
    };
    let ended: Vec<Token> = tx
        .tables()
        .all::<Token>()
        .filter(|token| is_of(token))
        .map(|token| Token::clone(token))
        .collect();
    for mut token in ended {
        token.revoked_at = Some(tx.now);
        tx.update(token);
    }
}
