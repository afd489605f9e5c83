//! A rack whose agents have joined: two leaves, a BMC agent, machines on offer.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use control_state::{
    AgentKind, LabelsUpdate, Lock, RegisterSwitch, UNKNOWN_MACHINES_MAX, UpdateImage,
    UpdatePartition, label,
};
use control_store::Store;
use proto_identity::Credential;
use tests_support::announcement;

use crate::api::seed::{Cables, Filling, HALL, IMAGE, PROJECTS, each, machine_at, propose};
use crate::link::{Joins, credential};

/// The agent of all BMCs.
const BMC: &str = "bmc-1";

#[derive(Debug, Args)]
pub(crate) struct SwitchFillArgs {
    /// Data directory
    #[arg(long)]
    dir: PathBuf,
    /// Machines on offer; machine N is on port swpN of both leaves
    #[arg(long)]
    machines: u32,
}

/// Name of the leaf on one side.
fn leaf(side: u8) -> String {
    format!("leaf-{side}")
}

/// Fills and ends.
pub(crate) async fn run(args: SwitchFillArgs) -> Result<()> {
    let filling = Filling::begin(&args.dir, PROJECTS).await?;
    let store = &filling.store;
    // As the node announces itself: without it no new label is accepted.
    propose(store, announcement(1)).await?;
    propose(store, evpn()?).await?;
    propose(store, routed()?).await?;
    let joins = Joins::begin(store, &filling.seal, &args.dir).await?;
    for side in [0, 1] {
        switch(store, side, args.machines).await?;
        joins.join(AgentKind::Core, HALL, &leaf(side)).await?;
    }
    joins.join(AgentKind::Bmc, HALL, BMC).await?;
    each(store, args.machines, |store, number| async move {
        let cables = Cables {
            partition: HALL.to_owned(),
            leaves: [0, 1].map(leaf),
            port: format!("swp{number}"),
        };
        machine_at(store, number, cables).await
    })
    .await?;
    filling.end(&args.dir).await
}

/// Tenants' ports are routed in VRFs.
fn evpn() -> Result<UpdatePartition> {
    let labels = [
        (label::FABRIC, "evpn".to_owned()),
        (label::UNKNOWN_MACHINES, UNKNOWN_MACHINES_MAX.to_string()),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value));
    Ok(UpdatePartition {
        id: HALL.parse()?,
        lock: Lock::Server,
        description: None,
        boot: None,
        dns_servers: None,
        ntp_servers: None,
        mgmt_service_addresses: None,
        labels: Some(LabelsUpdate::Replace(labels.into())),
    })
}

/// Its machines speak BGP: without the label their ports are bridged.
fn routed() -> Result<UpdateImage> {
    let label = (label::NETWORKING.to_owned(), "routed".to_owned());
    Ok(UpdateImage {
        id: IMAGE.parse()?,
        lock: Lock::Server,
        url: None,
        name: None,
        description: None,
        features: None,
        classification: None,
        expires_at: None,
        labels: Some(LabelsUpdate::Patch {
            update: [label].into(),
            remove: Vec::new(),
        }),
    })
}

async fn switch(store: &Store, side: u8, ports: u32) -> Result<()> {
    let op = RegisterSwitch {
        id: leaf(side).parse()?,
        partition: HALL.parse()?,
        rack: "rack-0".into(),
        room: "room-1".into(),
        management_ip: None,
        vtep_ip: Some([10, 91, 0, side].into()),
        ports: (0..ports)
            .map(|port| (format!("swp{port}"), None))
            .collect(),
        identifiers: Default::default(),
        os_vendor: "linux".into(),
        os_version: String::new(),
        agent_version: String::new(),
        hears: false,
    };
    propose(store, op).await.map(drop)
}

/// The credential of the leaf on one side.
pub(super) fn leaf_credential(dir: &Path, side: u8) -> Result<Credential> {
    credential(dir, &leaf(side))
}

/// The credential of the agent of all BMCs.
pub(super) fn bmc_credential(dir: &Path) -> Result<Credential> {
    credential(dir, BMC)
}
