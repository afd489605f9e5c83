//! What people type.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cmd::{
    apply, audit, ca, cluster, component, context, doctor, filesystem, get, identity, image, ip,
    join, login, machine, misc, network, partition, policy, project, quota, settings, size, switch,
    task, tenant, token, user, vpn,
};
use crate::output::Format;

/// Bare-metal machines from the command line.
#[derive(Debug, Parser)]
#[command(
    name = "metalmesh",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// How to print results: table, wide, json, yaml or jsonpath=TEMPLATE.
    ///
    /// The template is text with paths in braces, filled for each object on a line of its own:
    /// jsonpath='{.uuid} {.allocation.networks[*].ips[0]}'.
    #[arg(
        short,
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub(crate) output: Format,
    /// The context file [default: METALMESH_CONFIG, or ~/.config/metalmesh/config.yaml].
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The context to use instead of the current one.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The server, instead of the context's.
    ///
    /// A context is for one server: its token is not sent to another server (another scheme, host
    /// or port). METALMESH_TOKEN_FILE names the token for that.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) api_url: Option<String>,
    /// The project, by id or name, instead of the context's.
    #[arg(short, long, global = true, value_name = "PROJECT")]
    pub(crate) project: Option<String>,
    /// Ask as an administrator, over all projects.
    #[arg(short = 'A', long, global = true, conflicts_with = "project")]
    pub(crate) all: bool,
    /// Say what would be done, and do nothing: the server checks everything and answers as it
    /// would.
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    /// Show what happens on the way, on stderr.
    #[arg(long, global = true)]
    pub(crate) debug: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show objects of any kind, and with --watch what changes of them.
    Get(get::Get),
    /// Log in with a browser; the context keeps the token.
    Login(login::Login),
    /// End the context's token and forget it.
    Logout(login::Logout),
    /// Servers and who one is there.
    #[command(subcommand, visible_alias = "ctx")]
    Context(context::Command),
    /// Tenants: who pays and owns projects.
    #[command(subcommand)]
    Tenant(tenant::Command),
    /// Projects: what machines, networks and addresses belong to.
    #[command(subcommand)]
    Project(project::Command),
    /// Quotas: how much tenants and projects may have.
    #[command(subcommand)]
    Quota(quota::Command),
    /// Settings of the cluster: how long the audit trail is kept, how much one user may have.
    #[command(subcommand)]
    Settings(settings::Command),
    /// Site policies: rules of this site about who may do what, in Rego.
    #[command(subcommand)]
    Policy(policy::Command),
    /// Access tokens.
    #[command(subcommand)]
    Token(token::Command),
    /// Partitions: places with machines.
    #[command(subcommand)]
    Partition(partition::Command),
    /// Sizes: kinds of machines.
    #[command(subcommand)]
    Size(size::Command),
    /// Operating system images.
    #[command(subcommand)]
    Image(image::Command),
    /// Filesystem layouts.
    #[command(subcommand, visible_alias = "fsl")]
    Filesystem(filesystem::Command),
    /// Networks.
    #[command(subcommand)]
    Network(network::Command),
    /// IP addresses.
    #[command(subcommand)]
    Ip(ip::Command),
    /// Machines.
    #[command(subcommand)]
    Machine(machine::Command),
    /// Switches.
    #[command(subcommand)]
    Switch(switch::Command),
    /// Components: of the published stack, and those that work for a project.
    #[command(subcommand)]
    Component(component::Command),
    /// What goes on in the background: orders to BMCs.
    #[command(subcommand)]
    Task(task::Command),
    /// The VPN by which operators reach firewalls.
    #[command(subcommand)]
    Vpn(vpn::Command),
    /// The control nodes: joining, promotion, removal, who leads.
    #[command(subcommand)]
    Cluster(cluster::Command),
    /// The certificate authority of agents, machines and control nodes.
    #[command(subcommand)]
    Ca(ca::Command),
    /// One-time tickets by which agents join.
    #[command(subcommand)]
    Join(join::Command),
    /// Who has certificates: agents and machines.
    #[command(subcommand)]
    Identity(identity::Command),
    /// Built-in users: who logs in where no provider knows the people.
    #[command(subcommand)]
    User(user::Command),
    /// Who did what.
    #[command(subcommand)]
    Audit(audit::Command),
    /// Make objects what the documents of a YAML or JSON file say.
    Apply(apply::Apply),
    /// Change an object in an editor: VISUAL or EDITOR.
    Edit(apply::Edit),
    /// Who the server thinks that one is.
    Whoami,
    /// Methods that one may call.
    Methods,
    /// Look for what is wrong: here, with the control nodes, with the fleet.
    ///
    /// One line for each finding: OK, WARN or FAIL, what it is, why it matters, what mends it. Ends
    /// with 0 when all is well, 1 with a warning, 2 with a failure.
    Doctor(doctor::Doctor),
    /// Health of the control plane.
    Health,
    /// Version of this program and of the server.
    Version,
    /// A completion script for a shell.
    Completion(misc::Completion),
}
