//! Pools and claims for tests: what administrators set, what projects call, what hardware does.

use std::collections::HashMap;

use control_state::{BmcAction, EventKind, InstallDone, Machine, PhoneHome};
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::pool_service_client::PoolServiceClient;
use proto_public::metalmesh::tenant::v1 as tenant;
use proto_public::metalmesh::tenant::v1::claim_service_client::ClaimServiceClient;

use crate::node::{Node, Wire};

pub(crate) const POOL: &str = "shared";

pub(crate) type Claims = ClaimServiceClient<Wire>;

/// A pool that admits whom these policies admit, and publishes the labels `infra-*`.
pub(crate) async fn set_pool(node: &Node, policies: Vec<mesh::DeployPolicy>) {
    let pool = mesh::HostPool {
        id: POOL.into(),
        policies,
        published_labels: vec!["infra-*".into()],
        ..Default::default()
    };
    let request = mesh::PoolServiceSetRequest {
        pool: Some(pool),
        expected_generation: None,
    };
    let mut pools = PoolServiceClient::new(node.as_admin());
    pools.set(request).await.unwrap();
}

/// A policy that admits everybody.
pub(crate) fn everybody() -> mesh::DeployPolicy {
    mesh::DeployPolicy {
        name: "all".into(),
        allow_all: true,
        ..Default::default()
    }
}

/// Puts a machine into the pool.
pub(crate) async fn add_host(node: &Node, machine: &str, labels: &[(&str, &str)]) {
    let request = mesh::PoolServiceSetHostRequest {
        machine: machine.to_owned(),
        pool: POOL.into(),
        labels: owned(labels),
        ..Default::default()
    };
    let mut pools = PoolServiceClient::new(node.as_admin());
    pools.set_host(request).await.unwrap();
}

pub(crate) fn owned(labels: &[(&str, &str)]) -> HashMap<String, String> {
    let pairs = labels.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// An intent without an image, for a host with these labels.
pub(crate) fn asking(labels: &[(&str, &str)]) -> tenant::ClaimSpec {
    tenant::ClaimSpec {
        selector: Some(tenant::ClaimSelector {
            match_labels: owned(labels),
            match_expressions: Vec::new(),
        }),
        ..Default::default()
    }
}

/// The same with an image and a network, to be on.
pub(crate) fn installing(labels: &[(&str, &str)], network: &str) -> tenant::ClaimSpec {
    tenant::ClaimSpec {
        image: Some("debian-12.0".into()),
        filesystem_layout: Some("default".into()),
        networks: vec![tenant::ClaimNetwork {
            network: network.to_owned(),
            ips: Vec::new(),
        }],
        powered_on: true,
        ..asking(labels)
    }
}

pub(crate) fn creation(
    project: &str,
    name: &str,
    spec: tenant::ClaimSpec,
) -> tenant::ClaimServiceCreateRequest {
    tenant::ClaimServiceCreateRequest {
        project: project.to_owned(),
        name: name.to_owned(),
        spec: Some(spec),
        ..Default::default()
    }
}

pub(crate) async fn create(
    claims: &mut Claims,
    project: &str,
    name: &str,
    spec: tenant::ClaimSpec,
) -> tenant::Claim {
    let made = claims.create(creation(project, name, spec)).await.unwrap();
    made.into_inner().claim.unwrap()
}

pub(crate) async fn update(claims: &mut Claims, claim: &tenant::Claim, spec: tenant::ClaimSpec) {
    let request = tenant::ClaimServiceUpdateRequest {
        project: claim.project.clone(),
        claim: claim.uuid.clone(),
        expected_epoch: Some(1),
        spec: Some(spec),
        ..Default::default()
    };
    claims.update(request).await.unwrap();
}

pub(crate) async fn get(claims: &mut Claims, claim: &tenant::Claim) -> tenant::ClaimStatus {
    let request = tenant::ClaimServiceGetRequest {
        project: claim.project.clone(),
        claim: claim.uuid.clone(),
    };
    let found = claims.get(request).await.unwrap().into_inner();
    found.claim.unwrap().status.unwrap()
}

pub(crate) async fn delete(claims: &mut Claims, claim: &tenant::Claim) -> tenant::ClaimStatus {
    let request = tenant::ClaimServiceDeleteRequest {
        project: claim.project.clone(),
        claim: claim.name.clone(),
        expected_uuid: Some(claim.uuid.clone()),
        expected_epoch: None,
    };
    let deleted = claims.delete(request).await.unwrap().into_inner();
    deleted.claim.unwrap().status.unwrap()
}

pub(crate) fn condition<'a>(
    status: &'a tenant::ClaimStatus,
    kind: &str,
) -> &'a tenant::ClaimCondition {
    let mut all = status.conditions.iter();
    all.find(|found| found.r#type == kind).unwrap()
}

impl Node {
    /// The machine of a claim is installed, and its system runs.
    pub(crate) async fn installed_claim(&self, machine: &str) {
        let id = machine.parse().unwrap();
        let allocation = self.store.read_local(|tables| {
            let machine = tables.get::<Machine>(&id).unwrap();
            machine.allocation.clone().unwrap()
        });
        let allocation = allocation.unwrap();
        self.event(id, EventKind::Installing).await;
        self.hardware(InstallDone {
            id,
            allocation: allocation.id,
            error: None,
            step: String::new(),
            retryable: false,
            log_tail: String::new(),
            console_password: "secret".into(),
            primary_disk: "/dev/vda".into(),
        })
        .await;
        self.bmc_obeys(BmcAction::BootDisk).await;
        self.event(id, EventKind::BootingNewKernel).await;
        self.leaf_obeys().await;
        self.hardware(PhoneHome {
            id,
            project: allocation.project,
            message: String::new(),
            time: self.store.now(),
        })
        .await;
    }

    /// Machine `number`, which was freed, is wiped and waits.
    pub(crate) async fn reclaimed(&self, number: u128) {
        self.boots_again().await;
        self.waiting_machine(number).await;
    }

    /// A machine that was freed is powered off, isolated, and boots from the network again.
    pub(crate) async fn boots_again(&self) {
        self.bmc_obeys(BmcAction::PowerOff).await;
        self.leaf_obeys().await;
        self.bmc_obeys(BmcAction::BootPxe).await;
        self.bmc_obeys(BmcAction::PowerOn).await;
    }
}
