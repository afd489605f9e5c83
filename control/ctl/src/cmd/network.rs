//! `metalmesh network`.

use std::collections::BTreeMap;

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
use crate::output::{Row, print_table};
use crate::text::{enum_value, labels};

/// The prefix that stands for an empty list in an update.
const NO_PREFIX: &str = "0.0.0.0/32";

const KIND: &str = "metalstack.api.v2.NetworkType";
const FAMILY: &str = "metalstack.api.v2.NetworkAddressFamily";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a network: a project's child network, or with --type any other as an administrator.
    Create(Box<Create>),
    /// List networks as a tree.
    #[command(visible_alias = "list")]
    Ls {
        /// Those that machines can use beside the project's own.
        #[arg(long)]
        base: bool,
    },
    /// Show a network.
    #[command(visible_alias = "describe")]
    Show { id: String },
    /// Change a network's name, description or labels; as an administrator empty its lists.
    Update(Update),
    /// Delete an unused network.
    #[command(visible_alias = "delete")]
    Rm { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    #[arg(long)]
    name: Option<String>,
    #[arg(long)]
    description: Option<String>,
    /// Partition of the network; of a child the one whose super network it is cut from.
    #[arg(long)]
    partition: Option<String>,
    /// Cut a child from this network instead of the partition's super network.
    #[arg(long)]
    parent: Option<String>,
    /// ipv4, ipv6 or dual-stack; what the parent has without it.
    #[arg(long)]
    family: Option<String>,
    /// Prefix length of a child's IPv4 prefix.
    #[arg(long)]
    length_v4: Option<u32>,
    /// Prefix length of a child's IPv6 prefix.
    #[arg(long)]
    length_v6: Option<u32>,
    /// As an administrator: external, underlay, super, super-namespaced, child or child-shared.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Id of a network that is no child.
    #[arg(long, requires = "kind")]
    id: Option<String>,
    /// Prefix of a network that is no child.
    #[arg(long = "prefix", value_name = "CIDR", requires = "kind")]
    prefixes: Vec<String>,
    /// What is reached through it.
    #[arg(long = "destination", value_name = "CIDR", requires = "kind")]
    destinations: Vec<String>,
    /// Prefix length of children's IPv4 prefixes.
    #[arg(long, requires = "kind")]
    child_length_v4: Option<u32>,
    /// Prefix length of children's IPv6 prefixes.
    #[arg(long, requires = "kind")]
    child_length_v6: Option<u32>,
    /// none or ipv4-masq.
    #[arg(long, requires = "kind")]
    nat: Option<String>,
    /// VRF, which is the VXLAN network identifier as well.
    #[arg(long, requires = "kind")]
    vrf: Option<u32>,
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Update {
    id: String,
    #[arg(long)]
    name: Option<String>,
    #[arg(long)]
    description: Option<String>,
    /// Set (`a=b`) or remove (`a-`) a label.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    #[command(flatten)]
    emptied: Emptied,
}

/// Lists that an administrator's update empties.
#[derive(Debug, Args)]
struct Emptied {
    /// Remove all destination prefixes.
    #[arg(long)]
    no_destinations: bool,
    /// Remove all additional announcable prefixes; needs --force.
    #[arg(long)]
    no_announcable: bool,
    /// Remove announcable prefixes although machines may still announce them.
    #[arg(long, requires = "no_announcable")]
    force: bool,
}

impl Emptied {
    fn any(&self) -> bool {
        self.no_destinations || self.no_announcable
    }

    /// Puts the prefix that stands for an empty list into lists that are to be emptied.
    fn fill(&self, request: &mut admin::NetworkServiceUpdateRequest) {
        if self.no_destinations {
            request.destination_prefixes = vec![NO_PREFIX.to_owned()];
        }
        if self.no_announcable {
            request.additional_announcable_cidrs = vec![NO_PREFIX.to_owned()];
        }
        request.force = self.force;
    }
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Create(create) => app.output.one(&made(app, *create).await?),
        Command::Ls { base } => list(app, base).await,
        Command::Show { id } => app.output.one_with(&get(app, id).await?, details),
        Command::Update(change) => app.output.one(&update(app, change).await?),
        Command::Rm { id } => app.output.one(&remove(app, id).await?),
    }
}

