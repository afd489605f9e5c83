//! One node of ours: the product's store, and a key-value service instead of the product's API.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use control_store::{Begin, Store, StoreConfig};
use tokio::task::JoinSet;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use uuid::Uuid;

use crate::machine::Values;
use crate::peers::Quic;
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
    /// The authority's certificate, PEM
    #[arg(long)]
    ca: PathBuf,
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
    let quic = Quic::bind(args.peer, args.id, &args.certificate, &args.key, &args.ca)?;
    let config = StoreConfig {
        begin: args.join.map_or(Begin::Form, Begin::Join),
        peer_address: args.peer.to_string(),
        transport: quic.clone(),
        ..StoreConfig::new(&args.dir, args.id, CLUSTER)
    };
    let store: Store<Values> = Store::open(config).await.context("cannot open the store")?;
    let mut tasks = JoinSet::new();
    tasks.spawn(quic.serve(store.clone()));
    let incoming = TcpIncoming::bind(args.listen)?.with_nodelay(Some(true));
    Server::builder()
        .tls_config(tls)?
        .add_service(Kv { store })
        .serve_with_incoming(incoming)
        .await
        .context("the service ended")
}
