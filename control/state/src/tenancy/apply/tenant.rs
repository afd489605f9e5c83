//! Tenants.

use proto_errors::{Error, ErrorCode};

use crate::fields::{check_description, check_name, in_use, set};
use crate::meta::Meta;
use crate::references;
use crate::reply::{ApplyResult, Reply};
use crate::tables::Tx;
use crate::tenancy::apply::{budget, invite};
use crate::tenancy::command::{CreateTenant, DeleteTenant, UpdateTenant};
use crate::tenancy::entity::{InvitePlace, Member, Quota, QuotaSubject, Tenant, TenantRole};

pub(crate) fn create_tenant(tx: &mut Tx<'_>, op: &CreateTenant) -> ApplyResult {
    check_name(&op.name)?;
    check_description(&op.description)?;
    // The budget does not count tenants of administrators, which have no owner, and the personal
    // tenant of a login.
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

pub(crate) fn update_tenant(tx: &mut Tx<'_>, op: &UpdateTenant) -> ApplyResult {
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

pub(crate) fn delete_tenant(tx: &mut Tx<'_>, op: &DeleteTenant) -> ApplyResult {
    let tenant = tx.tables().require::<Tenant>(&op.login)?.clone();
    if is_personal(tx, &tenant) && !op.personal {
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

/// `true` if the tenant is the personal one of a user: a member or a built-in user has its login.
fn is_personal(tx: &Tx<'_>, tenant: &Tenant) -> bool {
    tenant.members.contains_key(&tenant.login) || references::is_user(tx.tables(), &tenant.login)
}
