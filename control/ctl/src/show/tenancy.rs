//! Rows of tenants, projects, tokens, quotas, policies and the audit trail.

use proto_public::api::v2::{
    AuditTrace, Component, Project, ProjectInvite, Tenant, TenantInvite, Token,
};
use proto_public::metalmesh::admin::v1::{
    Amounts, AuditExport, LoginUser, Policy, PolicyUse, ProjectComponent, ProjectComponentKind,
    Quota, Settings, TokenUse, quota,
};

use crate::output::TableRow;
use crate::text::{age, enum_text, meta_age, moment, or_dash, show_labels};

use super::{maybe, row};

row!(Tenant, "metalstack.api.v2.Tenant", |t| [
    "login": t.login.clone(), "name": t.name.clone(), "age": meta_age(t.meta.as_ref()),
    "description": t.description.clone(),
], wide [
    "email": or_dash(t.email.clone()), "created by": or_dash(t.created_by.clone()),
    "labels": show_labels(t.meta.as_ref()),
]);

row!(Project, "metalstack.api.v2.Project", |p| [
    "id": p.uuid.clone(), "tenant": p.tenant.clone(), "name": p.name.clone(),
    "age": meta_age(p.meta.as_ref()), "description": p.description.clone(),
], wide ["labels": show_labels(p.meta.as_ref())]);

row!(TenantInvite, "metalstack.api.v2.TenantInvite", |i| [
    "into": i.target_tenant.clone(), "name": i.target_tenant_name.clone(),
    "role": enum_text("metalstack.api.v2.TenantRole", i.role), "by": i.tenant.clone(),
    "expires": age(i.expires_at.as_ref()),
], wide ["secret": or_dash(i.secret.clone())]);

row!(ProjectInvite, "metalstack.api.v2.ProjectInvite", |i| [
    "into": i.project.clone(), "name": i.project_name.clone(),
    "role": enum_text("metalstack.api.v2.ProjectRole", i.role), "tenant": i.tenant.clone(),
    "expires": age(i.expires_at.as_ref()),
], wide ["secret": or_dash(i.secret.clone())]);

row!(Quota, "metalmesh.admin.v1.Quota", |q| [
    "of": match &q.subject {
        Some(quota::Subject::Tenant(login)) => format!("tenant {login}"),
        Some(quota::Subject::Project(id)) => format!("project {id}"),
        None => "-".to_owned(),
    },
    "machines": used_of(part(&q.used, |a| a.machines), part(&q.limits, |a| a.machines)),
    "of size": used_of_sizes(q),
    "networks": used_of(part(&q.used, |a| a.networks), part(&q.limits, |a| a.networks)),
    "ips": used_of(part(&q.used, |a| a.ips), part(&q.limits, |a| a.ips)),
], wide ["age": age(q.updated_at.as_ref())]);

fn part(of: &Option<Amounts>, get: impl Fn(&Amounts) -> Option<u32>) -> Option<u32> {
    of.as_ref().and_then(get)
}

row!(Settings, "metalmesh.admin.v1.Settings", |s| [
    "audit records": number(s.audit.as_ref().and_then(|audit| audit.records_max)),
    "unread": number(s.audit.as_ref().and_then(|audit| audit.unread_max)),
    "age": s.audit.as_ref().and_then(|audit| audit.age_max.as_ref()).filter(|age| age.seconds > 0)
        .map_or_else(|| "-".to_owned(), |age| format!("{}h", age.seconds / 3600)),
    "tokens/user": number(s.budgets.as_ref().and_then(|budgets| budgets.tokens_per_user)),
    "tenants/user": number(s.budgets.as_ref().and_then(|budgets| budgets.tenants_per_user)),
    "projects/tenant": number(s.budgets.as_ref().and_then(|budgets| budgets.projects_per_tenant)),
    "invites/user": number(s.budgets.as_ref().and_then(|budgets| budgets.invites_per_user)),
    "ips/project": number(s.budgets.as_ref().and_then(|budgets| budgets.ips_per_project)),
    "networks/project":
        number(s.budgets.as_ref().and_then(|budgets| budgets.networks_per_project)),
], wide ["set": age(s.updated_at.as_ref())]);

