//! Tenants, projects, tokens, users, and what bounds them.

use anyhow::Result;
use serde_json::{Value, json};

use crate::scenario::{Scenario, digest, id, relabelled};

const DAY_MS: u64 = 24 * 3_600_000;

fn tenant(login: &str) -> Value {
    json!({"CreateTenant": {
        "login": login, "name": login, "email": "a@b.example", "description": "text",
        "avatar_url": "https://a.example/b", "labels": {"key": "value"}, "owner": login,
    }})
}

fn project(number: u128) -> Value {
    json!({"CreateProject": {
        "id": id(number), "tenant": "acme", "name": format!("project-{number}"),
        "description": "text", "avatar_url": "https://a.example/b", "labels": {"key": "value"}, "owner": "acme",
    }})
}

fn invite(scenario: &Scenario<'_>, number: u8) -> Value {
    json!({"CreateInvite": {
        "id": digest(number), "sealed_secret": [1, 2, 3],
        "to": {"project": {"id": id(1), "role": "viewer"}}, "warrant": "operator",
        "expires_at": scenario.after(DAY_MS),
    }})
}

/// A token with something of everything.
pub(crate) fn token(scenario: &Scenario<'_>, number: u128, user: &str) -> Value {
    json!({
        "id": id(number), "user": user, "description": "text", "labels": {"key": "value"},
        "permissions": [{"subject": id(1), "methods": ["/metalstack.api.v2.IPService/List"]}],
        "expires": scenario.after(DAY_MS), "token_type": "api",
        "project_roles": {id(1): "editor"}, "tenant_roles": {"acme": "viewer"},
    })
}

pub(crate) fn without_roles(mut token: Value) -> Value {
    token["project_roles"] = json!({});
    token["tenant_roles"] = json!({});
    token
}

pub(crate) fn rows(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(tenant("acme"))?;
    scenario.done(tenant("beta"))?;
    scenario.done(tenant("gamma"))?;
    scenario.row(json!({"UpdateTenant": {
        "login": "acme", "lock": "server", "name": "acme", "email": "a@b.example",
        "description": "text", "avatar_url": "https://a.example/b", "labels": relabelled(),
    }}))?;
    scenario.row(json!({"SetTenantMember": {
        "login": "acme", "member": "beta", "role": "editor",
    }}))?;
    scenario.row(project(1))?;
    scenario.done(project(2))?;
    scenario.row(json!({"UpdateProject": {
        "id": id(1), "lock": "server", "name": "project-1", "description": "text",
        "avatar_url": "https://a.example/b", "labels": relabelled(),
    }}))?;
    scenario.row(json!({"SetProjectMember": {
        "id": id(1), "member": "beta", "role": "viewer",
    }}))?;
    let op = invite(scenario, 1);
    scenario.row(op)?;
    scenario.row(json!({"AcceptInvite": {"id": digest(1), "member": "gamma"}}))?;
    let op = invite(scenario, 2);
    scenario.done(op)?;
    scenario.row(json!({"DeleteInvite": {"id": digest(2), "place": {"project": id(1)}}}))?;
    tokens(scenario)?;
    users(scenario)?;
    bounds(scenario)
}

fn tokens(scenario: &mut Scenario<'_>) -> Result<()> {
    let op = json!({"CreateToken": token(scenario, 1, "acme")});
    scenario.row(op)?;
    scenario.row(json!({"UpdateToken": {
        "id": id(1), "lock": "server", "description": "text", "labels": relabelled(),
        "permissions": [{"subject": id(1), "methods": ["/metalstack.api.v2.IPService/List"]}],
        "project_roles": {id(1): "editor"}, "tenant_roles": {"acme": "viewer"},
        "machine_roles": {},
    }}))?;
    scenario.later(600_000);
    scenario.row(json!({"TouchToken": {"id": id(1)}}))?;
    let op = json!({"CreateComponentToken": {
        "token": without_roles(token(scenario, 2, "component/gardener/garden")),
        "component": {"project": id(1), "kind": "gardener", "name": "garden"},
    }});
    scenario.row(op)?;
    let op = json!({"ReportComponent": {
        "id": id(1), "kind": "pixiecore", "identifier": "pixie", "started_at": scenario.after(0),
        "interval_ms": 10_000, "token": id(1),
        "version": {"version": "v1", "revision": "r", "git_sha1": "s", "build_date": "d"},
    }});
    scenario.row(op)?;
    scenario.row(json!({"DeleteComponent": {"id": id(1)}}))?;
    scenario.row(json!({"RevokeToken": {"id": id(1)}}))
}

fn users(scenario: &mut Scenario<'_>) -> Result<()> {
    let password = json!({
        "salt": vec![1; 16], "hash": vec![2; 32], "memory_kib": 19_456, "passes": 2,
    });
    scenario.row(json!({"CreateUser": {
        "login": "ada", "name": "Ada", "email": "a@b.example", "password": password,
    }}))?;
    scenario.row(json!({"SetPassword": {"login": "ada", "password": password}}))?;
    let mut session = token(scenario, 3, "ada");
    session["token_type"] = json!("user");
    scenario.row(json!({"LogIn": {
        "login": "ada", "name": "Ada", "email": "a@b.example",
        "avatar_url": "https://a.example/b", "token": session,
    }}))?;
    scenario.row(json!({"DeleteUser": {"login": "ada"}}))
}

fn bounds(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(json!({"SetPolicy": {
        "name": "night", "source": "package site",
        "methods": ["/metalstack.api.v2.IPService/List"],
    }}))?;
    scenario.row(json!({"RemovePolicy": {"name": "night"}}))?;
    scenario.row(json!({"SetSettings": {"audit": {}, "budgets": {}}}))
}

/// Commands that work only when nothing is left.
pub(crate) fn ends(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(json!({"RemoveProjectMember": {"id": id(1), "member": "beta"}}))?;
    scenario.row(json!({"RemoveTenantMember": {"login": "acme", "member": "beta"}}))?;
    scenario.row(json!({"DeleteProject": {"id": id(2)}}))?;
    scenario.row(json!({"DeleteTenant": {"login": "beta", "personal": true}}))
}
