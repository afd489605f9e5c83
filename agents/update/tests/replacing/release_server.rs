//! A publisher of releases: signs them, and serves them by TLS at an address of this host.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use proto_mesh::AgentRelease;
use proto_release::{FileDigest, PayloadEncoding, ReleaseManifest, ReleaseSigner, pack};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Name of the file with the authority of the server.
pub(crate) const AUTHORITY: &str = "ca.pem";
/// Longest head of a request, bytes.
const HEAD_LEN_MAX: usize = 16_384;

pub(crate) struct ReleaseServer {
    folder: PathBuf,
    address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl ReleaseServer {
    /// Serves the files of a folder, and writes its authority there.
    pub(crate) async fn start(folder: &Path) -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]);
        let certificate = certificate.unwrap().self_signed(&key).unwrap();
        fs::write(folder.join(AUTHORITY), certificate.pem()).unwrap();
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
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tasks.spawn(serve(listener, acceptor, folder.to_owned()));
        Self {
            folder: folder.to_owned(),
            address,
            _tasks: tasks,
        }
    }

    /// Signs a program, and publishes it. Returns the release as control names it.
    pub(crate) fn publish(
        &self,
        signer: &ReleaseSigner,
        name: &str,
        version: &str,
        program: &[u8],
    ) -> AgentRelease {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let payload = pack(program, PayloadEncoding::Plain).unwrap();
        let manifest = ReleaseManifest {
            name: name.to_owned(),
            version: version.parse().unwrap(),
            architecture: std::env::consts::ARCH.to_owned(),
            mesh_level: 1,
            not_before_s: since.as_secs() - 60,
            expires_s: since.as_secs() + 3600,
            allow_downgrade_from: Vec::new(),
            encoding: PayloadEncoding::Plain,
            payload: FileDigest::of(payload.as_slice()).unwrap(),
            program: FileDigest::of(program).unwrap(),
        };
        let head = signer.sign(&manifest).unwrap().encode();
        let digest = FileDigest::of(head.as_slice()).unwrap().digest;
        // A name for each, so that none is served in the place of another.
        let file = digest.hex();
        fs::write(self.folder.join(&file), [head, payload].concat()).unwrap();
        AgentRelease {
            version: version.to_owned(),
            url: format!("https://{}/{file}", self.address),
            head_digest: digest.to_string(),
        }
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, folder: PathBuf) {
    let mut connections = JoinSet::new();
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            // A client that breaks off is no failure of the test.
            connections.spawn(answer(stream, acceptor.clone(), folder.clone()));
        }
    }
}

async fn answer(stream: TcpStream, acceptor: TlsAcceptor, folder: PathBuf) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_LEN_MAX {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or("/");
    let body = fs::read(folder.join(path.trim_start_matches('/')))?;
    let text = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(text.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}
