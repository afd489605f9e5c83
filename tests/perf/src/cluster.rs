//! Three nodes of one system on loopback.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use strum::IntoStaticStr;

use crate::certs::Certs;
use crate::client::{Address, Client, Dialect, NodeStatus};
use crate::process::Process;
use crate::procfs;

/// Nodes of a cluster.
pub(crate) const NODES: usize = 3;
/// How long a cluster may take to be ready again.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// Pause between two looks at a condition.
pub(crate) const POLL: Duration = Duration::from_millis(20);
/// How long a node may take to tell its status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum System {
    Ours,
    EtcdTls,
    EtcdPlain,
}

impl System {
    pub(crate) const ALL: [Self; 3] = [Self::Ours, Self::EtcdTls, Self::EtcdPlain];

    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// Where programs and files are.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Program of etcd.
    pub(crate) etcd: PathBuf,
    pub(crate) dir: PathBuf,
    pub(crate) certs: Certs,
}

#[derive(Debug)]
struct Member {
    arguments: Vec<String>,
    log: PathBuf,
    address: Address,
    /// Kept open, so that asking for the status costs no handshake.
    client: Client,
    process: Option<Process>,
}

/// Three nodes.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) system: System,
    members: Vec<Member>,
}

impl Cluster {
    /// Starts the nodes and waits until they are a cluster.
    pub(crate) async fn start(site: &Site, system: System) -> Result<Self> {
        let dir = site.dir.join(system.name());
        std::fs::create_dir(&dir)?;
        let ports = free_ports(2 * NODES)?;
        let (clients, peers) = ports.split_at(NODES);
        let mut cluster = Self {
            system,
            members: Vec::new(),
        };
        for node in 0..NODES {
            let plan = Plan {
                site,
                dir: &dir,
                clients,
                peers,
                node,
            };
            let arguments = match system {
                System::Ours => plan.ours()?,
                System::EtcdTls => plan.etcd(true),
                System::EtcdPlain => plan.etcd(false),
            };
            let address = Address {
                dialect: match system {
                    System::Ours => Dialect::Ours,
                    _ => Dialect::Etcd,
                },
                port: clients[node],
                ca: (system != System::EtcdPlain).then(|| site.certs.ca.clone()),
            };
            cluster.members.push(Member {
                arguments,
                log: dir.join(format!("{node}.log")),
                client: address.connect_lazy()?,
                address,
                process: None,
            });
        }
        cluster.form(peers).await?;
        cluster.settle().await?;
        Ok(cluster)
    }

    async fn form(&mut self, peers: &[u16]) -> Result<()> {
        for node in 0..NODES {
            if self.system == System::Ours && node > 0 {
                let first = self.status_in_time(0).await?;
                let arguments = &mut self.members[node].arguments;
                arguments.extend(["--join".to_owned(), first.cluster]);
            }
            self.boot(node)?;
        }
        if self.system != System::Ours {
            return Ok(());
        }
        for (node, port) in peers.iter().enumerate().skip(1) {
            self.status_in_time(node).await?;
            let mut first = self.members[0].client.clone();
            let admitted = first.admit(node as u64 + 1, format!("127.0.0.1:{port}"));
            admitted.await.context("a node was not admitted")?;
        }
        Ok(())
    }

    fn boot(&mut self, node: usize) -> Result<()> {
        let member = &mut self.members[node];
        member.process = Some(Process::start(&member.arguments, &member.log)?);
        Ok(())
    }

