//! What an admin and a tenant set up: tenant, project, size, image, networks, allocation.

use control_state::{
    AllocateMachine, ChildLength, CreateImage, CreateNetwork, CreateSize, WantedNetwork,
};
use control_state::{CreateChildNetwork, CreateProject};
use proto_types::{AllocationId, ProjectId};
use tests_support::objects::{self, IMAGE, SIZE, allocation_of, child, image, size, text};
use uuid::Uuid;

use crate::fixture::Control;

pub use tests_support::objects::GIB;

/// The partition that all of it is in.
const PARTITION: &str = "p1";

/// Tenant, project, size, image and networks. Returns the project and its network.
pub async fn catalogue(control: &Control) -> (ProjectId, String) {
    let project = ProjectId::new(Uuid::now_v7());
    let network = Uuid::now_v7().to_string();
    control
        .propose(objects::tenant("acme", None))
        .await
        .unwrap();
    control
        .propose(CreateProject {
            id: project,
            ..objects::project(1, "acme")
        })
        .await
        .unwrap();
    control.propose(CreateSize(size())).await.unwrap();
    control.propose(CreateImage(image(IMAGE))).await.unwrap();
    networks(control, project, &network).await;
    (project, network)
}

async fn networks(control: &Control, project: ProjectId, network: &str) {
    control
        .propose(CreateNetwork {
            partition: Some(text(PARTITION)),
            prefixes: vec!["10.64.0.0/16".parse().unwrap()],
            default_child_length: ChildLength {
                v4: Some(24),
                v6: None,
            },
            ..objects::network("tenants")
        })
        .await
        .unwrap();
    control
        .propose(CreateChildNetwork {
            project,
            partition: Some(text(PARTITION)),
            ..child(network, 1)
        })
        .await
        .unwrap();
}

/// For the project, on the one machine that there is.
pub async fn allocate(control: &Control, project: ProjectId, network: &str) {
    control
        .propose(AllocateMachine {
            id: AllocationId::new(Uuid::now_v7()),
            project,
            name: "web-1".into(),
            partition: Some(text(PARTITION)),
            size: Some(text(SIZE)),
            image: text(IMAGE),
            userdata: "I2Nsb3VkLWNvbmZpZwo=".into(),
            networks: vec![WantedNetwork {
                network: text(network),
                ips: vec![],
            }],
            seed: 1,
            ..allocation_of(1)
        })
        .await
        .unwrap();
}
