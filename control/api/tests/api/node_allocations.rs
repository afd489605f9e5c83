//! Node allocations over gRPC, as the user story of node multi-tenancy has them.

use api::machine_service_client::MachineServiceClient;
use control_state::BmcAction;
use mesh::lease_service_client::LeaseServiceClient;
use mesh::node_allocation_service_client::NodeAllocationServiceClient;
use mesh::operator_lease_service_client::OperatorLeaseServiceClient;
use mesh::operator_node_allocation_service_client::OperatorNodeAllocationServiceClient;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use tonic::{Code, Status};

use crate::callers::ABSENT;
use crate::machines::wanted;
use crate::node::{Node, Wire};

fn wish(name: &str, class: &str) -> Option<mesh::NodeAllocationWish> {
    Some(mesh::NodeAllocationWish {
        name: name.to_owned(),
        resource_class: class.to_owned(),
        ..Default::default()
    })
}

/// An administrator gives a machine of a class to a project.
async fn give(node: &Node, machine: &str, class: &str, owner: Option<&str>) {
    let mut operator = OperatorLeaseServiceClient::new(node.as_admin());
    let set = mesh::OperatorLeaseServiceSetOwnerRequest {
        machine: machine.to_owned(),
        owner: owner.map(str::to_owned),
    };
    operator.set_owner(set).await.unwrap();
    let capable = mesh::OperatorLeaseServiceSetCapabilityRequest {
        machine: machine.to_owned(),
        change: Some(mesh::CapabilityChange {
            resource_class: Some(class.to_owned()),
            add_traits: vec!["CUSTOM_GOLD".to_owned()],
            ..Default::default()
        }),
    };
    operator.set_capability(capable).await.unwrap();
}

struct Tenant {
    project: String,
    allocations: NodeAllocationServiceClient<Wire>,
    machines: MachineServiceClient<Wire>,
    network: String,
}

impl Tenant {
    async fn of(node: &Node, login: &str) -> Self {
        let (project, token) = node.tenant(login).await;
        Self {
            network: node.network(&token, &project).await,
            allocations: NodeAllocationServiceClient::new(node.wire(Some(&token))),
            machines: MachineServiceClient::new(node.wire(Some(&token))),
            project,
        }
    }

    async fn hold(
        &mut self,
        wish: Option<mesh::NodeAllocationWish>,
    ) -> Result<mesh::NodeAllocation, Status> {
        let project = self.project.clone();
        let request = mesh::NodeAllocationServiceCreateRequest { project, wish };
        let made = self.allocations.create(request).await?;
        Ok(made.into_inner().node_allocation.unwrap())
    }

    async fn get(&mut self, allocation: &str) -> Result<mesh::NodeAllocation, Status> {
        let request = mesh::NodeAllocationServiceGetRequest {
            project: self.project.clone(),
            allocation: allocation.to_owned(),
        };
        let found = self.allocations.get(request).await?;
        Ok(found.into_inner().node_allocation.unwrap())
    }

    async fn remove(&mut self, id: &str) -> Result<(), Status> {
        let request = mesh::NodeAllocationServiceRemoveRequest {
            project: self.project.clone(),
            id: id.to_owned(),
        };
        self.allocations.remove(request).await.map(drop)
    }
}