    /// Waits for a leader and for everybody to have what it has. Returns who leads.
    pub(crate) async fn settle(&mut self) -> Result<usize> {
        let until = Instant::now() + READY_TIMEOUT;
        loop {
            let mut all = Vec::new();
            for node in 0..NODES {
                all.extend(self.status(node).await?);
            }
            let leader = all.iter().position(|status| status.is_leader);
            if let (NODES, Some(leader)) = (all.len(), leader) {
                let applied = all[leader].applied;
                let whole = |it: &NodeStatus| it.applied >= applied && it.voters == NODES as u64;
                if all.iter().all(whole) {
                    return Ok(leader);
                }
            }
            if Instant::now() > until {
                let name = self.system.name();
                bail!("{name} is not ready after {READY_TIMEOUT:?}: {all:?}");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// What a node says, or nothing when it says nothing. A process that has ended is an error.
    async fn status(&mut self, node: usize) -> Result<Option<NodeStatus>> {
        let member = &mut self.members[node];
        match &mut member.process {
            Some(process) => process.check()?,
            None => return Ok(None),
        }
        let asked = tokio::time::timeout(STATUS_TIMEOUT, member.client.status()).await;
        Ok(asked.ok().and_then(std::result::Result::ok))
    }

    async fn status_in_time(&mut self, node: usize) -> Result<NodeStatus> {
        let until = Instant::now() + READY_TIMEOUT;
        loop {
            if let Some(status) = self.status(node).await? {
                return Ok(status);
            }
            if Instant::now() > until {
                bail!("node {node} does not answer");
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Where the leader serves.
    pub(crate) async fn leader(&mut self) -> Result<Address> {
        let leader = self.settle().await?;
        Ok(self.members[leader].address.clone())
    }

    /// Where each node serves.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        let addresses = self.members.iter().map(|member| member.address.clone());
        addresses.collect()
    }

    /// kill -9 of one node.
    pub(crate) async fn kill(&mut self, node: usize) -> Result<()> {
        match self.members[node].process.take() {
            Some(process) => process.kill().await,
            None => Ok(()),
        }
    }

    /// Starts a node that was killed.
    pub(crate) fn restart(&mut self, node: usize) -> Result<()> {
        self.boot(node)
    }

    fn pids(&self) -> impl Iterator<Item = u32> {
        let processes = self.members.iter().filter_map(|it| it.process.as_ref());
        processes.map(Process::pid)
    }

    /// User and system time of all nodes so far, microseconds.
    pub(crate) fn cpu_us(&self) -> Result<u64> {
        self.pids().map(procfs::cpu_us).sum()
    }

    /// Resident memory of the largest node, KiB.
    pub(crate) fn rss_kib(&self) -> Result<u64> {
        let all: Result<Vec<u64>> = self.pids().map(procfs::rss_kib).collect();
        all?.into_iter().max().context("no node runs")
    }
}

/// What one node's command line is made of.
struct Plan<'a> {
    site: &'a Site,
    dir: &'a Path,
    clients: &'a [u16],
    peers: &'a [u16],
    node: usize,
}

impl Plan<'_> {
    fn data(&self) -> String {
        self.dir.join(self.node.to_string()).display().to_string()
    }

    fn ours(&self) -> Result<Vec<String>> {
        let certs = &self.site.certs;
        let this = std::env::current_exe()?;
        Ok(vec![
            this.display().to_string(),
            "node".to_owned(),
            format!("--dir={}", self.data()),
            format!("--id={}", self.node + 1),
            format!("--listen=127.0.0.1:{}", self.clients[self.node]),
            format!("--peer=127.0.0.1:{}", self.peers[self.node]),
            format!("--peers={}", certs.peers.display()),
            format!("--peers-key={}", certs.peers_key.display()),
            format!("--certificate={}", certs.certificate.display()),
            format!("--key={}", certs.key.display()),
        ])
    }

    /// All settings but addresses, names and certificates are etcd's defaults.
    fn etcd(&self, tls: bool) -> Vec<String> {
        let scheme = if tls { "https" } else { "http" };
        let url = |port: u16| format!("{scheme}://127.0.0.1:{port}");
        let client = url(self.clients[self.node]);
        let peer = url(self.peers[self.node]);
        let members: Vec<String> = (self.peers.iter().enumerate())
            .map(|(node, port)| format!("n{node}={}", url(*port)))
            .collect();
        let mut arguments = vec![
            self.site.etcd.display().to_string(),
            format!("--name=n{}", self.node),
            format!("--data-dir={}", self.data()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster={}", members.join(",")),
            "--initial-cluster-state=new".to_owned(),
            "--logger=zap".to_owned(),
            "--log-level=error".to_owned(),
        ];
        if tls {
            let certs = &self.site.certs;
            let (ca, cert) = (certs.ca_file.display(), certs.certificate.display());
            let key = certs.key.display();
            arguments.extend([
                format!("--cert-file={cert}"),
                format!("--key-file={key}"),
                format!("--peer-trusted-ca-file={ca}"),
                format!("--peer-cert-file={cert}"),
                format!("--peer-key-file={key}"),
                "--peer-client-cert-auth".to_owned(),
            ]);
        }
        arguments
    }
}

/// Ports that nobody listens on, for TCP and UDP alike, just now.
pub(crate) fn free_ports(count: usize) -> Result<Vec<u16>> {
    let listeners: std::io::Result<Vec<TcpListener>> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect();
    let ports: std::io::Result<Vec<u16>> = listeners?
        .iter()
        .map(|listener| Ok(listener.local_addr()?.port()))
        .collect();
    Ok(ports?)
}
