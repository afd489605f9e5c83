//! What happens to calls.

use std::sync::atomic::Ordering;
use std::time::Duration;

use proto_identity::{Roots, tls};
use proto_link::*;
use proto_mesh::*;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::fixture::*;

/// A server, and a core agent's client of it.
pub fn setup() -> (Ca, Server, MeshClient) {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let core = ca.issue(CORE, HOUR);
    let mesh = client(server.addr, Roots::Certificates(ca.roots()), Some(&core));
    (ca, server, mesh)
}

#[tokio::test]
async fn a_stream_carries_each_state_and_ends() {
    let (_ca, server, mesh) = setup();
    let switch = SwitchServiceClient::from(mesh);
    let mut stream = switch
        .desired(SwitchDesiredRequest::default())
        .await
        .unwrap();
    for generation in 1..20 {
        assert_eq!(
            stream.message().await.unwrap().unwrap().generation,
            generation
        );
        server.gate.desired.send_replace(generation + 1);
    }
    server.gate.desired.send_replace(u64::MAX);
    while stream.message().await.unwrap().is_some() {}
    assert!(stream.message().await.unwrap().is_none());
}

#[tokio::test]
async fn a_session_whose_task_panics_is_closed() {
    let (_ca, server, mesh) = setup();
    let switch = SwitchServiceClient::from(mesh.clone());
    let mut stream = switch
        .desired(SwitchDesiredRequest::default())
        .await
        .unwrap();
    stream.message().await.unwrap();
    server.revoked.panic_once();
    // The stream ends instead of staying silent, and the next one is in another session.
    let ended = timeout(PATIENCE, stream.message()).await;
    assert!(ended.is_ok_and(|message| message.is_err()));
    let again = switch.desired(SwitchDesiredRequest::default());
    let mut again = timeout(PATIENCE, again).await.unwrap().unwrap();
    assert!(again.message().await.unwrap().is_some());
    eventually("one session", || {
        server.presence.stats().sessions.values().sum::<u64>() == 1
    })
    .await;
}

