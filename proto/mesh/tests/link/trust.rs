//! Who gets in and when a session ends.

use std::time::Duration;

use proto_identity::{Roots, sha256_hex};
use proto_link::*;
use proto_mesh::*;

use crate::fixture::*;

fn refused(state: &SessionState) -> bool {
    matches!(state, SessionState::Down(Some(DialError::Refused { .. })))
}

fn untrusted(state: &SessionState) -> bool {
    matches!(state, SessionState::Down(Some(DialError::Untrusted { .. })))
}

#[tokio::test]
async fn a_certificate_of_our_root_gets_in() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let mesh = client(
        server.addr,
        Roots::Certificates(ca.roots()),
        Some(&ca.issue(CORE, HOUR)),
    );
    SwitchServiceClient::from(mesh)
        .report(SwitchReport::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn an_anonymous_caller_may_only_enrol() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let pins = Roots::Sha256(vec![sha256_hex(ca.root.certificate())]);
    let mesh = client(server.addr, pins, None);
    let join = JoinRequest {
        ticket_id: "t".into(),
        ..Default::default()
    };
    let got = EnrolServiceClient::from(mesh.clone())
        .join(join)
        .await
        .unwrap();
    assert_eq!(got.identity, "t");
    let e = SwitchServiceClient::from(mesh.clone())
        .report(SwitchReport::default())
        .await;
    assert_eq!(e.unwrap_err().code(), Code::Unauthenticated);
    // A method that this server does not have looks the same.
    let e = BootServiceClient::from(mesh)
        .seen(BootSeenRequest::default())
        .await;
    assert_eq!(e.unwrap_err().code(), Code::Unauthenticated);
}

#[tokio::test]
async fn a_node_that_does_not_lead_sends_sessions_on() {
    let ca = Ca::new();
    let any = || "127.0.0.1:0".parse().unwrap();
    let node = |n| ca.issue(&format!("spiffe://mesh.test/node/{n}"), HOUR);
    let gates = [true, false].map(tokio::sync::watch::Sender::new);
    let [first, second] = [0, 1].map(|n| {
        let open = Some(gates[n].subscribe());
        Server::start_gated(&ca, &node(n + 1), any(), open)
    });
    let roots = || Roots::Certificates(ca.roots());
    let tls = proto_identity::tls::client_config(roots(), Some(&ca.issue(CORE, HOUR)), ALPN);
    let mesh = MeshClient::new(MeshClientConfig::new(
        vec![second.addr.to_string(), first.addr.to_string()],
        tls.unwrap(),
    ));
    let mesh = mesh.unwrap();
    let switches = SwitchServiceClient::from(mesh.clone());
    switches.report(SwitchReport::default()).await.unwrap();
    // Leadership moves: the session does, too.
    gates[0].send_replace(false);
    gates[1].send_replace(true);
    until(&mesh, |state| *state != SessionState::Up).await;
    until(&mesh, |state| *state == SessionState::Up).await;
    switches.report(SwitchReport::default()).await.unwrap();
    // Whoever has no certificate yet is served anywhere.
    let join = JoinRequest {
        ticket_id: "t".into(),
        ..Default::default()
    };
    let anonymous = EnrolServiceClient::from(client(first.addr, roots(), None));
    anonymous.join(join).await.unwrap();
}

#[tokio::test]
async fn a_status_keeps_its_code_and_words() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let mesh = client(server.addr, Roots::Certificates(ca.roots()), None);
    let join = JoinRequest {
        ticket_id: "bad".into(),
        ..Default::default()
    };
    let e = EnrolServiceClient::from(mesh).join(join).await.unwrap_err();
    let want = LinkStatus::permission_denied("no such ticket").with_catalogue(1501);
    assert_eq!(e, want);
}

#[tokio::test]
async fn a_certificate_of_another_root_is_refused() {
    let (ca, other) = (Ca::new(), Ca::new());
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let stranger = other.issue(CORE, HOUR);
    let mesh = client(
        server.addr,
        Roots::Certificates(ca.roots()),
        Some(&stranger),
    );
    until(&mesh, refused).await;
    let quick = SwitchServiceClient::from(mesh).with_deadline(Duration::from_millis(50));
    let e = quick.report(SwitchReport::default()).await.unwrap_err();
    assert_eq!(e.code(), Code::Unavailable);
    assert!(e.message().contains("refuses our certificate"), "{e}");
}

#[tokio::test]
async fn a_certificate_that_has_ended_is_refused() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let ended = ca.issue_ended(CORE);
    let mesh = client(server.addr, Roots::Certificates(ca.roots()), Some(&ended));
    until(&mesh, refused).await;
}

