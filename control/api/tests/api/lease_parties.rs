//! Projects that own and lease machines, and what they ask for.

use api::machine_service_client::MachineServiceClient;
use mesh::lease_service_client::LeaseServiceClient;
use mesh::operator_lease_service_client::OperatorLeaseServiceClient;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::{Code, Status};

use crate::machines::wanted;
use crate::node::{Node, Wire};

pub(crate) const MINUTE_MS: u64 = 60_000;

/// A project with its owner's token.
pub(crate) struct Party {
    pub(crate) project: String,
    pub(crate) token: String,
}

impl Party {
    async fn of(node: &Node, login: &str) -> Self {
        let (project, token) = node.tenant(login).await;
        Self { project, token }
    }

    pub(crate) fn leases(&self, node: &Node) -> LeaseServiceClient<Wire> {
        LeaseServiceClient::new(node.wire(Some(&self.token)))
    }

    pub(crate) fn machines(&self, node: &Node) -> MachineServiceClient<Wire> {
        MachineServiceClient::new(node.wire(Some(&self.token)))
    }

    pub(crate) async fn get(
        &self,
        node: &Node,
        machine: &str,
    ) -> Result<mesh::TenuredMachine, Status> {
        let request = mesh::LeaseServiceGetRequest {
            project: self.project.clone(),
            machine: machine.to_owned(),
        };
        let found = self.leases(node).get(request).await?;
        Ok(found.into_inner().machine.unwrap())
    }

    /// Machines that the project owns or leases, with its relation to each.
    pub(crate) async fn list(&self, node: &Node) -> Vec<(String, String)> {
        let project = self.project.clone();
        let request = mesh::LeaseServiceListRequest { project };
        let found = self.leases(node).list(request).await.unwrap();
        let found = found.into_inner().machines.into_iter();
        found.map(|found| (found.machine, found.relation)).collect()
    }

    /// Grants a lease of so many minutes.
    pub(crate) async fn grant(
        &self,
        node: &Node,
        machine: &str,
        lessee: &str,
        minutes: u64,
    ) -> Result<mesh::Lease, Status> {
        let request = mesh::LeaseServiceGrantRequest {
            project: self.project.clone(),
            machine: machine.to_owned(),
            lessee: lessee.to_owned(),
            expires_at: Some(at(node, minutes)),
            ..Default::default()
        };
        let granted = self.leases(node).grant(request).await?;
        Ok(granted.into_inner().lease.unwrap())
    }

    pub(crate) async fn end(&self, node: &Node, machine: &str) -> Result<mesh::Lease, Status> {
        let request = mesh::LeaseServiceEndRequest {
            project: self.project.clone(),
            machine: machine.to_owned(),
            ..Default::default()
        };
        let ended = self.leases(node).end(request).await?;
        Ok(ended.into_inner().lease.unwrap())
    }

    /// Allocates this machine.
    pub(crate) async fn take(
        &self,
        node: &Node,
        machine: &str,
        network: &str,
    ) -> Result<api::Machine, Status> {
        let request = api::MachineServiceCreateRequest {
            uuid: Some(machine.to_owned()),
            partition: None,
            size: None,
            ..wanted(&self.project, network)
        };
        let made = self.machines(node).create(request).await?;
        Ok(made.into_inner().machine.unwrap())
    }

    pub(crate) async fn shown(&self, node: &Node, machine: &str) -> Result<api::Machine, Status> {
        let request = api::MachineServiceGetRequest {
            uuid: machine.to_owned(),
            project: self.project.clone(),
        };
        let found = self.machines(node).get(request).await?;
        Ok(found.into_inner().machine.unwrap())
    }
}

/// The time in so many minutes.
fn at(node: &Node, minutes: u64) -> prost_types::Timestamp {
    let ms = node.store.now().plus_ms(minutes * MINUTE_MS).ms();
    prost_types::Timestamp {
        seconds: i64::try_from(ms / 1000).unwrap(),
        nanos: 0,
    }
}

pub(crate) async fn set_owner(
    node: &Node,
    machine: &str,
    owner: Option<&str>,
) -> Result<(), Status> {
    let request = mesh::OperatorLeaseServiceSetOwnerRequest {
        machine: machine.to_owned(),
        owner: owner.map(str::to_owned),
    };
    let mut operator = OperatorLeaseServiceClient::new(node.as_admin());
    operator.set_owner(request).await.map(drop)
}

pub(crate) fn label<'a>(machine: &'a api::Machine, key: &str) -> Option<&'a str> {
    let labels = machine.meta.as_ref()?.labels.as_ref()?;
    labels.labels.get(key).map(String::as_str)
}

/// The same refusal, whichever machine it is about.
pub(crate) fn plain(status: &Status, machine: &str) -> (Code, String) {
    (status.code(), status.message().replace(machine, "<it>"))
}

/// An owner, a lessee and a stranger, a machine on offer, and the network of the lessee.
pub(crate) async fn site(node: &Node) -> ([Party; 3], String, String) {
    node.data_centre().await;
    let machine = node.waiting_machine(1).await;
    let parties = [
        Party::of(node, "ops").await,
        Party::of(node, "acme").await,
        Party::of(node, "rival").await,
    ];
    let lessee = &parties[1];
    let network = node.network(&lessee.token, &lessee.project).await;
    (parties, machine, network)
}
