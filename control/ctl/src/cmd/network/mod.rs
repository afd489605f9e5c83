//! `metalmesh network`.

mod clear;
mod trace;
mod tree;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{
    ChildPrefixLength, Network, NetworkQuery, NetworkServiceCreateRequest,
    NetworkServiceDeleteRequest, NetworkServiceGetRequest, NetworkServiceListBaseNetworksRequest,
    NetworkServiceListRequest, NetworkServiceUpdateRequest,
};

use super::{given, label_patch, server_lock};
use crate::app::App;
use crate::output::{TableRow, print_table};
use crate::text::{enum_value, labels};

use clear::NetworkClearArgs;

const KIND: &str = "metalstack.api.v2.NetworkType";
const FAMILY: &str = "metalstack.api.v2.NetworkAddressFamily";

#[derive(Debug, Subcommand)]
pub(crate) enum NetworkCommand {
    /// Create a child network of a project, or with --type any network, as an administrator.
    Create(Box<NetworkCreateArgs>),
    /// List networks as a tree.
    #[command(visible_alias = "list")]
    Ls {
        /// List the shared networks that machines of the project can use.
        #[arg(long)]
        base: bool,
    },
    /// Show a network.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the network.
        id: String,
    },
    /// Change a network's name, description or labels, or clear its lists as an administrator.
    Update(NetworkUpdateArgs),
    /// Follow a packet from a machine to an address, through desired and observed state, to where it
    /// stops. For administrators.
    Trace {
        /// Machine that sends: its id, a prefix of it, or the name of its allocation.
        #[arg(long, value_name = "MACHINE")]
        from: String,
        /// Destination address.
        #[arg(long, value_name = "ADDRESS")]
        to: std::net::IpAddr,
    },
    /// Delete an unused network.
    #[command(visible_alias = "delete")]
    Rm {
        /// Id of the network.
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct NetworkCreateArgs {
    /// Display name.
    #[arg(long)]
    name: Option<String>,
    /// Description, free text.
    #[arg(long)]
    description: Option<String>,
    /// Partition of the network; a child's prefix is taken from the partition's super network.
    #[arg(long)]
    partition: Option<String>,
    /// Network from which a child's prefix is taken, instead of the partition's super network.
    #[arg(long)]
    parent: Option<String>,
    /// Address family: ipv4, ipv6 or dual-stack; by default that of the parent.
    #[arg(long)]
    family: Option<String>,
    /// Prefix length of a child's IPv4 prefix.
    #[arg(long)]
    length_v4: Option<u32>,
    /// Prefix length of a child's IPv6 prefix.
    #[arg(long)]
    length_v6: Option<u32>,
    /// Type, as an administrator: external, underlay, super, super-namespaced, child or
    /// child-shared.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Id of the network, unless it is a child.
    #[arg(long, requires = "kind")]
    id: Option<String>,
    /// Prefix of the network, unless it is a child. Repeatable.
    #[arg(long = "prefix", value_name = "CIDR", requires = "kind")]
    prefixes: Vec<String>,
    /// Destination prefix that is routed through the network. Repeatable.
    #[arg(long = "destination", value_name = "CIDR", requires = "kind")]
    destinations: Vec<String>,
    /// Prefix length of children's IPv4 prefixes.
    #[arg(long, requires = "kind")]
    child_length_v4: Option<u32>,
    /// Prefix length of children's IPv6 prefixes.
    #[arg(long, requires = "kind")]
    child_length_v6: Option<u32>,
    /// Network address translation: none or ipv4-masq.
    #[arg(long, requires = "kind")]
    nat: Option<String>,
    /// Number of the VRF, which is also the VXLAN network identifier.
    #[arg(long, requires = "kind")]
    vrf: Option<u32>,
    /// Set a label. Repeatable.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NetworkUpdateArgs {
    /// Id of the network.
    id: String,
    /// Display name.
    #[arg(long)]
    name: Option<String>,
    /// Description, free text.
    #[arg(long)]
    description: Option<String>,
    /// Set (`a=b`) or remove (`a-`) a label. Repeatable.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    #[command(flatten)]
    emptied: NetworkClearArgs,
}

pub(crate) async fn run(app: &App, command: NetworkCommand) -> Result<()> {
    match command {
        NetworkCommand::Create(create) => app.output.one(&made(app, *create).await?),
        NetworkCommand::Ls { base } => list(app, base).await,
        NetworkCommand::Show { id } => app.output.one_with(&get(app, id).await?, details),
        NetworkCommand::Update(change) => app.output.one(&update(app, change).await?),
        NetworkCommand::Trace { from, to } => trace::run(app, &from, to).await,
        NetworkCommand::Rm { id } => app.output.one(&remove(app, id).await?),
    }
}

fn lengths(v4: Option<u32>, v6: Option<u32>) -> Option<ChildPrefixLength> {
    (v4.is_some() || v6.is_some()).then_some(ChildPrefixLength { ipv4: v4, ipv6: v6 })
}

async fn made(app: &App, create: NetworkCreateArgs) -> Result<Network> {
    let family = create
        .family
        .as_deref()
        .map(|text| enum_value(FAMILY, text))
        .transpose()?;
    let length = lengths(create.length_v4, create.length_v6);
    let labels = labels(&create.labels)?;
    let Some(kind) = create.kind else {
        let request = NetworkServiceCreateRequest {
            project: app.need_project().await?,
            name: create.name,
            description: create.description,
            partition: create.partition,
            labels,
            parent_network: create.parent,
            length,
            address_family: family,
        };
        return given(
            app.client
                .networks()
                .create(request)
                .await?
                .into_inner()
                .network,
        );
    };
    let nat = create
        .nat
        .as_deref()
        .map(|text| enum_value("metalstack.api.v2.NATType", text));
    let is_child = kind.to_ascii_lowercase().contains("child");
    let request = admin::NetworkServiceCreateRequest {
        id: create.id,
        name: create.name,
        description: create.description,
        partition: create.partition,
        // Only children belong to a project. The context's default project must not reach the
        // request for another network, which the server would refuse.
        project: if is_child { app.project().await? } else { None },
        r#type: enum_value(KIND, &kind)?,
        labels,
        prefixes: create.prefixes,
        destination_prefixes: create.destinations,
        default_child_prefix_length: lengths(create.child_length_v4, create.child_length_v6),
        min_child_prefix_length: None,
        nat_type: nat.transpose()?,
        vrf: create.vrf,
        parent_network: create.parent,
        additional_announcable_cidrs: Vec::new(),
        length,
        address_family: family,
    };
    given(
        app.client
            .admin_networks()
            .create(request)
            .await?
            .into_inner()
            .network,
    )
}

async fn get(app: &App, id: String) -> Result<Network> {
    if let Some(project) = app.project().await? {
        let request = NetworkServiceGetRequest { id, project };
        return given(
            app.client
                .networks()
                .get(request)
                .await?
                .into_inner()
                .network,
        );
    }
    get_as_admin(app, id).await
}

async fn get_as_admin(app: &App, id: String) -> Result<Network> {
    let request = admin::NetworkServiceGetRequest { id };
    given(
        app.client
            .admin_networks()
            .get(request)
            .await?
            .into_inner()
            .network,
    )
}

async fn update(app: &App, change: NetworkUpdateArgs) -> Result<Network> {
    let NetworkUpdateArgs {
        id,
        name,
        description,
        labels,
        emptied,
    } = change;
    let labels = label_patch(&labels)?;
    // Only the admin service can change these lists.
    let project = match emptied.any() {
        true => None,
        false => app.project().await?,
    };
    if let Some(project) = project {
        let update_meta = server_lock();
        let request = NetworkServiceUpdateRequest {
            id,
            update_meta,
            project,
            name,
            description,
            labels,
        };
        return given(
            app.client
                .networks()
                .update(request)
                .await?
                .into_inner()
                .network,
        );
    }
    // The admin update replaces all prefixes: send the current ones again, so that none is removed.
    let current = get_as_admin(app, id.clone()).await?;
    let mut request = admin::NetworkServiceUpdateRequest {
        id,
        update_meta: server_lock(),
        name,
        description,
        labels,
        prefixes: current.prefixes,
        destination_prefixes: current.destination_prefixes,
        additional_announcable_cidrs: current.additional_announcable_cidrs,
        ..Default::default()
    };
    emptied.fill(&mut request);
    given(
        app.client
            .admin_networks()
            .update(request)
            .await?
            .into_inner()
            .network,
    )
}

async fn remove(app: &App, id: String) -> Result<Network> {
    if let Some(project) = app.project().await? {
        let request = NetworkServiceDeleteRequest { id, project };
        return given(
            app.client
                .networks()
                .delete(request)
                .await?
                .into_inner()
                .network,
        );
    }
    let request = admin::NetworkServiceDeleteRequest { id };
    given(
        app.client
            .admin_networks()
            .delete(request)
            .await?
            .into_inner()
            .network,
    )
}

async fn list(app: &App, base: bool) -> Result<()> {
    let query = Some(NetworkQuery::default());
    let networks = match (app.project().await?, base) {
        (Some(project), false) => {
            let request = NetworkServiceListRequest { project, query };
            app.client
                .networks()
                .list(request)
                .await?
                .into_inner()
                .networks
        }
        (Some(project), true) => {
            let request = NetworkServiceListBaseNetworksRequest { project, query };
            app.client
                .networks()
                .list_base_networks(request)
                .await?
                .into_inner()
                .networks
        }
        (None, true) => bail!("--base needs a project; use --project PROJECT"),
        (None, false) => {
            let request = admin::NetworkServiceListRequest { query };
            app.client
                .admin_networks()
                .list(request)
                .await?
                .into_inner()
                .networks
        }
    };
    if !app.output.is_table() {
        return app.output.list(&networks);
    }
    let wide = app.output.is_wide();
    print_table(&Network::titles(wide), tree::rows(&networks, wide));
    Ok(())
}

fn details(network: &Network) {
    let titles = Network::titles(true);
    for (title, cell) in titles.into_iter().zip(network.cells(true)) {
        outln!("{:<14}{cell}", format!("{title}:"));
    }
}