#[tokio::test]
async fn another_trust_domain_is_refused() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let foreign = ca.issue("spiffe://other.test/partition/p1/core/leaf1", HOUR);
    let mesh = client(server.addr, Roots::Certificates(ca.roots()), Some(&foreign));
    until(&mesh, refused).await;
}

#[tokio::test]
async fn a_node_certificate_cannot_call() {
    let ca = Ca::new();
    let node = ca.issue("spiffe://mesh.test/node/1", HOUR);
    let server = Server::start(&ca, &node);
    let mesh = client(server.addr, Roots::Certificates(ca.roots()), Some(&node));
    until(&mesh, refused).await;
}

#[tokio::test]
async fn only_nodes_of_pinned_roots_are_trusted() {
    let (ca, other) = (Ca::new(), Ca::new());
    for (case, node) in [
        (
            "another root",
            other.issue("spiffe://mesh.test/node/1", HOUR),
        ),
        ("an agent", ca.issue(CORE, HOUR)),
        (
            "a node by the agents' intermediate",
            ca.issue_crossed("spiffe://mesh.test/node/1"),
        ),
        ("ended", ca.issue_ended("spiffe://mesh.test/node/1")),
    ] {
        let server = Server::start(&ca, &node);
        let pins = Roots::Sha256(vec![sha256_hex(ca.root.certificate())]);
        for roots in [Roots::Certificates(ca.roots()), pins] {
            let mesh = client(server.addr, roots, None);
            let state = until(&mesh, |s| matches!(s, SessionState::Down(Some(_)))).await;
            assert!(untrusted(&state), "{case}: {state:?}");
        }
    }
}

#[tokio::test]
async fn a_session_ends_with_its_certificate() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let brief = ca.issue(CORE, Duration::from_secs(2));
    let mesh = client(server.addr, Roots::Certificates(ca.roots()), Some(&brief));
    let mut stream = SwitchServiceClient::from(mesh.clone())
        .desired(SwitchDesiredRequest::default())
        .await
        .unwrap();
    assert!(stream.message().await.unwrap().is_some());
    let over = tokio::time::timeout(PATIENCE, stream.message())
        .await
        .unwrap();
    assert_eq!(over.unwrap_err().code(), Code::Unavailable);
    until(&mesh, refused).await;
}

#[tokio::test]
async fn a_revoked_identity_loses_its_session() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let core = ca.issue(CORE, HOUR);
    let mesh = client(server.addr, Roots::Certificates(ca.roots()), Some(&core));
    until(&mesh, |s| *s == SessionState::Up).await;
    server.revoked.add(core.key.fingerprint());
    until(&mesh, |s| {
        matches!(s, SessionState::Down(Some(DialError::Revoked { .. })))
    })
    .await;
    let quick = SwitchServiceClient::from(mesh).with_deadline(Duration::from_millis(300));
    quick.report(SwitchReport::default()).await.unwrap_err();
}

#[test]
fn each_method_admits_its_callers_only() {
    let (gone, _) = tokio::sync::mpsc::unbounded_channel();
    let fake = Fake(std::sync::Arc::new(Gate {
        permits: tokio::sync::Semaphore::new(0),
        entered: 0.into(),
        desired: tokio::sync::watch::Sender::new(0),
        gone,
    }));
    let router = Router::new()
        .add(EnrolServiceServer::new(fake.clone()))
        .add(SwitchServiceServer::new(fake));
    let kinds = [
        CallerKind::Anonymous,
        CallerKind::Core,
        CallerKind::Bmc,
        CallerKind::Pixie,
        CallerKind::Machine,
        CallerKind::ProjectMachine,
        CallerKind::Node,
        CallerKind::Peer,
    ];
    let mut checked = 0;
    for spec in router.methods() {
        for kind in kinds {
            let admitted = router.admit(spec.path, kind).is_ok();
            assert_eq!(
                admitted,
                spec.callers.contains(&kind),
                "{} {kind:?}",
                spec.path
            );
            checked += 1;
        }
    }
    assert_eq!(checked, 6 * kinds.len());
    // Over the whole contract: nobody without a certificate but to enrol, and never a node.
    for spec in METHODS {
        let enrol = [".EnrolService/", ".NodeService/"]
            .iter()
            .any(|service| spec.path.contains(service));
        assert_eq!(
            spec.callers.contains(&CallerKind::Anonymous),
            enrol,
            "{}",
            spec.path
        );
        for kind in [CallerKind::Node, CallerKind::Peer] {
            assert!(!spec.callers.contains(&kind), "{}", spec.path);
        }
    }
    assert_eq!(METHODS.len(), 29);
}
