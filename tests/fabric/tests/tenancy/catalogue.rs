//! The site as an operator sets it up, through the public API.

use control_client::Client;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;

pub(crate) const PARTITION: &str = "p1";
pub(crate) const SIZE: &str = "small";
pub(crate) const ROUTED: &str = "routed-1.0.20260101";
pub(crate) const BRIDGED: &str = "bridged-1.0.20260101";
pub(crate) const FIREWALL: &str = "firewall-1.0.20260101";

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
    use api::ImageFeature as Feature;
    for (id, networking, feature) in [
        (ROUTED, Some("routed"), Feature::Machine),
        (BRIDGED, Some("bridged"), Feature::Machine),
        (FIREWALL, None, Feature::Firewall),
    ] {
        let image = Some(image(id, networking, feature));
        let request = admin::ImageServiceCreateRequest { image };
        client.admin_images().create(request).await.unwrap();
    }
    let request = admin::NetworkServiceCreateRequest {
        id: Some("tenants".into()),
        r#type: api::NetworkType::SuperNamespaced.into(),
        // The same numbers as the underlay's, which no tenant's machine may meet.
        prefixes: vec!["10.0.0.0/16".into(), "2001:db8::/48".into()],
        default_child_prefix_length: Some(api::ChildPrefixLength {
            ipv4: Some(24),
            ipv6: Some(64),
        }),
        ..Default::default()
    };
    client.admin_networks().create(request).await.unwrap();
    [tenant(client, "a").await, tenant(client, "b").await]
}

/// Networks that a firewall needs: outside and underlay.
pub(crate) async fn add_firewall_networks(client: &Client) {
    for (id, kind, prefix, vrf) in [
        (
            "internet",
            api::NetworkType::External,
            "192.0.2.0/24",
            Some(100),
        ),
        ("underlay", api::NetworkType::Underlay, "10.9.0.0/24", None),
    ] {
        let request = admin::NetworkServiceCreateRequest {
            id: Some(id.into()),
            partition: Some(PARTITION.into()),
            r#type: kind.into(),
            prefixes: vec![prefix.into()],
            vrf,
            destination_prefixes: outside(kind),
            nat_type: nat(kind),
            ..Default::default()
        };
        client.admin_networks().create(request).await.unwrap();
    }
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

fn image(id: &str, networking: Option<&str>, feature: api::ImageFeature) -> api::Image {
    let digest = format!("sha256:{}", "fe".repeat(32));
    let mut labels = vec![("metalmesh.dev/digest", digest.as_str())];
    labels.extend(networking.map(|mode| ("metalmesh.dev/networking", mode)));
    api::Image {
        id: id.into(),
        meta: Some(labelled(&labels)),
        url: "http://images.example/image.tar.zst".into(),
        features: vec![feature.into()],
        classification: api::ImageClassification::Supported.into(),
        ..Default::default()
    }
}

/// Everything is reached through the network outside.
fn outside(kind: api::NetworkType) -> Vec<String> {
    let is_external = kind == api::NetworkType::External;
    Vec::from_iter(is_external.then(|| "0.0.0.0/0".to_owned()))
}

fn nat(kind: api::NetworkType) -> Option<i32> {
    let is_external = kind == api::NetworkType::External;
    is_external.then(|| api::NatType::Ipv4Masquerade.into())
}
