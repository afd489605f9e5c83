//! Ids come in several spellings; what is decided about a call is the same in each.

use std::collections::BTreeSet;

use api::project_service_client::ProjectServiceClient;
use api::token_service_client::TokenServiceClient;
use mesh::audit_trail_service_client::AuditTrailServiceClient;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::{Method, Scope, methods};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::node::{Node, Wire};
use crate::policy::{about, set};

const GET: &str = "metalstack.api.v2.ProjectService/Get";

/// The spellings of a UUID that anything here reads; the first is the one that is kept.
fn spellings(id: &str) -> Vec<String> {
    let mixed: String = id
        .chars()
        .enumerate()
        .map(|(at, digit)| match at % 2 {
            0 => digit.to_ascii_uppercase(),
            _ => digit,
        })
        .collect();
    vec![
        id.to_owned(),
        id.to_ascii_uppercase(),
        mixed,
        id.replace('-', ""),
        format!("{{{id}}}"),
        format!("urn:uuid:{id}"),
    ]
}

/// Those that the contract's rules let through.
fn accepted(id: &str) -> Vec<String> {
    spellings(id).into_iter().take(3).collect()
}

async fn get(wire: Wire, project: &str) -> Result<api::Project, Status> {
    let request = api::ProjectServiceGetRequest {
        project: project.into(),
    };
    let found = ProjectServiceClient::new(wire).get(request).await;
    found.map(|found| found.into_inner().project.unwrap())
}

async fn update(wire: Wire, project: &str) -> Result<(), Status> {
    let request = api::ProjectServiceUpdateRequest {
        project: project.into(),
        update_meta: Some(api::UpdateMeta {
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
            ..Default::default()
        }),
        name: Some("renamed".into()),
        ..Default::default()
    };
    let updated = ProjectServiceClient::new(wire).update(request).await;
    updated.map(drop)
}

