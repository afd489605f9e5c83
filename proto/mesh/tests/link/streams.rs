//! Calls that follow each other on one stream, and peers that know nothing of it.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use proto_identity::tls::NodeCertificate;
use proto_identity::{Credential, Roots, tls};
use proto_link::frame::{self, Header, Kind};
use proto_link::*;
use proto_mesh::*;
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use tokio::time::timeout;

use crate::calls::setup;
use crate::fixture::*;

const NODE: &str = "spiffe://mesh.test/node/1";

fn report() -> SwitchReport {
    SwitchReport {
        error: "none".into(),
        ..SwitchReport::default()
    }
}

/// The frames of a report with something in it.
pub fn call() -> Vec<u8> {
    let header = frame::encode_header(&Header {
        method: switch_service::REPORT.path,
        deadline_ms: 1000,
    });
    let message = frame::encode_message(&report(), 100);
    [header.unwrap(), message.unwrap()].concat()
}

/// What QUIC of an agent needs.
pub fn quic_config(ca: &Ca, credential: &Credential) -> quinn::ClientConfig {
    let roots = Roots::Certificates(ca.roots());
    let tls = tls::client_config(roots, Some(credential), ALPN).unwrap();
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
    quinn::ClientConfig::new(Arc::new(crypto))
}

/// A client that speaks frames itself.
pub async fn connect(
    ca: &Ca,
    credential: &Credential,
    server: SocketAddr,
) -> (Connection, Vec<u8>) {
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = quic_config(ca, credential);
    let connecting = endpoint.connect_with(config, server, "metalmesh").unwrap();
    let connection = connecting.await.unwrap();
    let mut hello = connection.accept_uni().await.unwrap();
    let hello = hello.read_to_end(100).await.unwrap();
    (connection, hello)
}

/// The frames of one answer.
async fn answer(recv: &mut RecvStream, arrived: &mut Bytes) -> Vec<(Kind, Bytes)> {
    let mut frames = Vec::new();
    loop {
        while let Some(frame) = frame::split_frame(arrived, 1000).unwrap() {
            let is_end = frame.0 == Kind::End;
            frames.push(frame);
            if is_end {
                return frames;
            }
        }
        let chunk = recv.read_chunk(1000, true).await.unwrap();
        let more = chunk.expect("more").bytes;
        *arrived = [&arrived[..], &more].concat().into();
    }
}

async fn asks(send: &mut SendStream, recv: &mut RecvStream, bytes: &[u8]) -> Vec<Kind> {
    send.write_all(bytes).await.unwrap();
    let mut arrived = Bytes::new();
    let frames = timeout(PATIENCE, answer(recv, &mut arrived)).await.unwrap();
    assert!(arrived.is_empty(), "nothing after the end");
    frames.into_iter().map(|(kind, _)| kind).collect()
}

#[tokio::test]
async fn calls_follow_each_other_on_one_stream() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue(NODE, HOUR));
    let (connection, hello) = connect(&ca, &ca.issue(CORE, HOUR), server.addr).await;
    assert_eq!(hello, [frame::VERSION, frame::KEEPS_STREAMS]);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    for _ in 0..3 {
        let kinds = asks(&mut send, &mut recv, &call()).await;
        assert_eq!(kinds, [Kind::Message, Kind::End]);
    }
    // A call that is refused ends the stream.
    let header = Header {
        method: "/no.Such/Method",
        deadline_ms: 1000,
    };
    let refused = frame::encode_header(&header).unwrap();
    let kinds = asks(&mut send, &mut recv, &refused).await;
    assert_eq!(kinds, [Kind::End]);
    let end = recv.read_to_end(10).await.unwrap();
    assert!(end.is_empty());
}

#[tokio::test]
async fn a_client_that_ends_its_streams_is_served() {
    let ca = Ca::new();
    let server = Server::start(&ca, &ca.issue(NODE, HOUR));
    let (connection, _) = connect(&ca, &ca.issue(CORE, HOUR), server.addr).await;
    for with_the_request in [true, false] {
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&call()).await.unwrap();
        if with_the_request {
            send.finish().unwrap();
        }
        let mut arrived = Bytes::new();
        let frames = timeout(PATIENCE, answer(&mut recv, &mut arrived)).await;
        assert_eq!(frames.unwrap().len(), 2);
        drop(send.finish());
        let end = timeout(PATIENCE, recv.read_to_end(10)).await;
        assert!(end.unwrap().unwrap().is_empty());
    }
}

/// A server of before: its hello is the version alone, and each stream is one call.
async fn old_server(endpoint: Endpoint, calls: usize) {
    let connection = endpoint.accept().await.unwrap().await.unwrap();
    let mut hello = connection.open_uni().await.unwrap();
    hello.write_all(&[frame::VERSION]).await.unwrap();
    hello.finish().unwrap();
    for _ in 0..calls {
        let (mut send, mut recv) = connection.accept_bi().await.unwrap();
        let whole = recv.read_to_end(1000).await.unwrap();
        assert_eq!(whole.len(), call().len(), "one call, and the end");
        let answer = frame::encode_message(&SwitchReportResponse {}, 10).unwrap();
        send.write_all(&answer).await.unwrap();
        send.write_all(&frame::encode_end(&Ok(()))).await.unwrap();
        send.finish().unwrap();
    }
    connection.closed().await;
}

#[tokio::test]
async fn a_server_that_ends_its_streams_is_called() {
    let ca = Ca::new();
    let own = NodeCertificate::new(&ca.issue(NODE, HOUR)).unwrap();
    let tls = tls::server_config(&ca.roots(), own, ALPN).unwrap();
    let crypto = quinn::crypto::rustls::QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    let endpoint = Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = endpoint.local_addr().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(old_server(endpoint, 5));
    let core = ca.issue(CORE, HOUR);
    let mesh = client(address, Roots::Certificates(ca.roots()), Some(&core));
    let switch = SwitchServiceClient::from(mesh.clone());
    for _ in 0..5 {
        switch.report(report()).await.unwrap();
    }
    mesh.close().await;
    tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn a_stream_of_answers_may_follow_a_call() {
    let (_ca, _server, mesh) = setup();
    let switches = SwitchServiceClient::from(mesh);
    switches.report(SwitchReport::default()).await.unwrap();
    let mut desired = switches
        .desired(SwitchDesiredRequest::default())
        .await
        .unwrap();
    let first = tokio::time::timeout(PATIENCE, desired.message()).await;
    assert_eq!(first.unwrap().unwrap().unwrap().generation, 1);
}
