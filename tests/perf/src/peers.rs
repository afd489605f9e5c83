//! Peers over mTLS QUIC.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use control_store::{Channel, Lane, Member, Store, Transport};
use futures::FutureExt;
use futures::future::BoxFuture;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Connection, Endpoint, IdleTimeout, TransportConfig, VarInt};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::machine::Values;

type Connections = BTreeMap<(u64, bool), Connection>;

#[derive(Debug)]
pub(crate) struct Quic {
    endpoint: Endpoint,
    node: u64,
    connections: Arc<Mutex<Connections>>,
}

impl Quic {
    pub(crate) fn bind(
        listen: SocketAddr,
        node: u64,
        certificate: &Path,
        key: &Path,
        ca: &Path,
    ) -> Result<Arc<Self>> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate)?.collect();
        let chain = chain?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca)?)?;
        let roots = Arc::new(roots);
        let verifier = WebPkiClientVerifier::builder(roots.clone()).build()?;
        let mut server = rustls::ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), PrivateKeyDer::from_pem_file(key)?)?;
        server.alpn_protocols = vec![b"bench".to_vec()];
        let mut client = rustls::ClientConfig::builder()
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
        client.alpn_protocols = vec![b"bench".to_vec()];
        let transport = Arc::new(transport());
        let mut server =
            quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server)?));
        server.transport_config(transport.clone());
        let mut client = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(client)?));
        client.transport_config(transport);
        let mut endpoint = Endpoint::server(server, listen)?;
        endpoint.set_default_client_config(client);
        Ok(Arc::new(Self {
            endpoint,
            node,
            connections: Arc::default(),
        }))
    }

    pub(crate) async fn serve(self: Arc<Self>, store: Store<Values>) {
        let mut tasks = JoinSet::new();
        while let Some(incoming) = self.endpoint.accept().await {
            let store = store.clone();
            tasks.spawn(async move {
                drop(serve_connection(incoming, store).await);
            });
        }
    }
}

async fn serve_connection(incoming: quinn::Incoming, store: Store<Values>) -> Result<()> {
    let connection = incoming.await?;
    let mut first = connection.accept_uni().await?;
    let mut id = [0; 8];
    first.read_exact(&mut id).await?;
    let from = u64::from_be_bytes(id);
    let mut tasks = JoinSet::new();
    loop {
        let (send, receive) = connection.accept_bi().await?;
        let store = store.clone();
        tasks.spawn(async move {
            let channel = Channel::over(receive, send);
            if let Err(error) = store.serve_peer(from, channel).await {
                tracing::debug!(error = %error, "channel");
            }
        });
        while tasks.try_join_next().is_some() {}
    }
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(3000))))
        .keep_alive_interval(Some(Duration::from_millis(500)))
        .initial_rtt(Duration::from_millis(10));
    transport
}

impl Transport for Quic {
    fn open(&self, member: &Member, lane: Lane) -> BoxFuture<'static, io::Result<Channel>> {
        let endpoint = self.endpoint.clone();
        let connections = self.connections.clone();
        let (node, to, address) = (self.node, member.node, member.address.clone());
        async move {
            let key = (to, lane == Lane::Snapshot);
            let old = connections.lock().await.get(&key).cloned();
            let old = old.filter(|old| old.close_reason().is_none());
            let connection = match old {
                Some(old) => old,
                None => {
                    let new = connect(&endpoint, &address, node).await;
                    let new = new.map_err(io::Error::other)?;
                    connections.lock().await.insert(key, new.clone());
                    new
                }
            };
            let (send, receive) = connection.open_bi().await?;
            Ok(Channel::over(receive, send))
        }
        .boxed()
    }
}

async fn connect(endpoint: &Endpoint, address: &str, node: u64) -> Result<Connection> {
    let connecting = endpoint.connect(address.parse()?, "localhost")?;
    let connection = tokio::time::timeout(Duration::from_secs(1), connecting);
    let connection = connection.await.context("no answer")??;
    let mut hello = connection.open_uni().await?;
    hello.write_all(&node.to_be_bytes()).await?;
    hello.finish()?;
    Ok(connection)
}
