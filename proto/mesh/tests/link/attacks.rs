//! What attackers and wrong clocks may try at the link.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proto_identity::{Roots, tls};
use proto_link::limits::{
    ANONYMOUS_BUSY, ANONYMOUS_FIRST_CALL, ANONYMOUS_SESSION_LIFE,
    ANONYMOUS_SESSIONS_PER_ADDRESS_MAX, HANDSHAKE_TIME_MAX, HANDSHAKES_PER_ADDRESS_MAX,
    REQUEST_LEN_MAX, SESSIONS_PER_PEER_MAX, STREAMS_PER_SESSION_MAX,
};
use proto_link::*;
use proto_mesh::*;
use quinn::{Connection, Endpoint};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::fixture::*;
use crate::streams::{call, connect, quic_config};

const NODE: &str = "spiffe://mesh.test/node/1";
const MINUTE_MS: u64 = 60_000;
/// Ten years and a day: an authority lives for ten years.
const AGES_MS: u64 = (3650 + 1) * 24 * 3_600_000;

fn is_refused(state: &SessionState) -> bool {
    matches!(state, SessionState::Down(Some(DialError::Refused { .. })))
}

fn is_untrusted(state: &SessionState) -> bool {
    matches!(state, SessionState::Down(Some(DialError::Untrusted { .. })))
}

async fn reports(server: &Server, ca: &Ca, agent: &proto_identity::Credential) {
    let mesh = client(server.addr, Roots::Certificates(ca.roots()), Some(agent));
    let switches = SwitchServiceClient::from(mesh);
    switches.report(SwitchReport::default()).await.unwrap();
}

#[tokio::test]
async fn clocks_may_differ_by_ten_minutes() {
    let ca = Ca::made_at(now_ms() - 24 * 60 * MINUTE_MS);
    let now = now_ms();
    for (node, agent) in [
        (now + 10 * MINUTE_MS, now + 10 * MINUTE_MS),
        (now - 10 * MINUTE_MS, now - 10 * MINUTE_MS),
        (now + 10 * MINUTE_MS, now - 10 * MINUTE_MS),
    ] {
        let server = Server::start(&ca, &ca.issue_at(NODE, node));
        reports(&server, &ca, &ca.issue_at(CORE, agent)).await;
    }
    let late = now + 20 * MINUTE_MS;
    let server = Server::start(&ca, &ca.issue_at(NODE, now));
    let roots = || Roots::Certificates(ca.roots());
    let early = client(server.addr, roots(), Some(&ca.issue_at(CORE, late)));
    until(&early, is_refused).await;
    let server = Server::start(&ca, &ca.issue_at(NODE, late));
    let mesh = client(server.addr, roots(), Some(&ca.issue_at(CORE, now)));
    until(&mesh, is_untrusted).await;
}

#[tokio::test]
async fn an_authority_that_has_ended_is_refused_by_both_sides() {
    let (old, good) = (Ca::made_at(now_ms() - AGES_MS), Ca::new());
    let server = Server::start(&good, &good.issue(NODE, HOUR));
    let roots = Roots::Certificates(good.roots());
    let mesh = client(server.addr, roots, Some(&old.issue(CORE, HOUR)));
    until(&mesh, is_refused).await;
    let server = Server::start(&old, &old.issue(NODE, HOUR));
    let roots = Roots::Certificates(old.roots());
    let mesh = client(server.addr, roots, Some(&old.issue(CORE, HOUR)));
    until(&mesh, is_untrusted).await;
}

#[tokio::test]
async fn an_agent_cannot_name_others() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue(NODE, HOUR));
    let agent = ca.issue(CORE, HOUR);
    let other = "spiffe://mesh.test/partition/p1/core/leaf2";
    let forged = ca.issue_by_agent(&agent, other);
    let mesh = client(server.addr, Roots::Certificates(ca.roots()), Some(&forged));
    until(&mesh, is_refused).await;
}

/// A session without a certificate from an address of this machine.
async fn stranger(ca: &Ca, from: &str, server: SocketAddr) -> Connection {
    let roots = Roots::Certificates(ca.roots());
    let tls = tls::client_config(roots, None, ALPN).unwrap();
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    let endpoint = Endpoint::client(format!("{from}:0").parse().unwrap()).unwrap();
    let config = quinn::ClientConfig::new(Arc::new(crypto));
    let connecting = endpoint.connect_with(config, server, "metalmesh").unwrap();
    connecting.await.unwrap()
}

/// `Ok` if the server opens the session, else the reason.
async fn is_let_in(session: &Connection) -> Result<(), String> {
    let hello = timeout(PATIENCE, session.accept_uni()).await.unwrap();
    hello.map(drop).map_err(|refusal| refusal.to_string())
}

#[tokio::test]
async fn a_flood_of_callers_without_certificates_leaves_room_to_others() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue(NODE, HOUR));
    let mut strangers = Vec::new();
    while strangers.len() < ANONYMOUS_SESSIONS_PER_ADDRESS_MAX {
        let session = stranger(&ca, "127.0.0.1", server.addr).await;
        is_let_in(&session).await.unwrap();
        // A call that begins, so that the session stays for as long as it may.
        let (mut send, answer) = session.open_bi().await.unwrap();
        send.write_all(&[0]).await.unwrap();
        strangers.push((session, send, answer));
    }
    let one_more = client(server.addr, Roots::Certificates(ca.roots()), None);
    let sent_away = until(&one_more, |s| matches!(s, SessionState::Down(Some(_)))).await;
    let SessionState::Down(Some(DialError::Busy { retry_in, .. })) = &sent_away else {
        panic!("{sent_away:?}");
    };
    assert_eq!(*retry_in, ANONYMOUS_BUSY);
    // Others join, and who has a certificate comes in from any address.
    for host in 2..=9 {
        let other = stranger(&ca, &format!("127.0.0.{host}"), server.addr).await;
        is_let_in(&other).await.unwrap();
    }
    reports(&server, &ca, &ca.issue(CORE, HOUR)).await;
}