#[tokio::test]
async fn dropping_a_stream_drops_its_handler() {
    let (_ca, mut server, mesh) = setup();
    let switch = SwitchServiceClient::from(mesh);
    let mut stream = switch
        .desired(SwitchDesiredRequest::default())
        .await
        .unwrap();
    stream.message().await.unwrap();
    drop(stream);
    timeout(PATIENCE, server.gone.recv())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn dropping_a_call_drops_its_handler() {
    let (_ca, mut server, mesh) = setup();
    let switch = SwitchServiceClient::from(mesh);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { switch.register(SwitchRegisterRequest::default()).await });
    eventually("the call arrives", || {
        server.gate.entered.load(Ordering::SeqCst) == 1
    })
    .await;
    tasks.shutdown().await;
    timeout(PATIENCE, server.gone.recv())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_deadline_ends_the_call_on_both_sides() {
    let (_ca, mut server, mesh) = setup();
    let switch = SwitchServiceClient::from(mesh).with_deadline(Duration::from_millis(300));
    let e = switch
        .register(SwitchRegisterRequest::default())
        .await
        .unwrap_err();
    assert_eq!(e.code(), Code::DeadlineExceeded);
    timeout(PATIENCE, server.gone.recv())
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_request_too_long_is_refused_here_and_there() {
    let (ca, server, mesh) = setup();
    let long = |len: usize| SwitchReport {
        error: "x".repeat(len),
        ..Default::default()
    };
    let switch = SwitchServiceClient::from(mesh);
    switch
        .report(long(limits::REQUEST_LEN_MAX - 16))
        .await
        .unwrap();
    let e = switch
        .report(long(limits::REQUEST_LEN_MAX))
        .await
        .unwrap_err();
    assert_eq!(e.code(), Code::ResourceExhausted);
    // Without a certificate less is allowed; only the server knows.
    let nobody = client(server.addr, Roots::Certificates(ca.roots()), None);
    let join = JoinRequest {
        mac: "x".repeat(64 * 1024),
        ..Default::default()
    };
    let e = EnrolServiceClient::from(nobody)
        .join(join)
        .await
        .unwrap_err();
    assert_eq!(e.code(), Code::ResourceExhausted);
}

/// As many as may be in flight, over and over, and some more that do not starve beside them.
#[tokio::test]
async fn callers_beyond_the_bound_get_their_turn() {
    let (ca, server, mesh) = setup();
    let bound = usize::try_from(limits::STREAMS_PER_SESSION_MAX).unwrap();
    let over = tokio_util::sync::CancellationToken::new();
    let mut tasks = JoinSet::new();
    for _ in 0..bound {
        let (switch, over) = (SwitchServiceClient::from(mesh.clone()), over.clone());
        tasks.spawn(async move {
            while !over.is_cancelled() {
                switch.report(SwitchReport::default()).await.unwrap();
            }
        });
    }
    let mut more = JoinSet::new();
    for _ in 0..bound {
        let switch = SwitchServiceClient::from(mesh.clone());
        more.spawn(async move { switch.report(SwitchReport::default()).await });
    }
    while let Some(done) = more.join_next().await {
        done.unwrap().unwrap();
    }
    over.cancel();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let nobody = client(server.addr, Roots::Certificates(ca.roots()), None);
    let mut joins = JoinSet::new();
    for _ in 0..20 {
        let enrol = EnrolServiceClient::from(nobody.clone());
        joins.spawn(async move { enrol.join(JoinRequest::default()).await });
    }
    while let Some(done) = joins.join_next().await {
        done.unwrap().unwrap();
    }
}

#[tokio::test]
async fn calls_beyond_the_bound_wait() {
    let (_ca, server, mesh) = setup();
    let mut tasks = JoinSet::new();
    let bound = usize::try_from(limits::STREAMS_PER_SESSION_MAX).unwrap();
    for _ in 0..bound {
        let switch = SwitchServiceClient::from(mesh.clone());
        tasks.spawn(async move { switch.register(SwitchRegisterRequest::default()).await });
    }
    eventually("all are in", || {
        server.gate.entered.load(Ordering::SeqCst) == bound
    })
    .await;
    let one_more = SwitchServiceClient::from(mesh).with_deadline(Duration::from_millis(200));
    let e = one_more.report(SwitchReport::default()).await.unwrap_err();
    assert_eq!(e.code(), Code::DeadlineExceeded);
    server.gate.permits.add_permits(bound);
    while let Some(done) = tasks.join_next().await {
        done.unwrap().unwrap();
    }
}

#[tokio::test]
async fn renewal_loses_no_call() {
    let (ca, server, mesh) = setup();
    let long = SwitchServiceClient::from(mesh.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        long.register(SwitchRegisterRequest::default())
            .await
            .map(drop)
    });
    eventually("the long call arrives", || {
        server.gate.entered.load(Ordering::SeqCst) == 1
    })
    .await;
    let stop = tokio_util::sync::CancellationToken::new();
    for _ in 0..4 {
        let (switch, stop) = (SwitchServiceClient::from(mesh.clone()), stop.clone());
        tasks.spawn(async move {
            while !stop.is_cancelled() {
                switch.report(SwitchReport::default()).await?;
            }
            Ok(())
        });
    }
    // A stream ends when its session is replaced: that shows each replacement.
    for _ in 0..5 {
        let switch = SwitchServiceClient::from(mesh.clone());
        let mut stream = switch
            .desired(SwitchDesiredRequest::default())
            .await
            .unwrap();
        stream.message().await.unwrap();
        let fresh = ca.issue(CORE, HOUR);
        let roots = Roots::Certificates(ca.roots());
        mesh.replace_tls(tls::client_config(roots, Some(&fresh), ALPN).unwrap())
            .unwrap();
        if server.gate.permits.available_permits() == 0 {
            // The old session waits for the long call.
            server.gate.permits.add_permits(1);
        }
        let over = timeout(PATIENCE, stream.message()).await.unwrap();
        assert_eq!(over.unwrap_err().code(), Code::Unavailable);
        assert_eq!(*mesh.state().borrow(), SessionState::Up);
    }
    stop.cancel();
    while let Some(done) = tasks.join_next().await {
        done.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_call_waits_for_control_to_come_back() {
    let ca = Ca::new();
    let node = ca.issue("spiffe://mesh.test/node/1", HOUR);
    let server = Server::start(&ca, &node);
    let addr = server.addr;
    let core = ca.issue(CORE, HOUR);
    let mesh = client(addr, Roots::Certificates(ca.roots()), Some(&core));
    until(&mesh, |s| *s == SessionState::Up).await;
    server.stop().await;
    until(&mesh, |s| matches!(s, SessionState::Down(_))).await;
    let switch = SwitchServiceClient::from(mesh.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { switch.report(SwitchReport::default()).await });
    let _server = Server::start_at(&ca, &node, addr);
    let done = timeout(PATIENCE, tasks.join_next()).await.unwrap().unwrap();
    done.unwrap().unwrap();
}

#[tokio::test]
async fn another_address_is_tried() {
    let ca = Ca::new();
    let node = ca.issue("spiffe://mesh.test/node/1", HOUR);
    let gone = Server::start(&ca, &node);
    let dead = gone.addr.to_string();
    gone.stop().await;
    let server = Server::start(&ca, &node);
    let tls = tls::client_config(
        Roots::Certificates(ca.roots()),
        Some(&ca.issue(CORE, HOUR)),
        ALPN,
    )
    .unwrap();
    let addresses = vec!["not a host:1".to_owned(), dead, server.addr.to_string()];
    let mesh = MeshClient::new(MeshClientConfig::new(addresses, tls)).unwrap();
    SwitchServiceClient::from(mesh)
        .report(SwitchReport::default())
        .await
        .unwrap();
}

#[tokio::test]
async fn an_agent_that_restarts_often_replaces_its_oldest_session() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue("spiffe://mesh.test/node/1", HOUR));
    let core = ca.issue(CORE, HOUR);
    let roots = Roots::Certificates(ca.roots());
    let mut open = Vec::new();
    for _ in 0..limits::SESSIONS_PER_PEER_MAX {
        let mesh = client(server.addr, roots.clone(), Some(&core));
        until(&mesh, |s| *s == SessionState::Up).await;
        open.push(mesh);
    }
    let mut oldest = open[0].state();
    let further = client(server.addr, roots, Some(&core));
    SwitchServiceClient::from(further)
        .report(SwitchReport::default())
        .await
        .unwrap();
    let down = oldest.wait_for(|s| matches!(s, SessionState::Down(_)));
    drop(timeout(PATIENCE, down).await.unwrap().unwrap());
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
}

#[test]
fn a_patient_client_bears_a_silent_node_for_longer() {
    let (killed, ours) = (runtime(), runtime());
    let ca = Ca::new();
    let node = ca.issue("spiffe://mesh.test/node/1", HOUR);
    let core = ca.issue(CORE, HOUR);
    let server = killed.block_on(async { Server::start(&ca, &node) });
    ours.block_on(async {
        let roots = || Roots::Certificates(ca.roots());
        let tls = tls::client_config(roots(), Some(&core), ALPN).unwrap();
        let prompt = client(server.addr, roots(), Some(&core));
        let patient = MeshClient::new(MeshClientConfig {
            keepalive: Keepalive::Patient,
            ..MeshClientConfig::new(vec![server.addr.to_string()], tls)
        });
        let patient = patient.unwrap();
        for mesh in [&prompt, &patient] {
            until(mesh, |s| *s == SessionState::Up).await;
        }
        killed.shutdown_background();
        let mut state = prompt.state();
        let down = state.wait_for(|s| matches!(s, SessionState::Down(_)));
        drop(
            timeout(limits::PATIENT_IDLE_TIMEOUT, down)
                .await
                .unwrap()
                .unwrap(),
        );
        assert_eq!(*patient.state().borrow(), SessionState::Up);
    });
}

#[test]
fn a_control_that_was_killed_is_noticed_at_the_next_call() {
    let (killed, ours) = (runtime(), runtime());
    let ca = Ca::new();
    let node = ca.issue("spiffe://mesh.test/node/1", HOUR);
    let core = ca.issue(CORE, HOUR);
    let server = killed.block_on(async { Server::start(&ca, &node) });
    let addr = server.addr;
    ours.block_on(async {
        let mesh = client(addr, Roots::Certificates(ca.roots()), Some(&core));
        until(&mesh, |s| *s == SessionState::Up).await;
        // Nothing says goodbye: its tasks just stop.
        killed.shutdown_background();
        drop(server);
        let _server = loop {
            // The socket goes when the last task is gone.
            if std::net::UdpSocket::bind(addr).is_ok() {
                break Server::start_at(&ca, &node, addr);
            }
            tokio::task::yield_now().await;
        };
        let began = tokio::time::Instant::now();
        // The first call goes into the old session and finds it gone; no idle timeout passes.
        let switch = SwitchServiceClient::from(mesh);
        if let Err(e) = switch.report(SwitchReport::default()).await {
            assert_eq!(e.code(), Code::Unavailable);
            switch.report(SwitchReport::default()).await.unwrap();
        }
        assert!(
            began.elapsed() < limits::IDLE_TIMEOUT / 3,
            "{:?}",
            began.elapsed()
        );
    });
}
