//! The command line: global flags and the tree of commands.

use clap::{Parser, Subcommand};

use super::{
    apply, audit, ca, claim, cluster, component, context, doctor, explain, filesystem, firewall,
    get, identity, image, ip, join, login, machine, misc, network, node_allocation, partition,
    policy, pool, project, quota, release, rollout, settings, size, switch, task, tenant, token,
    user, vpn,
};
use crate::global_flags::GlobalFlags;

/// Manage bare-metal machines from the command line.
#[derive(Debug, Parser)]
#[command(
    name = "metalmesh",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) global: GlobalFlags,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// The commands. Doc comments are the help texts.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// List objects of any kind, and with --watch show their changes.
    Get(get::GetArgs),
    /// Log in with a browser and store the token in the context.
    Login(login::LoginArgs),
    /// Revoke the context's token and delete it from the context file.
    Logout(login::LogoutArgs),
    /// Manage contexts: servers, and the tokens to use with them.
    #[command(subcommand, visible_alias = "ctx")]
    Context(context::ContextCommand),
    /// Manage tenants, which own projects.
    #[command(subcommand)]
    Tenant(tenant::TenantCommand),
    /// Manage projects, to which machines, networks and IP addresses belong.
    #[command(subcommand)]
    Project(project::ProjectCommand),
    /// Manage quotas of tenants and projects.
    #[command(subcommand)]
    Quota(quota::QuotaCommand),
    /// Manage settings of the cluster: retention of the audit trail, limits for each user.
    #[command(subcommand)]
    Settings(settings::SettingsCommand),
    /// Manage site policies: authorisation rules of this site, written in Rego.
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Manage access tokens.
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Manage partitions: locations with machines and switches of their own.
    #[command(subcommand)]
    Partition(partition::PartitionCommand),
    /// Manage sizes: classes of machines by their hardware.
    #[command(subcommand)]
    Size(size::SizeCommand),
    /// Manage operating system images.
    #[command(subcommand)]
    Image(image::ImageCommand),
    /// Manage filesystem layouts.
    #[command(subcommand, visible_alias = "fsl")]
    Filesystem(filesystem::FilesystemCommand),
    /// Manage networks.
    #[command(subcommand)]
    Network(network::NetworkCommand),
    /// Manage IP addresses.
    #[command(subcommand)]
    Ip(ip::IpCommand),
    /// Manage machines.
    #[command(subcommand)]
    Machine(machine::MachineCommand),
    /// Claim hosts out of pools, without choosing a machine.
    #[command(subcommand)]
    Claim(claim::ClaimCommand),
    /// Manage pools of hosts that projects claim.
    #[command(subcommand)]
    Pool(pool::PoolCommand),
    /// Manage node allocations: machines held by resource class and traits.
    #[command(subcommand, visible_alias = "nalloc")]
    NodeAllocation(node_allocation::NodeAllocationCommand),
    /// Show and replace firewalls, manage their rules, and explain what they do.
    #[command(subcommand)]
    Firewall(firewall::FirewallCommand),
    /// Roll releases of agents out in waves: those of switches, BMCs, boot servers and firewalls.
    #[command(subcommand)]
    Rollout(rollout::RolloutCommand),
    /// Manage switches.
    #[command(subcommand)]
    Switch(switch::SwitchCommand),
    /// Manage components: those of the published stack, and those that work for a project.
    #[command(subcommand)]
    Component(component::ComponentCommand),
    /// Manage background tasks: orders to BMCs.
    #[command(subcommand)]
    Task(task::TaskCommand),
    /// Manage the VPN by which operators reach firewalls.
    #[command(subcommand)]
    Vpn(vpn::VpnCommand),
    /// Manage the control nodes: join, promote, remove, transfer leadership, back up.
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Manage the certificate authority of agents, machines and control nodes.
    #[command(subcommand)]
    Ca(ca::CaCommand),
    /// Manage one-time tickets with which agents join.
    #[command(subcommand)]
    Join(join::JoinCommand),
    /// Manage the identities of agents and machines, and their certificates.
    #[command(subcommand)]
    Identity(identity::IdentityCommand),
    /// Manage built-in users, who log in without an identity provider.
    #[command(subcommand)]
    User(user::UserCommand),
    /// Sign and verify releases of programs that replace themselves. Needs no server.
    #[command(subcommand)]
    Release(release::ReleaseCommand),
    /// Read and verify the audit trail.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Create and change objects as the documents of a YAML or JSON file say.
    Apply(apply::ApplyArgs),
    /// Change an object in the editor that VISUAL or EDITOR names.
    Edit(apply::EditArgs),
    /// Show the user of the token, with its tenants and projects.
    Whoami,
    /// List the methods that the token may call.
    Methods,
    /// Check this host, the control nodes and the fleet for problems.
    ///
    /// Prints one line for each finding: OK, WARN or FAIL, the finding, its consequence and the
    /// command that mends it. Exits with 0 if all checks pass, 1 after a warning, 2 after a failure.
    Doctor(doctor::DoctorArgs),
    /// Explain a code of an error, of a doctor's check or of a machine's issue. Needs no server.
    ///
    /// Prints what it means, its impact, how to detect it, the remedy, and how to verify that it is
    /// over: the same text as in the documentation.
    Explain(explain::CodeExplainArgs),
    /// Show the health of the control plane.
    Health,
    /// Show the version of this program and of the server.
    Version,
    /// Print a completion script for a shell.
    Completion(misc::CompletionArgs),
}

#[cfg(test)]
#[path = "command_line_tests.rs"]
mod tests;
