//! What an admin and a tenant set up: tenant, project, size, image, networks, allocation.

use std::collections::{BTreeMap, BTreeSet};

use control_state::{
    AllocateMachine, Classification, CreateChildNetwork, CreateImage, CreateNetwork, CreateProject,
    CreateSize, CreateTenant, Image, ImageFeature, NetworkType, Size, SizeConstraint,
    SizeConstraintType, WantedNetwork, label,
};
use proto_types::{AllocationId, ProjectId, Timestamp};
use uuid::Uuid;

use crate::fixture::Control;

pub const GIB: u64 = 1 << 30;

/// Tenant, project, size, image and networks. Returns the project and its network.
pub async fn catalogue(control: &Control) -> (ProjectId, String) {
    let project = ProjectId::new(Uuid::now_v7());
    let network = Uuid::now_v7().to_string();
    let tenant: proto_types::TenantId = "acme".parse().unwrap();
    control
        .propose(CreateTenant {
            login: tenant.clone(),
            name: "acme".into(),
            email: String::new(),
            description: String::new(),
            avatar_url: String::new(),
            labels: BTreeMap::new(),
            owner: None,
        })
        .await
        .unwrap();
    control
        .propose(CreateProject {
            id: project,
            tenant,
            name: "web".into(),
            description: String::new(),
            avatar_url: None,
            labels: BTreeMap::new(),
            owner: None,
        })
        .await
        .unwrap();
    size_and_image(control).await;
    networks(control, project, &network).await;
    (project, network)
}

async fn size_and_image(control: &Control) {
    let between = |kind, min, max| SizeConstraint {
        kind,
        min,
        max,
        identifier: None,
    };
    let size = Size {
        id: "small".parse().unwrap(),
        meta: Default::default(),
        name: None,
        description: None,
        constraints: vec![
            between(SizeConstraintType::Cores, 1, 4),
            between(SizeConstraintType::Memory, 0, 4 * GIB),
            between(SizeConstraintType::Storage, 0, 100 * GIB),
        ],
    };
    control.propose(CreateSize(size)).await.unwrap();
    let digest = format!("sha256:{}", "ab".repeat(32));
    let image = Image {
        id: "debian-12.0.20260101".parse().unwrap(),
        meta: control_state::Meta::labelled([(label::DIGEST.to_owned(), digest)].into()),
        url: "http://images.example/debian.tar.zst".into(),
        name: None,
        description: None,
        features: BTreeSet::from([ImageFeature::Machine]),
        classification: Classification::Supported,
        expires_at: Timestamp::from_ms(u64::MAX / 2),
    };
    control.propose(CreateImage(image)).await.unwrap();
}

async fn networks(control: &Control, project: ProjectId, network: &str) {
    let net = |text: &str| text.parse().unwrap();
    control
        .propose(CreateNetwork {
            id: "tenants".parse().unwrap(),
            kind: NetworkType::Super,
            name: None,
            description: None,
            partition: Some("p1".parse().unwrap()),
            project: None,
            labels: BTreeMap::new(),
            prefixes: vec![net("10.64.0.0/16")],
            destination_prefixes: vec![],
            default_child_length: control_state::ChildLength {
                v4: Some(24),
                v6: None,
            },
            min_child_length: Default::default(),
            nat: None,
            vrf: None,
            parent: None,
            additional_announcable_cidrs: vec![],
            length: Default::default(),
            family: None,
        })
        .await
        .unwrap();
    control
        .propose(CreateChildNetwork {
            id: network.parse().unwrap(),
            project,
            name: None,
            description: None,
            labels: BTreeMap::new(),
            partition: Some("p1".parse().unwrap()),
            parent: None,
            length: Default::default(),
            family: None,
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
            machine: None,
            name: "web-1".into(),
            description: String::new(),
            hostname: None,
            partition: Some("p1".parse().unwrap()),
            size: Some("small".parse().unwrap()),
            image: "debian-12.0.20260101".parse().unwrap(),
            layout: Some("default".parse().unwrap()),
            ssh_public_keys: vec!["ssh-ed25519 AAAA me".into()],
            userdata: "I2Nsb3VkLWNvbmZpZwo=".into(),
            labels: BTreeMap::new(),
            networks: vec![WantedNetwork {
                network: network.parse().unwrap(),
                ips: vec![],
            }],
            placement_labels: BTreeMap::new(),
            dns_servers: vec![],
            ntp_servers: vec![],
            kind: Default::default(),
            firewall_rules: Default::default(),
            vpn: None,
            seed: 1,
            idempotency: None,
        })
        .await
        .unwrap();
}