/// An allocation that is restricted to its project, the machine's installation, and its end with the
/// machine's release: what metalsmith does.
#[tokio::test(flavor = "multi_thread")]
async fn a_restricted_allocation_gets_machines_of_its_project() {
    let node = Node::start().await;
    node.data_centre().await;
    let (first, second) = (node.waiting_machine(1).await, node.waiting_machine(2).await);
    let mut owner = Tenant::of(&node, "ops").await;
    let mut other = Tenant::of(&node, "acme").await;
    give(&node, &first, "baremetal", Some(&owner.project)).await;
    give(&node, &second, "baremetal", None).await;

    // The machine of the site is nobody's to take by an allocation.
    let failed = other.hold(wish("db", "baremetal")).await.unwrap();
    assert_eq!(
        (failed.state.as_str(), failed.machine.as_str()),
        ("error", "")
    );
    assert!(
        failed
            .last_error
            .contains("0 machines of class CUSTOM_BAREMETAL"),
        "{failed:?}"
    );
    assert_eq!(failed.owner, other.project);

    let held = owner.hold(wish("web", "CUSTOM_BAREMETAL")).await.unwrap();
    assert_eq!((held.state.as_str(), &held.machine), ("active", &first));
    assert_eq!(owner.get("web").await.unwrap(), held);
    assert_eq!(owner.get(&held.id).await.unwrap(), held);
    let foreign = other.get(&held.id).await.unwrap_err();
    let absent = other.get(ABSENT).await.unwrap_err();
    assert_eq!(foreign.code(), Code::NotFound);
    assert_eq!(
        foreign.message().replace(&held.id, ""),
        absent.message().replace(ABSENT, "")
    );
    let twice = owner.hold(wish("web", "baremetal")).await.unwrap_err();
    assert_eq!(twice.code(), Code::AlreadyExists);

    let deploy = api::MachineServiceCreateRequest {
        uuid: Some(held.machine.clone()),
        partition: None,
        size: None,
        ..wanted(&owner.project, &owner.network)
    };
    owner.machines.create(deploy).await.unwrap();
    let in_use = owner.remove(&held.id).await.unwrap_err();
    assert!(in_use.message().starts_with("MM-1005"), "{in_use}");
    let free = api::MachineServiceDeleteRequest {
        uuid: held.machine.clone(),
        project: owner.project.clone(),
    };
    let (freed, ()) = tokio::join!(
        owner.machines.delete(free),
        node.bmc_obeys(BmcAction::PowerOff)
    );
    freed.unwrap();
    let gone = owner.get("web").await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lessee_allocates_and_the_owner_does_not() {
    let node = Node::start().await;
    node.data_centre().await;
    let machine = node.waiting_machine(1).await;
    let (owning, token) = node.tenant("ops").await;
    let mut lessee = Tenant::of(&node, "acme").await;
    give(&node, &machine, "gold", Some(&owning)).await;
    let until = node.store.now().plus_ms(3_600_000).ms() / 1000;
    let grant = mesh::LeaseServiceGrantRequest {
        project: owning.clone(),
        machine: machine.clone(),
        lessee: lessee.project.clone(),
        expires_at: Some(prost_types::Timestamp {
            seconds: i64::try_from(until).unwrap(),
            nanos: 0,
        }),
        ..Default::default()
    };
    let mut leases = LeaseServiceClient::new(node.wire(Some(&token)));
    leases.grant(grant).await.unwrap();
    let mut owner = NodeAllocationServiceClient::new(node.wire(Some(&token)));
    let request = mesh::NodeAllocationServiceCreateRequest {
        project: owning,
        wish: wish("", "gold"),
    };
    let failed = owner.create(request).await.unwrap().into_inner();
    assert_eq!(failed.node_allocation.unwrap().state, "error");
    let with_traits = |traits: &[&str]| {
        wish("", "gold").map(|wish| mesh::NodeAllocationWish {
            traits: traits.iter().map(|name| (*name).to_owned()).collect(),
            candidates: vec![machine.clone()],
            ..wish
        })
    };
    let lacking = lessee.hold(with_traits(&["CUSTOM_SILVER"])).await.unwrap();
    assert!(
        lacking
            .last_error
            .contains("no free machine has the traits"),
        "{lacking:?}"
    );
    let malformed = lessee.hold(with_traits(&["gold"])).await.unwrap_err();
    assert_eq!(malformed.code(), Code::InvalidArgument);
    let held = lessee.hold(with_traits(&["CUSTOM_GOLD"])).await.unwrap();
    assert_eq!(held.machine, machine);
    let update = mesh::NodeAllocationServiceUpdateRequest {
        project: lessee.project.clone(),
        id: held.id.clone(),
        update_meta: Some(api::UpdateMeta {
            updated_at: held.meta.as_ref().and_then(|meta| meta.updated_at),
            locking_strategy: api::OptimisticLockingStrategy::Client.into(),
        }),
        name: Some("db".into()),
        extra: Some(mesh::NodeAllocationExtra {
            fields: [("stack".to_owned(), "\"prod\"".to_owned())].into(),
        }),
    };
    let changed = lessee.allocations.update(update.clone()).await.unwrap();
    let changed = changed.into_inner().node_allocation.unwrap();
    assert_eq!((changed.name.as_str(), changed.extra.len()), ("db", 1));
    let stale = lessee.allocations.update(update).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    lessee.remove(&held.id).await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrators_allocation_gets_a_machine_of_the_site() {
    let node = Node::start().await;
    node.data_centre().await;
    let machine = node.waiting_machine(1).await;
    let mut tenant = Tenant::of(&node, "acme").await;
    give(&node, &machine, "gold", None).await;
    let mut operator = OperatorNodeAllocationServiceClient::new(node.as_admin());
    let request = mesh::OperatorNodeAllocationServiceCreateRequest {
        owner: None,
        wish: wish("spare", "gold"),
    };
    let held = operator.create(request).await.unwrap().into_inner();
    let held = held.node_allocation.unwrap();
    assert_eq!((&held.machine, held.owner.as_str()), (&machine, ""));
    // It is taken, and it is no project's: no name, no id and no size leads a tenant to it.
    for id in ["spare", &held.id] {
        let unseen = tenant.get(id).await.unwrap_err();
        assert_eq!(unseen.code(), Code::NotFound, "{id}");
    }
    assert_eq!(
        tenant.remove(&held.id).await.unwrap_err().code(),
        Code::NotFound
    );
    let by_size = tenant
        .machines
        .create(wanted(&tenant.project, &tenant.network))
        .await;
    assert_eq!(by_size.unwrap_err().code(), Code::ResourceExhausted);
    let list = mesh::OperatorNodeAllocationServiceListRequest {};
    let all = operator.list(list).await.unwrap().into_inner();
    assert_eq!(all.node_allocations, std::slice::from_ref(&held));
    let remove = mesh::OperatorNodeAllocationServiceRemoveRequest { id: held.id };
    operator.remove(remove).await.unwrap();
    let by_size = tenant
        .machines
        .create(wanted(&tenant.project, &tenant.network))
        .await;
    by_size.unwrap();
    node.stop().await;
}