fn number(number: Option<u32>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

row!(Policy, "metalmesh.admin.v1.Policy", |p| [
    "name": p.name.clone(), "methods": p.methods.len().to_string(),
    "generation": p.generation.to_string(), "by": or_dash(p.updated_by.clone()),
    "age": age(p.updated_at.as_ref()),
    "refused": used(p, |counts| counts.denied), "permitted": used(p, |counts| counts.allowed),
    "failed": used(p, |counts| counts.failed),
], wide [
    "asked": used(p, |counts| counts.asked),
    "fault": or_dash(p.r#use.as_ref().map(|counts| counts.fault.clone()).unwrap_or_default()),
]);

/// A counter of the policy at the node that answered.
fn used(policy: &Policy, get: impl Fn(&PolicyUse) -> u64) -> String {
    let number = policy.r#use.as_ref().map(get);
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

row!(Component, "metalstack.api.v2.Component", |c| [
    "id": c.uuid.clone(), "type": enum_text("metalstack.api.v2.ComponentType", c.r#type),
    "identifier": c.identifier.clone(), "started": age(c.started_at.as_ref()),
    "reported": age(c.reported_at.as_ref()),
    "version": or_dash(c.version.as_ref().map(|v| v.version.clone()).unwrap_or_default()),
], wide [
    "token": or_dash(c.token.as_ref().map(|t| t.uuid.clone()).unwrap_or_default()),
    "age": meta_age(c.meta.as_ref()),
]);

row!(Token, "metalstack.api.v2.Token", |t| [
    "id": t.uuid.clone(), "user": t.user.clone(), "roles": token_roles(t),
    "expires": age(t.expires.as_ref()), "age": age(t.issued_at.as_ref()),
    "description": t.description.clone(),
], wide [
    "permissions": t.permissions.iter()
        .map(|p| format!("{}:{}", or_dash(p.subject.clone()), p.methods.join("+")))
        .collect::<Vec<_>>().join(" "),
    "labels": show_labels(t.meta.as_ref()),
]);

/// All roles of a token on one line.
fn token_roles(token: &Token) -> String {
    let mut roles = Vec::new();
    let maps = [
        (
            &token.project_roles,
            "metalstack.api.v2.ProjectRole",
            "project",
        ),
        (
            &token.tenant_roles,
            "metalstack.api.v2.TenantRole",
            "tenant",
        ),
        (
            &token.machine_roles,
            "metalstack.api.v2.MachineRole",
            "machine",
        ),
    ];
    for (map, name, kind) in maps {
        for (subject, role) in map {
            roles.push(format!("{kind}:{subject}={}", enum_text(name, *role)));
        }
    }
    roles.sort();
    if let Some(role) = token.admin_role {
        roles.insert(
            0,
            format!("admin={}", enum_text("metalstack.api.v2.AdminRole", role)),
        );
    }
    if let Some(role) = token.infra_role {
        roles.insert(
            0,
            format!("infra={}", enum_text("metalstack.api.v2.InfraRole", role)),
        );
    }
    or_dash(roles.join(" "))
}

row!(AuditTrace, "metalstack.api.v2.AuditTrace", |a| [
    "time": moment(a.timestamp.as_ref()), "user": or_dash(a.user.clone()),
    "tenant": or_dash(a.tenant.clone()), "project": maybe(a.project.as_ref()),
    "method": a.method.clone(),
    "code": a.result_code.map_or_else(|| "-".into(), |code| code.to_string()),
], wide [
    "id": a.uuid.clone(), "source": or_dash(a.source_ip.clone()), "body": maybe(a.body.as_ref()),
]);

row!(ProjectComponent, "metalmesh.admin.v1.ProjectComponent", |c| [
    "id": c.id.clone(), "kind": component_kind(c.kind),
    "name": c.name.clone(), "expires": age(c.expires_at.as_ref()),
    "last used": age(c.last_used.as_ref()), "age": age(c.issued_at.as_ref()),
], wide ["project": c.project.clone(), "methods": c.methods.len().to_string()]);

row!(AuditExport, "metalmesh.admin.v1.AuditExport", |e| [
    "name": e.name.clone(), "sequence": e.sequence.to_string(), "behind": e.behind.to_string(),
    "missed up to": or_dash(Some(e.missed).filter(|missed| *missed > 0).map_or_else(String::new, |missed| missed.to_string())),
    "noted": age(e.at.as_ref()),
], wide []);

row!(TokenUse, "metalmesh.admin.v1.TokenUse", |u| [
    "id": u.uuid.clone(), "last used": age(u.last_used.as_ref()),
], wide []);

row!(LoginUser, "metalmesh.admin.v1.LoginUser", |u| [
    "login": u.login.clone(), "name": u.name.clone(), "email": or_dash(u.email.clone()),
    "logged in": age(u.logged_in_at.as_ref()), "age": age(u.created_at.as_ref()),
], wide ["password": age(u.password_set_at.as_ref())]);

/// Usage and limit: `3/4`; `-` without a limit.
fn used_of(used: Option<u32>, limit: Option<u32>) -> String {
    limit.map_or_else(
        || "-".to_owned(),
        |limit| format!("{}/{limit}", used.unwrap_or(0)),
    )
}

/// Usage and limit of each size that has a limit, sorted by size.
fn used_of_sizes(quota: &Quota) -> String {
    let limits = quota
        .limits
        .as_ref()
        .map(|amounts| &amounts.machines_of_size);
    let used = quota.used.as_ref().map(|amounts| &amounts.machines_of_size);
    let all = limits.into_iter().flatten().map(|(size, limit)| {
        let used = used.and_then(|used| used.get(size)).copied();
        format!("{size}={}", used_of(used, Some(*limit)))
    });
    let mut all: Vec<String> = all.collect();
    all.sort();
    or_dash(all.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_stands_before_the_limit() {
        assert_eq!(used_of(Some(3), Some(4)), "3/4");
        assert_eq!(used_of(None, Some(4)), "0/4");
        assert_eq!(used_of(Some(3), None), "-");
    }
}

/// The kind of a component as `metalmesh component create --kind` takes it.
fn component_kind(kind: i32) -> String {
    let name = ProjectComponentKind::try_from(kind).map_or("", |kind| kind.as_str_name());
    let name = name.trim_start_matches("PROJECT_COMPONENT_KIND_");
    or_dash(name.to_ascii_lowercase().replace('_', "-"))
}

#[cfg(test)]
mod component_tests {
    use super::*;

    #[test]
    fn kinds_of_components_are_shown_as_they_are_typed() {
        let kinds = [
            ProjectComponentKind::Ccm,
            ProjectComponentKind::MachineControllerManager,
            ProjectComponentKind::ClusterApi,
        ];
        let shown = kinds.map(|kind| component_kind(kind.into()));
        assert_eq!(shown, ["ccm", "machine-controller-manager", "cluster-api"]);
    }
}
