//! The audit trail: with the change, chained, without secrets.

use std::time::{Duration, Instant};

use control_state::{AuditEntry, AuditPhase, Kind};
use control_store::ChangeEvent;
use mesh::audit_trail_service_client::AuditTrailServiceClient;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_types::{AuditHash, AuditLine, Timestamp};
use tonic::Code;

use crate::node::Node;

fn describe(project: &str, description: &str) -> api::ProjectServiceUpdateRequest {
    api::ProjectServiceUpdateRequest {
        project: project.to_owned(),
        update_meta: Some(api::UpdateMeta {
            updated_at: None,
            locking_strategy: api::OptimisticLockingStrategy::Server.into(),
        }),
        description: Some(description.to_owned()),
        ..Default::default()
    }
}

/// The records that the store has of a method, oldest first.
fn of_method(node: &Node, method: &str) -> Vec<AuditEntry> {
    let all = node.store.read_local(|tables| {
        let all = tables.all::<AuditEntry>();
        let of_method = all.filter(|it| it.method.ends_with(method));
        of_method.map(|it| AuditEntry::clone(it)).collect()
    });
    all.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_has_its_record_in_the_same_command() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    let mut projects =
        api::project_service_client::ProjectServiceClient::new(node.wire(Some(&token)));
    let mut watch = node.store.watch();
    projects
        .update(describe(&project, "changed"))
        .await
        .unwrap();
    // No wait: what was acknowledged is recorded.
    let records = of_method(&node, "api.v2.ProjectService/Update");
    let [record] = records.as_slice() else {
        panic!("{records:?}")
    };
    assert_eq!(
        (record.phase, record.result_code),
        (AuditPhase::Call, Some(0))
    );
    assert_eq!(record.project.as_deref(), Some(project.as_str()));
    assert!(record.hash.is_some() && record.ended >= Some(record.time));
    let kinds = loop {
        let ChangeEvent::Changed { changes, .. } = watch.next().await.unwrap() else {
            continue;
        };
        let kinds: Vec<Kind> = changes.iter().map(|change| change.kind).collect();
        if kinds.contains(&Kind::Project) {
            break kinds;
        }
    };
    assert_eq!(kinds, [Kind::Project, Kind::AuditEntry]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_nothing_is_recorded_too_and_without_secrets() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    let request = api::MachineServiceCreateRequest {
        project: project.clone(),
        name: "m".into(),
        partition: Some("nowhere".into()),
        size: Some("none".into()),
        image: "debian-12.0".into(),
        userdata: Some("dmVyeSBzZWNyZXQ=".into()),
        allocation_type: api::MachineAllocationType::Machine.into(),
        ..Default::default()
    };
    machines.create(request).await.unwrap_err();
    let until = Instant::now() + Duration::from_secs(20);
    let records = loop {
        let records = of_method(&node, "api.v2.MachineService/Create");
        if !records.is_empty() || Instant::now() > until {
            break records;
        }
        tokio::task::yield_now().await;
    };
    let [record] = records.as_slice() else {
        panic!("{records:?}")
    };
    assert_ne!(record.result_code, Some(0));
    let body = record.body.as_deref().unwrap();
    assert!(
        body.contains("<redacted>") && !body.contains("dmVyeSBzZWNyZXQ"),
        "{body}"
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn administrators_check_the_chain() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    let mut projects =
        api::project_service_client::ProjectServiceClient::new(node.wire(Some(&token)));
    for number in 0..5 {
        let change = describe(&project, &format!("changed {number}"));
        projects.update(change).await.unwrap();
    }
    let mut trail = AuditTrailServiceClient::new(node.as_admin());
    let mut after = 0;
    let mut records = Vec::new();
    let anchor = loop {
        let page = mesh::AuditTrailServiceListRequest { after, limit: 3 };
        let page = trail.list(page).await.unwrap().into_inner();
        let count = page.records.len();
        records.extend(page.records);
        after = records.last().unwrap().sequence;
        if count < 3 {
            break page.anchor.unwrap();
        }
    };
    let mut previous = AuditHash::try_from(anchor.hash.as_slice()).unwrap();
    let chain = records.iter().filter(|it| it.sequence > anchor.sequence);
    let mut checked = 0;
    for it in chain {
        let line = AuditLine {
            sequence: it.sequence,
            id: &it.id,
            time: Timestamp::from_ms(it.time_ms),
            ended: it.ended_ms.map(Timestamp::from_ms),
            user: &it.user,
            tenant: &it.tenant,
            project: it.project.as_deref(),
            method: &it.method,
            body: it.body.as_deref(),
            source_ip: &it.source_ip,
            result_code: it.result_code,
            phase: match it.part() {
                mesh::AuditPart::Request => AuditPhase::Request,
                mesh::AuditPart::Response => AuditPhase::Response,
                _ => AuditPhase::Call,
            },
            rule: it.rule.as_deref(),
            count: it.count,
        };
        previous = line.hash(&previous);
        assert_eq!(it.hash, previous.bytes(), "{it:?}");
        checked += 1;
    }
    assert!(checked >= 5, "{checked}");

    let mut tenants = AuditTrailServiceClient::new(node.wire(Some(&token)));
    let refused = tenants
        .list(mesh::AuditTrailServiceListRequest::default())
        .await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_shown_as_the_contract_has_it() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    let mut projects =
        api::project_service_client::ProjectServiceClient::new(node.wire(Some(&token)));
    projects
        .update(describe(&project, "changed"))
        .await
        .unwrap();
    let mut audits = admin::audit_service_client::AuditServiceClient::new(node.as_admin());
    let id = of_method(&node, "api.v2.ProjectService/Update")[0]
        .id
        .clone();
    let get = |phase: Option<api::AuditPhase>| admin::AuditServiceGetRequest {
        uuid: id.clone(),
        phase: phase.map(Into::into),
    };
    let asked = audits
        .get(get(None))
        .await
        .unwrap()
        .into_inner()
        .trace
        .unwrap();
    assert_eq!(asked.phase(), api::AuditPhase::Request);
    assert!(asked.body.is_some() && asked.result_code.is_none());
    let answered = audits
        .get(get(Some(api::AuditPhase::Response)))
        .await
        .unwrap();
    let answered = answered.into_inner().trace.unwrap();
    assert!(answered.body.is_none() && answered.result_code == Some(0));
    let query = api::AuditQuery {
        project: Some(project),
        result_code: Some(0),
        ..Default::default()
    };
    let request = admin::AuditServiceListRequest { query: Some(query) };
    let traces = audits.list(request).await.unwrap().into_inner().traces;
    assert!(traces.iter().any(|it| it.uuid == id));
    assert!(
        traces
            .iter()
            .all(|it| it.phase() == api::AuditPhase::Response)
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_calls_are_counted_and_stay_out_of_others_trails() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    let (_, stranger) = node.tenant("eve").await;
    let mut projects =
        api::project_service_client::ProjectServiceClient::new(node.wire(Some(&stranger)));
    for number in 0..300 {
        let refused = projects
            .update(describe(&project, &format!("attack {number}")))
            .await;
        assert_eq!(refused.unwrap_err().code(), Code::NotFound);
    }
    let traces = async |login: &str| {
        let mut audits =
            api::audit_service_client::AuditServiceClient::new(node.wire(Some(&node.admin)));
        let request = api::AuditServiceListRequest {
            login: login.to_owned(),
            query: Some(api::AuditQuery {
                user: Some("eve".to_owned()),
                method: Some("/metalstack.api.v2.ProjectService/Update".to_owned()),
                ..Default::default()
            }),
        };
        audits.list(request).await.unwrap().into_inner().traces
    };
    assert_eq!(traces("acme").await, [], "the victim's trail");
    // The record of the first call is written behind its end.
    let deadline = Instant::now() + Duration::from_secs(10);
    let own = loop {
        let own = traces("eve").await;
        if !own.is_empty() || Instant::now() > deadline {
            break own;
        }
        tokio::task::yield_now().await;
    };
    assert!(
        own[0].body.as_ref().unwrap().contains("attack 0"),
        "{own:?}"
    );
    let records = of_method(&node, "api.v2.ProjectService/Update");
    assert_eq!(records.len(), 1, "{records:?}");
    node.stop().await;
}
