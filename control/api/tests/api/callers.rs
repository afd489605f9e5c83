//! The sorts of callers of the authorisation table, and calls in their name.

use control_state as state;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::project_component_service_client::ProjectComponentServiceClient;
use proto_public::{Method, Scope};
use serde_json::{Map, Value};
use tests_support::objects;

use crate::node::Node;
use crate::raw_http::post;

/// Streams that stand are ended by their caller, milliseconds.
pub(crate) const STREAM_MS: &str = "300";
pub(crate) const MACHINE: u128 = 1;
pub(crate) const ABSENT: &str = "00000000-0000-4000-8000-00000000abcd";

/// Whom a call is about.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) tenant: String,
    pub(crate) project: String,
    pub(crate) machine: String,
}

impl World {
    /// One whose objects are not there.
    pub(crate) fn absent() -> Self {
        Self {
            tenant: "nobodys".into(),
            project: ABSENT.into(),
            machine: ABSENT.into(),
        }
    }

    pub(crate) fn subject(&self, method: &Method) -> Option<&str> {
        match method.scope {
            Scope::Tenant(_) => Some(&self.tenant),
            Scope::Project(_) => Some(&self.project),
            Scope::Machine(_) => Some(&self.machine),
            _ => None,
        }
    }
}

/// A code of the contract, empty for success, and what was said.
pub(crate) type Said = (String, String);

/// Calls a method with nothing but whom it is about.
pub(crate) async fn call(node: &Node, method: &Method, token: Option<&str>, world: &World) -> Said {
    let mut body = Map::new();
    if let (Some(field), Some(subject)) = (method.scope.subject_field(), world.subject(method)) {
        body.insert(field.to_owned(), subject.into());
    }
    call_with(node, method, token, Value::Object(body)).await
}

pub(crate) async fn call_with(
    node: &Node,
    method: &Method,
    token: Option<&str>,
    body: Value,
) -> Said {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers: Vec<_> = bearer
        .iter()
        .map(|it| ("authorization", it.as_str()))
        .collect();
    let body = body.to_string().into_bytes();
    let error = if method.server_streaming {
        headers.push(("content-type", "application/connect+json"));
        headers.push(("connect-timeout-ms", STREAM_MS));
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        let framed = [&[0][..], &length, &body].concat();
        let answer = post(node, &method.path, &headers, framed).await;
        end_of(&answer.body)["error"].clone()
    } else {
        headers.push(("content-type", "application/json"));
        let answer = post(node, &method.path, &headers, body).await;
        if answer.status == 200 {
            Value::Null
        } else {
            answer.json()
        }
    };
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    (text("code"), text("message"))
}

/// The content of the end-of-stream frame.
pub(crate) fn end_of(mut frames: &[u8]) -> Value {
    while let Some((head, rest)) = frames.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let (frame, rest) = rest.split_at(usize::try_from(length).unwrap());
        if head[0] & 2 != 0 {
            return serde_json::from_slice(frame).unwrap();
        }
        frames = rest;
    }
    panic!("the stream has no end");
}

/// A project of a new tenant, which is nobody's personal one: its owners may delete it.
pub(crate) async fn founded(node: &Node, tenant: &str, founder: &str) -> String {
    node.hardware(objects::tenant(tenant, Some(founder))).await;
    let id = uuid::Uuid::now_v7();
    node.hardware(state::CreateProject {
        id: id.into(),
        name: format!("{tenant}-project"),
        ..objects::project(1, tenant)
    })
    .await;
    id.to_string()
}

/// A tenant of its own for each caller, and the caller's token.
pub(crate) async fn caller(node: &Node, name: &str) -> (World, Option<String>) {
    let (tenant, founder) = (format!("acme-{name}"), format!("founder-{name}"));
    let project = founded(node, &tenant, &founder).await;
    let world = World {
        tenant: tenant.clone(),
        project: project.clone(),
        machine: uuid::Uuid::from_u128(MACHINE).to_string(),
    };
    let member = |role| state::SetTenantMember {
        login: tenant.parse().unwrap(),
        member: "ann".parse().unwrap(),
        role,
        must_be_new: None,
    };
    let rights = |wanted: api::TokenServiceCreateRequest| async {
        Some(node.token_of("stranger", wanted).await.1)
    };
    let token = match name {
        "nobody" => None,
        "other" => Some(node.login("stranger").await),
        "guest" | "viewer" | "editor" | "owner" => {
            let role = match name {
                "guest" => state::TenantRole::Guest,
                "viewer" => state::TenantRole::Viewer,
                "editor" => state::TenantRole::Editor,
                _ => state::TenantRole::Owner,
            };
            node.hardware(member(role)).await;
            Some(node.login("ann").await)
        }
        "token" => {
            let wanted = api::TokenServiceCreateRequest {
                project_roles: [(project, api::ProjectRole::Owner.into())].into(),
                tenant_roles: [(tenant.clone(), api::TenantRole::Owner.into())].into(),
                ..Default::default()
            };
            Some(node.token_of(&founder, wanted).await.1)
        }
        "admin-v" => {
            rights(api::TokenServiceCreateRequest {
                admin_role: Some(api::AdminRole::Viewer.into()),
                ..Default::default()
            })
            .await
        }
        "admin-e" => Some(node.admin.clone()),
        "infra" => {
            rights(api::TokenServiceCreateRequest {
                infra_role: Some(api::InfraRole::Editor.into()),
                ..Default::default()
            })
            .await
        }
        "machine" => {
            let role = api::MachineRole::Editor.into();
            rights(api::TokenServiceCreateRequest {
                machine_roles: [(world.machine.clone(), role)].into(),
                ..Default::default()
            })
            .await
        }
        "component" => {
            let kind = mesh::ProjectComponentKind::Gardener;
            Some(component(node, &project, kind).await.1)
        }
        other => panic!("{other} is a new sort of caller"),
    };
    (world, token)
}

/// A component's id and token, made by an admin.
pub(crate) async fn component(
    node: &Node,
    project: &str,
    kind: mesh::ProjectComponentKind,
) -> (String, String) {
    let wire = node.as_admin();
    let mut components = ProjectComponentServiceClient::new(wire);
    let request = mesh::ProjectComponentServiceCreateRequest {
        project: project.to_owned(),
        kind: kind.into(),
        name: "shoot-1".into(),
        days: 1,
    };
    let made = components.create(request).await.unwrap().into_inner();
    (made.component.unwrap().id, made.secret)
}
