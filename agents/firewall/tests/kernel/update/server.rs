//! A server of releases, by TLS.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::namespace::Namespace;

/// Port of the server; its network namespace has no other one there.
const PORT: u16 = 8443;

/// An answer to `/held/NAME`: all but its end, until it is let go.
#[derive(Clone, Default)]
pub(crate) struct Held {
    /// Has the server send the end.
    pub(crate) go: CancellationToken,
    /// The client has closed the connection before.
    pub(crate) closed: CancellationToken,
}

pub(crate) struct ReleaseServer {
    /// File with the authority of its certificate.
    pub(crate) authority: PathBuf,
    pub(crate) held: Held,
    stop: Option<DropGuard>,
    thread: Option<JoinHandle<()>>,
}

impl ReleaseServer {
    /// Serves the files of a folder at 127.0.0.1 of a namespace. `/to/X` redirects to `X`, `/held/X` is
    /// `X` without its end until [`Held::go`], and `/endless`
    /// never ends.
    pub(crate) fn start(at: &Namespace, folder: &Path) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let certificate = rcgen::CertificateParams::new(names).unwrap();
        let certificate = certificate.self_signed(&key).unwrap();
        let authority = folder.join("ca.pem");
        fs::write(&authority, certificate.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = at.inside(|| std::net::TcpListener::bind(("127.0.0.1", PORT)).unwrap());
        listener.set_nonblocking(true).unwrap();
        let stop = CancellationToken::new();
        let (stopped, folder) = (stop.clone(), folder.to_owned());
        let held = Held::default();
        let shared = held.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                tokio::select! {
                    () = serve(listener, acceptor, folder, shared) => {}
                    () = stopped.cancelled() => {}
                }
            });
        });
        Self {
            authority,
            held,
            stop: Some(stop.drop_guard()),
            thread: Some(thread),
        }
    }

    /// A certificate that is its own authority, as PEM.
    pub(crate) fn certificate() -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["localhost".to_owned()]);
        certificate.unwrap().self_signed(&key).unwrap().pem()
    }

    /// URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{PORT}/{path}")
    }
}

impl Drop for ReleaseServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, folder: PathBuf, held: Held) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        // A client that breaks off is no failure of the test.
        connections.spawn(answer(
            stream,
            acceptor.clone(),
            folder.clone(),
            held.clone(),
        ));
    }
}

async fn answer(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    folder: PathBuf,
    held: Held,
) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 16_384 {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head
        .split(' ')
        .nth(1)
        .unwrap_or("/")
        .trim_start_matches('/');
    if path == "endless" {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        loop {
            stream.write_all(&[b'x'; 4096]).await?;
        }
    }
    if let Some(target) = path.strip_prefix("to/") {
        let text = format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(text.as_bytes()).await?;
        return stream.shutdown().await;
    }
    let (path, is_held) = match path.strip_prefix("held/") {
        Some(name) => (name, true),
        None => (path, false),
    };
    let (status, body) = match fs::read(folder.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(text.as_bytes()).await?;
    if is_held {
        let (begin, end) = body.split_at(body.len() - 1);
        stream.write_all(begin).await?;
        stream.flush().await?;
        tokio::select! {
            () = held.go.cancelled() => return stream.write_all(end).await,
            _ = stream.read_u8() => held.closed.cancel(),
        }
        return Ok(());
    }
    stream.write_all(&body).await?;
    stream.shutdown().await
}