#[test]
fn what_parses_as_an_id_is_rewritten_to_how_it_prints() {
    let id = uuid::Uuid::from_u128(0x0f8f_ad5b_d9cb_469f_a165_7086_7728_950e);
    for text in spellings(&id.to_string()) {
        let parsed: uuid::Uuid = text.parse().unwrap();
        let rewritten = proto_public::Spelling::Uuid.rewrite(&text);
        assert_eq!(rewritten.unwrap_or(text), parsed.to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_and_a_narrower_entry_hold_in_every_spelling() {
    let node = Node::start().await;
    let (project, owner) = node.tenant("acme").await;
    let editor: i32 = api::ProjectRole::Editor.into();
    let narrow = api::TokenServiceCreateRequest {
        project_roles: [
            ("*".to_owned(), editor),
            (project.clone(), api::ProjectRole::Viewer.into()),
        ]
        .into(),
        ..Default::default()
    };
    let (_, narrow) = node.token_of("acme", narrow).await;
    // The same, with the entry written otherwise.
    let upper = api::TokenServiceCreateRequest {
        project_roles: [
            ("*".to_owned(), editor),
            (
                project.to_ascii_uppercase(),
                api::ProjectRole::Viewer.into(),
            ),
        ]
        .into(),
        ..Default::default()
    };
    let (_, upper) = node.token_of("acme", upper).await;
    for text in accepted(&project) {
        assert_eq!(
            get(node.wire(Some(&owner)), &text).await.unwrap().uuid,
            project
        );
        for secret in [&narrow, &upper] {
            get(node.wire(Some(secret)), &text).await.unwrap();
            let refused = update(node.wire(Some(secret)), &text).await.unwrap_err();
            assert_eq!(refused.code(), Code::PermissionDenied, "{text}: {refused}");
        }
        update(node.wire(Some(&owner)), &text).await.unwrap();
    }
    let deny = format!("deny contains \"closed\" if input.request.project == \"{project}\"");
    set(&node, "closed", &about(GET, &deny)).await.unwrap();
    for text in accepted(&project) {
        for secret in [&owner, &node.admin] {
            let refused = get(node.wire(Some(secret)), &text).await.unwrap_err();
            assert_eq!(refused.code(), Code::PermissionDenied, "{text}: {refused}");
            assert!(refused.message().contains("closed/closed"), "{refused}");
        }
    }
    // A rule that could never fire is not put in force.
    for text in [&accepted(&project)[1], &accepted(&project)[2]] {
        let deny = format!("deny contains \"never\" if input.request.project == \"{text}\"");
        let refused = set(&node, "never", &about(GET, &deny)).await.unwrap_err();
        assert!(refused.message().contains(&project), "{refused}");
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_names_an_id_once() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let role: i32 = api::ProjectRole::Viewer.into();
    let twice = api::TokenServiceCreateRequest {
        project_roles: accepted(&project)
            .into_iter()
            .map(|text| (text, role))
            .collect(),
        ..Default::default()
    };
    let mut tokens = TokenServiceClient::new(node.as_admin());
    let refused = tokens.create(twice).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert!(refused.message().contains("twice"), "{refused}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_trail_has_one_spelling() {
    let node = Node::start().await;
    let (project, owner) = node.tenant("acme").await;
    for text in accepted(&project) {
        update(node.wire(Some(&owner)), &text).await.unwrap();
    }
    let mut trail = AuditTrailServiceClient::new(node.as_admin());
    let request = mesh::AuditTrailServiceListRequest {
        after: 0,
        limit: 1000,
    };
    let records = trail.list(request).await.unwrap().into_inner().records;
    let updates = records
        .iter()
        .filter(|record| record.method.ends_with("ProjectService/Update"));
    let updates: Vec<_> = updates.collect();
    assert_eq!(updates.len(), accepted(&project).len());
    for record in updates {
        assert_eq!(record.project.as_deref(), Some(project.as_str()));
        assert!(
            record.body.as_deref().unwrap().contains(&project),
            "{record:?}"
        );
    }
    let mut audit = api::audit_service_client::AuditServiceClient::new(node.as_admin());
    let mut answers = BTreeSet::new();
    for text in accepted(&project) {
        let request = api::AuditServiceListRequest {
            login: "acme".into(),
            query: Some(api::AuditQuery {
                project: Some(text),
                method: Some("/metalstack.api.v2.ProjectService/Update".into()),
                ..Default::default()
            }),
        };
        let traces = audit.list(request).await.unwrap().into_inner().traces;
        answers.insert(traces.len());
    }
    assert_eq!(answers, BTreeSet::from([2 * accepted(&project).len()]));
    node.stop().await;
}

/// What a call is told, whatever it calls its subject.
async fn told(
    http: &reqwest::Client,
    base: &str,
    method: &Method,
    secret: &str,
    (field, text): (&str, &str),
) -> (u16, String, String) {
    let answer = http
        .post(format!("{base}/dry-run{}", method.path))
        .bearer_auth(secret)
        .header("content-type", "application/json")
        .body(json!({ field: text }).to_string())
        .send()
        .await
        .unwrap();
    let status = answer.status().as_u16();
    let body: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or_default();
    let word = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    (status, word("code"), word("message"))
}

/// Every method that is about a project or a machine, by callers of every sort, under a policy
/// that refuses the id and without one: the decision does not depend on the spelling.
#[tokio::test(flavor = "multi_thread")]
async fn every_method_decides_the_same_in_every_spelling() {
    let node = Node::start().await;
    node.data_centre().await;
    let machine = node.waiting_machine(7).await;
    let (project, owner) = node.tenant("acme").await;
    let (_, stranger) = node.tenant("rival").await;
    let narrow = api::TokenServiceCreateRequest {
        project_roles: [
            ("*".to_owned(), api::ProjectRole::Owner.into()),
            (project.clone(), api::ProjectRole::Viewer.into()),
        ]
        .into(),
        ..Default::default()
    };
    let (_, narrow) = node.token_of("acme", narrow).await;
    let hammer = api::TokenServiceCreateRequest {
        machine_roles: [
            ("*".to_owned(), api::MachineRole::Editor.into()),
            (machine.clone(), api::MachineRole::Viewer.into()),
        ]
        .into(),
        ..Default::default()
    };
    let (_, hammer) = node.token_of("hammer", hammer).await;
    let callers = [&owner, &stranger, &narrow, &hammer, &node.admin];
    let about: Vec<(&Method, &str, &str)> = methods()
        .iter()
        .filter(|method| !method.server_streaming && !method.client_streaming)
        .filter_map(|method| match method.scope {
            Scope::Project(_) => Some((method, "project", project.as_str())),
            Scope::Machine(_) => Some((method, "uuid", machine.as_str())),
            Scope::Admin(_) => {
                let names = ["uuid", "id", "project"];
                let fields = names.into_iter().find(|name| {
                    let field = method.input.get_field_by_name(name);
                    field.is_some_and(|field| field.kind() == prost_reflect::Kind::String)
                });
                fields.map(|field| (method, field, machine.as_str()))
            }
            _ => None,
        })
        .collect();
    assert!(about.len() > 60, "{}", about.len());
    drop(rustls::crypto::ring::default_provider().install_default());
    let http = reqwest::Client::new();
    let base = format!("http://{}", node.address);
    for is_closed in [false, true] {
        if is_closed {
            let judged = about
                .iter()
                .filter(|(method, ..)| control_authz::is_judged(method));
            let judged: Vec<String> = judged
                .map(|(method, ..)| format!("{:?}", method.path.trim_start_matches('/')))
                .collect();
            let policy = format!(
                "package site\nimport rego.v1\nmethods := {{{}}}\n\
                 ids := {{\"{project}\", \"{machine}\"}}\n\
                 deny contains \"project\" if input.request.project in ids\n\
                 deny contains \"uuid\" if input.request.uuid in ids\n\
                 deny contains \"id\" if input.request.id in ids\n",
                judged.join(",\n")
            );
            set(&node, "closed", &policy).await.unwrap();
        }
        for (method, field, id) in &about {
            // A name may look like an id; then it has one spelling.
            let rule = method.input.get_field_by_name(field).unwrap();
            let is_id = is_respelled(method, &rule, id);
            for secret in callers {
                let mut all = Vec::new();
                for text in spellings(id).iter().filter(|text| is_id || *text == id) {
                    let (status, code, message) =
                        told(&http, &base, method, secret, (field, text)).await;
                    // The contract refuses the shape of some, where the table has let them in.
                    if !(code == "invalid_argument" && message.contains(" UUID")) {
                        all.push((status, code, message.replace(text.as_str(), id)));
                    }
                }
                all.dedup();
                assert!(
                    all.len() <= 1,
                    "{} {field} closed: {is_closed}: {all:#?}",
                    method.path
                );
            }
        }
    }
    node.stop().await;
}

fn is_respelled(method: &Method, field: &prost_reflect::FieldDescriptor, id: &str) -> bool {
    let mut message = prost_reflect::DynamicMessage::new(method.input.clone());
    message.set_field(field, prost_reflect::Value::String(id.to_ascii_uppercase()));
    proto_public::one_spelling(&mut message).unwrap()
}
