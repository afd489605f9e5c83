//! Drops reach a server that speaks as the published one does, and wait while it is away.
#![allow(clippy::unwrap_used, reason = "a test's helpers")]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agents_firewall::config::DroptailerConfig;
use agents_firewall::drops::droptailer::{PushedDrop, send_drops};
use agents_firewall::drops::{DropEvent, DropLog, DropRecord};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::http::{HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

const DEADLINE: Duration = Duration::from_secs(60);

/// Writes an authority, and certificates with keys of the server and of the client.
fn write_certificates(dir: &Path) {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(dir.join("ca.crt"), authority.pem()).unwrap();
    for (file, name) in [("server", "droptailer"), ("tls", "client")] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &authority).unwrap();
        std::fs::write(dir.join(format!("{file}.crt")), certificate.pem()).unwrap();
        std::fs::write(dir.join(format!("{file}.key")), key.serialize_pem()).unwrap();
    }
}

fn acceptor(dir: &Path) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let one = |file: &str| CertificateDer::from_pem_file(dir.join(file)).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(one("ca.crt")).unwrap();
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let key = PrivateKeyDer::from_pem_file(dir.join("server.key")).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients.build().unwrap())
        .with_single_cert(vec![one("server.crt")], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

/// Serves one connection.
async fn serve(listener: &TcpListener, tls: &TlsAcceptor, got: &mpsc::Sender<PushedDrop>) {
    let (stream, _) = listener.accept().await.unwrap();
    let stream = TokioIo::new(tls.accept(stream).await.unwrap());
    let answer = |request: Request<Incoming>| {
        let got = got.clone();
        async move {
            assert_eq!(request.uri().path(), "/proto.Droptailer/Push");
            let body = request.into_body().collect().await.unwrap().to_bytes();
            got.send(PushedDrop::decode(&body[5..]).unwrap())
                .await
                .unwrap();
            let trailers = HeaderMap::from_iter([(
                "grpc-status".parse().unwrap(),
                HeaderValue::from_static("0"),
            )]);
            let empty = Full::new(Bytes::from_static(&[0; 5]));
            let body = empty.with_trailers(async { Some(Ok(trailers)) });
            let mut response = Response::new(body);
            let kind = HeaderValue::from_static("application/grpc");
            response.headers_mut().insert("content-type", kind);
            Ok::<_, std::convert::Infallible>(response)
        }
    };
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    // The other side ends it.
    server
        .serve_connection(stream, service_fn(answer))
        .await
        .ok();
}

fn record(port: u16, is_drop: bool) -> DropEvent {
    DropEvent::Packet(DropRecord {
        time_ms: 1_700_000_000_123,
        is_drop,
        input: "vrf42".to_owned(),
        output: "vrf104".to_owned(),
        source: "10.0.0.1".parse().unwrap(),
        destination: "192.0.2.7".parse().unwrap(),
        length: 60,
        ttl: 63,
        protocol: 6,
        source_port: Some(40_000),
        destination_port: Some(port),
        icmp_type: None,
    })
}

#[tokio::test]
async fn drops_are_pushed_in_order_and_wait_for_the_server() {
    let dir = tempfile::tempdir().unwrap();
    write_certificates(dir.path());
    let tls = acceptor(dir.path());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    // Nobody is there at first.
    drop(listener);
    let config = DroptailerConfig {
        enabled: true,
        address: address.to_string(),
        ca_certificate: dir.path().join("ca.crt"),
        client_certificate: dir.path().join("tls.crt"),
        client_key: dir.path().join("tls.key"),
    };
    let (log, stop) = (Arc::new(DropLog::default()), CancellationToken::new());
    let mut tasks = JoinSet::new();
    tasks.spawn(send_drops(config, Arc::clone(&log), stop.clone()));
    // It listens to the log from its first step on.
    tokio::task::yield_now().await;
    log.add(record(1, true));
    log.add(record(2, false));
    log.add(record(3, true));
    let listener = TcpListener::bind(address).await.unwrap();
    let (sender, mut got) = mpsc::channel::<PushedDrop>(16);
    tokio::time::timeout(DEADLINE, async {
        let receive = async {
            let first = got.recv().await.unwrap();
            assert_eq!(first.timestamp.unwrap().seconds, 1_700_000_000);
            assert_eq!(first.timestamp.unwrap().nanos, 123_000_000);
            for (name, value) in [
                ("ACTION", "Drop"),
                ("IN", "vrf42"),
                ("OUT", "vrf104"),
                ("SRC", "10.0.0.1"),
                ("DST", "192.0.2.7"),
                ("PROTO", "TCP"),
                ("SPT", "40000"),
                ("DPT", "1"),
                ("LEN", "60"),
            ] {
                assert_eq!(
                    first.fields.get(name).map(String::as_str),
                    Some(value),
                    "{name}"
                );
            }
            // The accepted packet is not sent.
            assert_eq!(got.recv().await.unwrap().fields["DPT"], "3");
        };
        tokio::select! {
            () = receive => {}
            () = serve(&listener, &tls, &sender) => panic!("the connection ended"),
        }
        // That connection is gone now: the next drop comes over another one. The last one comes again
        // if its answer did not.
        log.add(record(4, true));
        let receive = async {
            loop {
                let next = got.recv().await.unwrap();
                if next.fields["DPT"] == "4" {
                    break;
                }
                assert_eq!(next.fields["DPT"], "3");
            }
        };
        tokio::select! {
            () = receive => {}
            () = serve(&listener, &tls, &sender) => panic!("the connection ended"),
        }
    })
    .await
    .unwrap();
    stop.cancel();
    tasks.join_next().await.unwrap().unwrap();
}
