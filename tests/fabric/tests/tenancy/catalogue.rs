//! The site as an operator sets it up, through the public API.

use control_client::Client;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;

pub(crate) const PARTITION: &str = "p1";
pub(crate) const SIZE: &str = "small";
pub(crate) const ROUTED: &str = "routed-1.0.20260101";
pub(crate) const BRIDGED: &str = "bridged-1.0.20260101";

/// A project with a network. Both tenants' networks have the same prefix.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    pub(crate) project: String,
    pub(crate) network: String,
}

/// A partition with EVPN, and two tenants.
pub(crate) async fn set_up(client: &Client) -> [Tenant; 2] {
    let labels = [
        ("metalmesh.dev/fabric", "evpn"),
        ("metalmesh.dev/uplinks", "2"),
        ("metalmesh.dev/unknown-machines-per-minute", "1000"),
    ];
    let partition = api::Partition {
        id: PARTITION.into(),
        meta: Some(labelled(&labels)),
        ..Default::default()
    };
    let partition = Some(partition);
    let request = admin::PartitionServiceCreateRequest { partition };
    client.admin_partitions().create(request).await.unwrap();
    let size = Some(size());
    let request = admin::SizeServiceCreateRequest { size };
    client.admin_sizes().create(request).await.unwrap();
    for (id, networking) in [(ROUTED, "routed"), (BRIDGED, "bridged")] {
        let image = Some(image(id, networking));
        let request = admin::ImageServiceCreateRequest { image };
        client.admin_images().create(request).await.unwrap();
    }
    let request = admin::NetworkServiceCreateRequest {
        id: Some("tenants".into()),
        partition: Some(PARTITION.into()),
        r#type: api::NetworkType::SuperNamespaced.into(),
        prefixes: vec!["10.1.0.0/16".into()],
        default_child_prefix_length: Some(api::ChildPrefixLength {
            ipv4: Some(24),
            ipv6: None,
        }),
        ..Default::default()
    };
    client.admin_networks().create(request).await.unwrap();
    [tenant(client, "a").await, tenant(client, "b").await]
}

async fn tenant(client: &Client, name: &str) -> Tenant {
    let request = admin::TenantServiceCreateRequest {
        name: format!("tenant-{name}"),
        ..Default::default()
    };
    let made = client.admin_tenants().create(request).await.unwrap();
    let request = api::ProjectServiceCreateRequest {
        login: made.into_inner().tenant.unwrap().login,
        name: format!("project-{name}"),
        description: "machines of a test".into(),
        ..Default::default()
    };
    let made = client.projects().create(request).await.unwrap();
    let project = made.into_inner().project.unwrap().uuid;
    let request = api::NetworkServiceCreateRequest {
        project: project.clone(),
        name: Some(format!("network-{name}")),
        partition: Some(PARTITION.into()),
        parent_network: Some("tenants".into()),
        ..Default::default()
    };
    let made = client.networks().create(request).await.unwrap();
    let network = made.into_inner().network.unwrap();
    println!(
        "tenant {name}: {:?}, VRF {:?}",
        network.prefixes, network.vrf
    );
    Tenant {
        project,
        network: network.id,
    }
}

fn labelled(labels: &[(&str, &str)]) -> api::Meta {
    let labels = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let labels = labels.collect();
    api::Meta {
        labels: Some(api::Labels { labels }),
        ..Default::default()
    }
}

fn size() -> api::Size {
    use api::SizeConstraintType as Kind;
    let constraint = |kind: Kind, max| api::SizeConstraint {
        r#type: kind.into(),
        min: 1,
        max,
        identifier: None,
    };
    api::Size {
        id: SIZE.into(),
        constraints: vec![
            constraint(Kind::Cores, 64),
            constraint(Kind::Memory, 1 << 40),
            constraint(Kind::Storage, 2 << 40),
        ],
        ..Default::default()
    }
}

fn image(id: &str, networking: &str) -> api::Image {
    let digest = format!("sha256:{}", "fe".repeat(32));
    api::Image {
        id: id.into(),
        meta: Some(labelled(&[
            ("metalmesh.dev/digest", &digest),
            ("metalmesh.io/networking", networking),
        ])),
        url: "http://images.example/image.tar.zst".into(),
        features: vec![api::ImageFeature::Machine.into()],
        classification: api::ImageClassification::Supported.into(),
        ..Default::default()
    }
}
