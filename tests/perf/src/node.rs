//! One node of ours: the product's store, and a key-value service instead of the product's API.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use control_peers::PeerLink;
use control_store::{StartMode, Store, StoreConfig};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use uuid::Uuid;

use crate::certs::peer_credential;
use crate::machine::Values;
use crate::service::Kv;

/// Name of the cluster.
const CLUSTER: &str = "bench";

#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Data directory
    #[arg(long)]
    dir: PathBuf,
    /// Its number
    #[arg(long)]
    id: u64,
    /// Where clients are served
    #[arg(long)]
    listen: SocketAddr,
    /// Where peers are served
    #[arg(long)]
    peer: SocketAddr,
    /// Id of the cluster that it joins; without it makes one
    #[arg(long)]
    join: Option<Uuid>,
    /// The peers' authority, certificate and key, DER
    #[arg(long)]
    peers: PathBuf,
    #[arg(long)]
    peers_key: PathBuf,
    /// The node's certificate, PEM
    #[arg(long)]
    certificate: PathBuf,
    /// Its key, PEM
    #[arg(long)]
    key: PathBuf,
}

/// Serves until it is killed.
pub(crate) async fn run(args: NodeArgs) -> Result<()> {
    let certificate = std::fs::read(&args.certificate).context("cannot read the certificate")?;
    let key = std::fs::read(&args.key).context("cannot read the key")?;
    let tls = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
    let link = PeerLink::bind(args.peer).context("cannot bind the peers' port")?;
    link.set_credential(peer_credential(args.id, &args.peers, &args.peers_key)?)?;
    let config = StoreConfig {
        begin: args.join.map_or(StartMode::Form, StartMode::Join),
        peer_address: args.peer.to_string(),
        transport: Arc::new(link.clone()),
        ..StoreConfig::new(&args.dir, args.id, CLUSTER)
    };
    let store: Store<Values> = Store::open(config).await.context("cannot open the store")?;
    let mut tasks = JoinSet::new();
    tasks.spawn(link.run_with(store.clone(), |_, _| false, CancellationToken::new()));
    let incoming = TcpIncoming::bind(args.listen)?.with_nodelay(Some(true));
    Server::builder()
        .tls_config(tls)?
        .add_service(Kv { store })
        .serve_with_incoming(incoming)
        .await
        .context("the service ended")
}