fn lengths(v4: Option<u32>, v6: Option<u32>) -> Option<ChildPrefixLength> {
    (v4.is_some() || v6.is_some()).then_some(ChildPrefixLength { ipv4: v4, ipv6: v6 })
}

async fn made(app: &App, create: Create) -> Result<Network> {
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
        // A default project is for children; other networks belong to nobody.
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

async fn update(app: &App, change: Update) -> Result<Network> {
    let Update {
        id,
        name,
        description,
        labels,
        emptied,
    } = change;
    let labels = label_patch(&labels)?;
    // A project's owner has no say over these lists.
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
    // An administrator's update replaces the prefixes: send those that are there.
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
    print_table(&Network::titles(wide), tree(&networks, wide));
    Ok(())
}

/// Rows in the order of the tree, children indented below their parent.
fn tree(networks: &[Network], wide: bool) -> Vec<Vec<String>> {
    let known = |id: &str| networks.iter().any(|network| network.id == id);
    let mut children: BTreeMap<Option<&str>, Vec<&Network>> = BTreeMap::new();
    for network in networks {
        // A parent that one may not see makes its child a root.
        let parent = network
            .parent_network
            .as_deref()
            .filter(|parent| known(parent));
        children.entry(parent).or_default().push(network);
    }
    let mut rows = Vec::new();
    branch(&children, None, "", wide, &mut rows);
    rows
}

fn branch(
    children: &BTreeMap<Option<&str>, Vec<&Network>>,
    parent: Option<&str>,
    indent: &str,
    wide: bool,
    rows: &mut Vec<Vec<String>>,
) {
    let Some(here) = children.get(&parent) else {
        return;
    };
    for (at, network) in here.iter().enumerate() {
        let last = at + 1 == here.len();
        let (mark, next) = match (parent.is_none(), last) {
            (true, _) => (String::new(), String::new()),
            (false, true) => (format!("{indent}\u{2514}\u{2500}"), format!("{indent}  ")),
            (false, false) => (
                format!("{indent}\u{251c}\u{2500}"),
                format!("{indent}\u{2502} "),
            ),
        };
        let mut cells = network.cells(wide);
        if let Some(first) = cells.first_mut() {
            first.insert_str(0, &mark);
        }
        rows.push(cells);
        // A network that names itself as parent is never reached: it is below no root.
        branch(children, Some(&network.id), &next, wide, rows);
    }
}

fn details(network: &Network) {
    let titles = Network::titles(true);
    for (title, cell) in titles.into_iter().zip(network.cells(true)) {
        outln!("{:<14}{cell}", format!("{title}:"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_lists_are_emptied() {
        let filled = |no_destinations, no_announcable| {
            let mut request = admin::NetworkServiceUpdateRequest {
                destination_prefixes: vec!["0.0.0.0/0".into()],
                additional_announcable_cidrs: vec!["10.200.0.0/16".into()],
                ..Default::default()
            };
            let emptied = Emptied {
                no_destinations,
                no_announcable,
                force: no_announcable,
            };
            emptied.fill(&mut request);
            assert_eq!(emptied.any(), no_destinations || no_announcable);
            let [destinations, announcable] = [
                request.destination_prefixes.concat(),
                request.additional_announcable_cidrs.concat(),
            ];
            (destinations, announcable, request.force)
        };
        let expect = |a: &str, b: &str, force| (a.to_owned(), b.to_owned(), force);
        let all = [("0.0.0.0/0", false), (NO_PREFIX, true)];
        for (destinations, no_destinations) in all {
            for (announcable, no_announcable) in [("10.200.0.0/16", false), (NO_PREFIX, true)] {
                assert_eq!(
                    filled(no_destinations, no_announcable),
                    expect(destinations, announcable, no_announcable)
                );
            }
        }
    }

    #[test]
    fn the_tree_shows_every_network_once() {
        let network = |id: &str, parent: Option<&str>| Network {
            id: id.into(),
            parent_network: parent.map(Into::into),
            ..Default::default()
        };
        let networks = [
            network("child-1", Some("super")),
            network("super", None),
            network("orphan", Some("unseen")),
            network("child-2", Some("super")),
        ];
        let rows = tree(&networks, false);
        let ids: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(
            ids,
            [
                "super",
                "\u{251c}\u{2500}child-1",
                "\u{2514}\u{2500}child-2",
                "orphan"
            ]
        );
    }
}
