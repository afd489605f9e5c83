//! A data centre whose switches' agents have all joined.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use control_pki::{Enrol, NewJoinTicket, Pki, SealingKey};
use control_state::{AgentKind, RegisterSwitch};
use control_store::Store;
use proto_identity::ticket::JoinTicket as TicketFile;
use proto_identity::{Credential, Key};
use serde::{Deserialize, Serialize};
use tests_support::permit_for;

use crate::api::seed::{Cables, FillArgs, each, machine_at, partition, propose};

/// The product's name for itself when nobody says another.
const TRUST_DOMAIN: &str = "metalmesh.local";
/// Partitions that the switches are in.
pub(super) const HALLS: u32 = 100;
const AGENTS_DIR: &str = "agents";

/// What an agent keeps.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    key: Vec<u8>,
    chain: Vec<Vec<u8>>,
    roots: Vec<Vec<u8>>,
}

/// Name of switch `number`.
pub(super) fn leaf(number: u32) -> String {
    format!("leaf-{number}")
}

fn hall(number: u32) -> String {
    format!("hall-{}", number % HALLS)
}

/// Partitions, switches, their agents' certificates beside the data directory, machines.
pub(crate) async fn fill(store: &Store, seal: &SealingKey, args: &FillArgs) -> Result<()> {
    for number in 0..HALLS {
        partition(store, &hall(number)).await?;
    }
    let joins = Joins::begin(store, seal, &args.dir).await?;
    // Two switches to a rack, in the same partition.
    let racks = (args.agents / 2).max(1);
    let ports = args.machines.div_ceil(racks).max(1);
    each(store, args.agents, move |store, number| {
        let joins = joins.clone();
        async move {
            switch(&store, number, ports).await?;
            let hall = hall(number / 2);
            joins.join(AgentKind::Core, &hall, &leaf(number)).await
        }
    })
    .await?;
    each(store, args.machines, move |store, number| {
        let rack = number % racks;
        let cables = Cables {
            partition: hall(rack),
            leaves: [0, 1].map(|side| leaf(rack * 2 + side)),
            port: format!("swp{}", number / racks),
        };
        machine_at(store, number, cables)
    })
    .await
}

async fn switch(store: &Store, number: u32, ports: u32) -> Result<()> {
    let [a, b] = u16::try_from(number)?.to_be_bytes();
    let op = RegisterSwitch {
        id: leaf(number).parse()?,
        partition: hall(number / 2).parse()?,
        rack: format!("rack-{}", number / 2),
        room: String::new(),
        management_ip: None,
        vtep_ip: Some([10, 255, a, b].into()),
        ports: (0..ports).map(|it| (format!("swp{it}"), None)).collect(),
        identifiers: Default::default(),
        os_vendor: "linux".into(),
        os_version: String::new(),
        agent_version: String::new(),
        hears: false,
    };
    propose(store, op).await.map(drop)
}

/// Joins agents of a directory that is filled.
#[derive(Clone)]
pub(crate) struct Joins {
    pki: Pki,
    /// Where their keys and certificates are kept.
    dir: PathBuf,
}

impl Joins {
    pub(crate) async fn begin(store: &Store, seal: &SealingKey, data_dir: &Path) -> Result<Self> {
        let pki = Pki::open(store.clone(), seal, TRUST_DOMAIN).await?;
        let dir = data_dir.with_extension(AGENTS_DIR);
        std::fs::create_dir(&dir)?;
        Ok(Self { pki, dir })
    }

    /// As an agent joins: a ticket, a key of its own, a certificate.
    pub(crate) async fn join(&self, kind: AgentKind, partition: &str, agent: &str) -> Result<()> {
        let new = NewJoinTicket {
            kind,
            partition: partition.parse()?,
            agent: agent.to_owned(),
            key: None,
            tpm: None,
            reenrols: false,
            life: Duration::ZERO,
            control: Vec::new(),
        };
        let permit = permit_for("CreateJoinTicket");
        let (_, file) = self.pki.create_join_ticket(&permit, "bench", new).await?;
        let ticket = TicketFile::parse(&file)?;
        let key = Key::generate()?;
        let enrol = Enrol {
            ticket_id: ticket.id,
            secret: ticket.secret.to_vec(),
            request: key.request()?,
            machine: None,
            tpm: None,
            nonce: Vec::new(),
        };
        let issued = self.pki.enrol(&enrol).await?;
        let bytes = |list: &[proto_identity::CertificateDer<'_>]| -> Vec<Vec<u8>> {
            list.iter()
                .map(|certificate| certificate.to_vec())
                .collect()
        };
        let kept = Kept {
            key: key.to_pkcs8(),
            chain: bytes(&issued.chain),
            roots: bytes(&issued.roots),
        };
        let path = self.dir.join(agent);
        let text = serde_json::to_vec(&kept)?;
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

/// The credential of an agent of a filled directory.
pub(crate) fn credential(dir: &Path, agent: &str) -> Result<Credential> {
    let path = dir.with_extension(AGENTS_DIR).join(agent);
    let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let kept: Kept = serde_json::from_slice(&text)?;
    let certificates = |list: Vec<Vec<u8>>| list.into_iter().map(Into::into).collect();
    Ok(Credential {
        key: Key::from_pkcs8(&kept.key)?,
        chain: certificates(kept.chain),
        roots: certificates(kept.roots),
    })
}
