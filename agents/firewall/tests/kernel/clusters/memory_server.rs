//! An API server in this process.
#![allow(
    clippy::disallowed_methods,
    reason = "a watch of a test's server lives as long as its connection"
)]

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use super::server::TOKEN;
use super::storage::{ResourcePath, Storage};

/// A body that is written piece by piece.
struct Pieces(mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Key and certificate of the server, which is its own authority.
pub(crate) struct ServerKey {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) pem: String,
    key: Vec<u8>,
}

impl ServerKey {
    pub(crate) fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let certificate = rcgen::CertificateParams::new(names).unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        Self {
            certificate: certificate.der().clone(),
            pem: certificate.pem(),
            key: key.serialize_der(),
        }
    }

    fn acceptor(&self) -> TlsAcceptor {
        let key = PrivateKeyDer::try_from(self.key.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

/// Serves until its future is dropped. Then every connection is broken.
pub(crate) async fn serve(
    listener: TcpListener,
    key: Arc<ServerKey>,
    storage: Arc<Mutex<Storage>>,
) {
    let acceptor = key.acceptor();
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let acceptor = acceptor.clone();
        let storage = Arc::clone(&storage);
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request| answer(request, Arc::clone(&storage)));
            let builder = auto::Builder::new(TokioExecutor::new());
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            // A client that breaks off is no failure of the test.
            drop(connection.await);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    storage: Arc<Mutex<Storage>>,
) -> Result<Response<Pieces>, Infallible> {
    let bearer = format!("Bearer {TOKEN}");
    let authorization = request.headers().get(http::header::AUTHORIZATION);
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    if authorization.is_none_or(|value| value.as_bytes() != bearer.as_bytes()) {
        return Ok(whole(
            401,
            &json!({ "message": "who are you", "code": 401 }),
        ));
    }
    // For a test of rights.
    if path.contains("/namespaces/forbidden/") {
        return Ok(whole(
            403,
            &json!({ "message": "forbidden here", "code": 403 }),
        ));
    }
    let method = request.method().to_string();
    let bytes = request.into_body().collect().await;
    let bytes = bytes.map_or_else(|_| Bytes::new(), |body| body.to_bytes());
    if query.contains("watch=true") {
        return Ok(watch(&path, &query, storage));
    }
    let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let (status, value) = storage.lock().unwrap().request(&method, &path, &body);
    Ok(whole(status, &value))
}

fn whole(status: u16, value: &Value) -> Response<Pieces> {
    let (sender, receiver) = mpsc::channel(1);
    sender.try_send(Bytes::from(value.to_string())).unwrap();
    let response = Response::builder().status(status);
    response.body(Pieces(receiver)).unwrap()
}

fn watch(path: &str, query: &str, storage: Arc<Mutex<Storage>>) -> Response<Pieces> {
    let (at, _) = ResourcePath::parse(path).unwrap();
    let parameter = |name: &str| {
        let mut all = query.split('&').filter_map(|pair| pair.split_once('='));
        all.find(|(own, _)| *own == name).map(|(_, value)| value)
    };
    let mut version: u64 = parameter("resourceVersion").unwrap().parse().unwrap();
    let (sender, receiver) = mpsc::channel(16);
    let mut changes = storage.lock().unwrap().version();
    changes.mark_changed();
    // It ends with the connection, whose body is the other end of the channel.
    tokio::spawn(async move {
        loop {
            tokio::select! {
                changed = changes.changed() => changed.unwrap(),
                () = sender.closed() => return,
            }
            let (events, newest, is_expired) = {
                let mut storage = storage.lock().unwrap();
                let (events, newest) = storage.events_after(&at, version);
                (events, newest, storage.take_expired())
            };
            if is_expired {
                let error = json!({ "type": "ERROR", "object": { "code": 410 } });
                drop(sender.send(Bytes::from(format!("{error}\n"))).await);
                return;
            }
            version = newest;
            for event in events {
                if sender
                    .send(Bytes::from(format!("{event}\n")))
                    .await
                    .is_err()
                {
                    return;
                }
            }
        }
    });
    Response::new(Pieces(receiver))
}
