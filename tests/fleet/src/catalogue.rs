//! What an operator sets up before the first machine comes: through the public API.

use anyhow::{Context, Result};
use control_client::Client;
use proto_public::admin::v2::{self as admin};
use proto_public::api::v2::{self as api};

use crate::plan::{Plan, partition_name};

pub(crate) const SIZE: &str = "fleet";
pub(crate) const IMAGE: &str = "debian-12.0.20260101";
const TENANT: &str = "fleet";

/// Who rents machines.
#[derive(Debug, Clone)]
pub(crate) struct Tenant {
    pub(crate) project: String,
    /// Of the project alone.
    pub(crate) token: String,
    /// One network in each partition.
    pub(crate) networks: Vec<String>,
}

/// Partitions, a size, an image, a tenant with a project and its networks.
///
/// # Errors
/// What control refuses.
pub(crate) async fn set_up(admin: &Client, plan: Plan, bmc_nonce: bool) -> Result<Tenant> {
    for partition in 0..plan.partitions {
        let partition = api::Partition {
            id: partition_name(partition),
            meta: Some(partition_meta(bmc_nonce)),
            ..Default::default()
        };
        let request = admin::PartitionServiceCreateRequest {
            partition: Some(partition),
        };
        admin
            .admin_partitions()
            .create(request)
            .await
            .context("partition")?;
    }
    let request = admin::SizeServiceCreateRequest { size: Some(size()) };
    admin.admin_sizes().create(request).await.context("size")?;
    let request = admin::ImageServiceCreateRequest {
        image: Some(image()),
    };
    admin
        .admin_images()
        .create(request)
        .await
        .context("image")?;
    let (project, token) = tenant(admin).await?;
    let mut networks = Vec::new();
    for partition in 0..plan.partitions {
        networks.push(network(admin, partition, &project).await?);
    }
    Ok(Tenant {
        project,
        token,
        networks,
    })
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
            constraint(Kind::Memory, 512 << 30),
            constraint(Kind::Storage, 2 << 40),
        ],
        ..Default::default()
    }
}

/// The whole fleet is powered on at once: unknown machines are not bounded.
fn partition_meta(bmc_nonce: bool) -> api::Meta {
    let mut meta = labelled("metalmesh.dev/unknown-machines-per-minute", "100000");
    if let (Some(labels), true) = (&mut meta.labels, bmc_nonce) {
        let demanded = ("metalmesh.dev/require-bmc-nonce", "true");
        labels.labels.insert(demanded.0.into(), demanded.1.into());
    }
    meta
}

fn labelled(label: &str, value: &str) -> api::Meta {
    let labels = [(label.to_owned(), value.to_owned())].into();
    api::Meta {
        labels: Some(api::Labels { labels }),
        ..Default::default()
    }
}

fn image() -> api::Image {
    let digest = format!("sha256:{}", "fe".repeat(32));
    api::Image {
        id: IMAGE.into(),
        meta: Some(labelled("metalmesh.dev/digest", &digest)),
        url: "http://images.example/debian.tar.zst".into(),
        features: vec![api::ImageFeature::Machine.into()],
        classification: api::ImageClassification::Supported.into(),
        ..Default::default()
    }
}

/// A project, and a token that is good for it alone.
async fn tenant(admin: &Client) -> Result<(String, String)> {
    let request = admin::TenantServiceCreateRequest {
        name: TENANT.into(),
        ..Default::default()
    };
    let made = admin
        .admin_tenants()
        .create(request)
        .await
        .context("tenant")?;
    let login = made.into_inner().tenant.context("no tenant")?.login;
    let request = api::ProjectServiceCreateRequest {
        login: login.clone(),
        name: TENANT.into(),
        description: "machines of a rehearsal".into(),
        ..Default::default()
    };
    let made = admin.projects().create(request).await.context("project")?;
    let project = made.into_inner().project.context("no project")?.uuid;
    let roles = [(project.clone(), api::ProjectRole::Editor.into())];
    let inner = api::TokenServiceCreateRequest {
        description: "rehearsal".into(),
        project_roles: roles.into(),
        ..Default::default()
    };
    let request = admin::TokenServiceCreateRequest {
        user: Some(login),
        token_create_request: Some(inner),
    };
    let made = admin
        .admin_tokens()
        .create(request)
        .await
        .context("token")?;
    Ok((project, made.into_inner().secret))
}

async fn network(admin: &Client, partition: usize, project: &str) -> Result<String> {
    let name = partition_name(partition);
    let request = admin::NetworkServiceCreateRequest {
        id: Some(format!("tenants-{}", partition + 1)),
        partition: Some(name.clone()),
        r#type: api::NetworkType::Super.into(),
        prefixes: vec![format!("10.{partition}.0.0/16")],
        default_child_prefix_length: Some(api::ChildPrefixLength {
            ipv4: Some(18),
            ipv6: None,
        }),
        ..Default::default()
    };
    admin
        .admin_networks()
        .create(request)
        .await
        .context("super network")?;
    let request = api::NetworkServiceCreateRequest {
        project: project.to_owned(),
        name: Some(name.clone()),
        partition: Some(name),
        ..Default::default()
    };
    let made = admin.networks().create(request).await.context("network")?;
    Ok(made.into_inner().network.context("no network")?.id)
}