#[tokio::test]
async fn a_caller_without_a_certificate_calls_soon_or_loses_its_place() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue(NODE, HOUR));
    let silent = stranger(&ca, "127.0.0.1", server.addr).await;
    is_let_in(&silent).await.unwrap();
    let began = Instant::now();
    let reason = timeout(ANONYMOUS_SESSION_LIFE, silent.closed()).await;
    reason.unwrap();
    assert!(began.elapsed() >= ANONYMOUS_FIRST_CALL / 2);
    assert!(
        began.elapsed() < ANONYMOUS_FIRST_CALL * 2,
        "{:?}",
        began.elapsed()
    );
}

/// A client's first packet: a long header, version 1, and bytes that no key opens.
fn opening(number: u16) -> Vec<u8> {
    let mut packet = vec![0xc3, 0, 0, 0, 1, 8];
    packet.extend_from_slice(&[0xa5; 6]);
    packet.extend_from_slice(&number.to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x44, 0x9e]);
    packet.resize(1200, 0x5a);
    packet
}

#[tokio::test]
async fn half_open_handshakes_shut_nobody_out() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue(NODE, HOUR));
    let flood = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for number in 0..10_000 {
        flood.send_to(&opening(number), server.addr).await.unwrap();
    }
    let began = Instant::now();
    reports(&server, &ca, &ca.issue(CORE, HOUR)).await;
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

/// Lets through what proves an address and nothing else that the server says: handshakes begin in
/// the name of another address and never end.
async fn half_way(front: UdpSocket, back: UdpSocket, server: SocketAddr) {
    let (mut packet, mut answer) = ([0; 2048], [0; 2048]);
    let mut caller = None;
    loop {
        tokio::select! {
            Ok((len, from)) = front.recv_from(&mut packet) => {
                caller = Some(from);
                back.send_to(&packet[..len], server).await.unwrap();
            }
            Ok(len) = back.recv(&mut answer) => {
                let is_retry = answer[0] & 0xf0 == 0xf0;
                if let Some(caller) = caller.filter(|_| is_retry) {
                    front.send_to(&answer[..len], caller).await.unwrap();
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open_handshakes_of_one_address_leave_places_to_others() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue(NODE, HOUR));
    let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let back = UdpSocket::bind("127.0.0.2:0").await.unwrap();
    let at = front.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(half_way(front, back, server.addr));
    let attacker = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = quic_config(
        &ca,
        &ca.issue("spiffe://mesh.test/partition/p1/core/leaf2", HOUR),
    );
    let dial = || {
        attacker
            .connect_with(config.clone(), at, "metalmesh")
            .unwrap()
    };
    let mut begun = Vec::new();
    let end = Instant::now() + PATIENCE;
    let count = |how| {
        let stats = server.presence.stats();
        let found = stats.handshakes.iter().find(|it| it.0 == how);
        usize::try_from(found.unwrap().1).unwrap()
    };
    while count(Handshake::Busy) == 0 {
        assert!(Instant::now() < end, "{:?}", server.presence.stats());
        // A few more than those that are under way.
        let under_way = server.presence.stats().handshakes_open;
        if begun.len() < under_way + count(Handshake::Late) + 16 {
            begun.push(dial());
        }
        tokio::task::yield_now().await;
    }
    let open = server.presence.stats().handshakes_open;
    assert!(open <= HANDSHAKES_PER_ADDRESS_MAX, "{open}");
    let began = Instant::now();
    reports(&server, &ca, &ca.issue(CORE, HOUR)).await;
    assert!(
        began.elapsed() < HANDSHAKE_TIME_MAX,
        "{:?}",
        began.elapsed()
    );
}

/// One agent with as many sessions and calls as it may have, each with the longest request there
/// is, and as many that promise one and do not send it.
#[tokio::test(flavor = "multi_thread")]
async fn frames_at_the_limit_leave_room_for_others() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue(NODE, HOUR));
    let roots = || Roots::Certificates(ca.roots());
    let greedy = ca.issue("spiffe://mesh.test/partition/p1/core/leaf2", HOUR);
    let over = CancellationToken::new();
    let mut tasks = JoinSet::new();
    for _ in 1..SESSIONS_PER_PEER_MAX {
        let mesh = client(server.addr, roots(), Some(&greedy));
        for _ in 0..STREAMS_PER_SESSION_MAX {
            let (switches, over) = (SwitchServiceClient::from(mesh.clone()), over.clone());
            tasks.spawn(over.run_until_cancelled_owned(async move {
                let error = "x".repeat(REQUEST_LEN_MAX - 16);
                loop {
                    let report = SwitchReport {
                        error: error.clone(),
                        ..SwitchReport::default()
                    };
                    switches.report(report).await.unwrap();
                }
            }));
        }
    }
    let (silent, _hello) = connect(&ca, &greedy, server.addr).await;
    let mut promised = Vec::new();
    for _ in 0..STREAMS_PER_SESSION_MAX {
        let (mut send, recv) = silent.open_bi().await.unwrap();
        let call = call();
        send.write_all(&call[..call.len() - 1]).await.unwrap();
        promised.push((send, recv));
    }
    let good = client(server.addr, roots(), Some(&ca.issue(CORE, HOUR)));
    let switches = SwitchServiceClient::from(good).with_deadline(PATIENCE);
    for _ in 0..20 {
        switches.report(SwitchReport::default()).await.unwrap();
    }
    over.cancel();
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}
