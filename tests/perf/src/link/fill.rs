//! A data centre whose switches' agents have all joined.

use std::path::Path;
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
    let pki = Pki::open(store.clone(), seal, TRUST_DOMAIN).await?;
    let dir = args.dir.with_extension(AGENTS_DIR);
    std::fs::create_dir(&dir)?;
    // Two switches to a rack, in the same partition.
    let racks = (args.agents / 2).max(1);
    let ports = args.machines.div_ceil(racks).max(1);
    each(store, args.agents, move |store, number| {
        let (pki, dir) = (pki.clone(), dir.clone());
        async move {
            switch(&store, number, ports).await?;
            join(&pki, number, &dir).await
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

/// As an agent joins: a ticket, a key of its own, a certificate.
async fn join(pki: &Pki, number: u32, dir: &Path) -> Result<()> {
    let new = NewJoinTicket {
        kind: AgentKind::Core,
        partition: hall(number / 2).parse()?,
        agent: leaf(number),
        key: None,
        tpm: None,
        life: Duration::ZERO,
        control: Vec::new(),
    };
    let permit = permit_for("CreateJoinTicket");
    let (_, file) = pki.create_join_ticket(&permit, "bench", new).await?;
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
    let issued = pki.enrol(&enrol).await?;
    let bytes = |list: &[proto_identity::CertificateDer<'_>]| -> Vec<Vec<u8>> {
        list.iter().map(|it| it.to_vec()).collect()
    };
    let kept = Kept {
        key: key.to_pkcs8(),
        chain: bytes(&issued.chain),
        roots: bytes(&issued.roots),
    };
    let path = dir.join(number.to_string());
    std::fs::write(&path, serde_json::to_vec(&kept)?).with_context(|| path.display().to_string())
}

/// The credential of agent `number` of a filled directory.
pub(super) fn credential(dir: &Path, number: u32) -> Result<Credential> {
    let path = dir.with_extension(AGENTS_DIR).join(number.to_string());
    let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let kept: Kept = serde_json::from_slice(&text)?;
    let certificates = |list: Vec<Vec<u8>>| list.into_iter().map(Into::into).collect();
    Ok(Credential {
        key: Key::from_pkcs8(&kept.key)?,
        chain: certificates(kept.chain),
        roots: certificates(kept.roots),
    })
}
