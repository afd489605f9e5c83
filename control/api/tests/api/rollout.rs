//! Rollouts of agents' releases: administrators alone start, resume and abort them.

use mesh::rollout_service_client::RolloutServiceClient;
use mesh::wave_size::Size;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::Code;

use crate::node::Node;

fn kind() -> i32 {
    mesh::RolloutKind::Firewall.into()
}

fn wanted(version: &str) -> mesh::RolloutServiceStartRequest {
    mesh::RolloutServiceStartRequest {
        kind: kind(),
        release: Some(mesh::AgentRelease {
            version: version.to_owned(),
            url: "https://releases.example.com/metalmesh-firewall.release".to_owned(),
            head_digest: format!("sha256:{}", "ab".repeat(32)),
        }),
        waves: vec![mesh::WaveSize {
            size: Some(Size::Agents(1)),
        }],
        gate: Some(mesh::RolloutGate {
            healthy_for_seconds: 600,
            patience_seconds: 3600,
            failures_max: 0,
        }),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_starts_resumes_and_aborts_a_rollout() {
    let node = Node::start().await;
    let (_, token) = node.tenant("acme").await;
    let mut tenant = RolloutServiceClient::new(node.wire(Some(&token)));
    let mut admin = RolloutServiceClient::new(node.as_admin());
    let get = || mesh::RolloutServiceGetRequest { kind: kind() };
    let abort = || mesh::RolloutServiceAbortRequest { kind: kind() };
    let pause = || mesh::RolloutServicePauseRequest { kind: kind() };
    let resume = |failures_max| mesh::RolloutServiceResumeRequest {
        kind: kind(),
        failures_max,
    };
    for refused in [
        tenant.get(get()).await.unwrap_err(),
        tenant.start(wanted("1.3.0")).await.unwrap_err(),
        tenant.pause(pause()).await.unwrap_err(),
        tenant.resume(resume(None)).await.unwrap_err(),
        tenant.abort(abort()).await.unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    }
    assert_eq!(admin.get(get()).await.unwrap().into_inner().rollout, None);
    let refused = admin.abort(abort()).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused}");
    let refused = admin.start(wanted("latest")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");

    let started = admin.start(wanted("v1.3.0")).await.unwrap().into_inner();
    let started = started.rollout.unwrap();
    assert_eq!(started.state(), mesh::RolloutState::Running);
    assert_eq!(started.release.as_ref().unwrap().version, "1.3.0");
    assert!(!started.started_by.is_empty() && started.started_at.is_some());
    let shown = admin.get(get()).await.unwrap().into_inner().rollout;
    assert_eq!(shown, Some(started.clone()), "no firewall is there");
    let refused = admin.start(wanted("1.4.0")).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("MM-1806"), "{refused}");

    let paused = admin.pause(pause()).await.unwrap().into_inner();
    let paused = paused.rollout.unwrap();
    assert_eq!(paused.state(), mesh::RolloutState::Stopped);
    assert!(paused.reason.contains("has paused it"), "{}", paused.reason);
    let resumed = admin.resume(resume(Some(2))).await.unwrap().into_inner();
    let gate = resumed.rollout.unwrap().gate.unwrap();
    assert_eq!((gate.failures_max, gate.patience_seconds), (2, 3600));
    let aborted = admin.abort(abort()).await.unwrap().into_inner();
    assert_eq!(aborted.rollout.unwrap().release, started.release);
    assert_eq!(admin.get(get()).await.unwrap().into_inner().rollout, None);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_clears_the_release_of_the_site() {
    let node = Node::start().await;
    let (_, token) = node.tenant("acme").await;
    let mut tenant = RolloutServiceClient::new(node.wire(Some(&token)));
    let mut admin = RolloutServiceClient::new(node.as_admin());
    let kind = mesh::RolloutKind::Bmc.into();
    let clear = || mesh::RolloutServiceClearRequest { kind };
    let refused = tenant.clear(clear()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    let cleared = admin.clear(clear()).await.unwrap().into_inner();
    assert_eq!(cleared.release, None, "there is none");
    let unspecified = mesh::RolloutServiceClearRequest { kind: 0 };
    let refused = admin.clear(unspecified).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");

    let start = mesh::RolloutServiceStartRequest {
        kind,
        ..wanted("1.3.0")
    };
    admin.start(start).await.unwrap();
    let refused = admin.clear(clear()).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains("under way"), "{refused}");
    let get = mesh::RolloutServiceGetRequest { kind };
    let shown = admin.get(get).await.unwrap().into_inner();
    assert_eq!(shown.site_release, None, "the rollout is not done");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_agents_has_a_rollout_of_its_own() {
    let node = Node::start().await;
    let mut admin = RolloutServiceClient::new(node.as_admin());
    let kinds = [
        mesh::RolloutKind::Firewall,
        mesh::RolloutKind::Core,
        mesh::RolloutKind::Bmc,
        mesh::RolloutKind::Pixie,
    ];
    for kind in kinds {
        let start = mesh::RolloutServiceStartRequest {
            kind: kind.into(),
            ..wanted("1.3.0")
        };
        let started = admin.start(start).await.unwrap().into_inner();
        assert_eq!(started.rollout.unwrap().kind(), kind);
    }
    for kind in kinds {
        let kind = kind.into();
        let get = mesh::RolloutServiceGetRequest { kind };
        let shown = admin.get(get).await.unwrap().into_inner();
        assert_eq!(shown.rollout.unwrap().kind, kind);
        let abort = mesh::RolloutServiceAbortRequest { kind };
        admin.abort(abort).await.unwrap();
    }
    node.stop().await;
}
