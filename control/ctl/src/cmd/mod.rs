//! The commands, one module for each resource.

pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod ca;
pub(crate) mod claim;
pub(crate) mod cluster;
mod command_line;
pub(crate) mod component;
pub(crate) mod context;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod filesystem;
pub(crate) mod firewall;
pub(crate) mod get;
pub(crate) mod identity;
pub(crate) mod image;
mod invite;
pub(crate) mod ip;
pub(crate) mod join;
pub(crate) mod login;
pub(crate) mod machine;
pub(crate) mod misc;
pub(crate) mod network;
pub(crate) mod node_allocation;
pub(crate) mod partition;
pub(crate) mod policy;
pub(crate) mod pool;
pub(crate) mod project;
pub(crate) mod quota;
pub(crate) mod release;
pub(crate) mod rollout;
pub(crate) mod settings;
pub(crate) mod size;
mod size_images;
mod size_reservation;
pub(crate) mod switch;
pub(crate) mod task;
pub(crate) mod tenant;
pub(crate) mod token;
pub(crate) mod user;
pub(crate) mod vpn;

use anyhow::{Context as _, Result, bail};
use proto_public::api::v2::{
    Labels, LabelsPatch, OptimisticLockingStrategy, UpdateLabels, UpdateMeta, update_labels,
};

use crate::app::App;
use crate::global_flags::GlobalFlags;
use crate::text::pairs;

use command_line::CliCommand;
pub(crate) use command_line::CommandLine;

/// `true` if the command changes files of this host, so that no server can try it.
fn is_local(command: &CliCommand) -> bool {
    matches!(
        command,
        CliCommand::Context(_)
            | CliCommand::Login(_)
            | CliCommand::Logout(_)
            | CliCommand::Cluster(cluster::ClusterCommand::Init(_))
            | CliCommand::Audit(audit::AuditCommand::Export { .. })
    ) || matches!(
        command,
        CliCommand::Cluster(cluster::ClusterCommand::Join(join)) if join.is_local()
    ) || matches!(command, CliCommand::Release(command) if release::writes(command))
}

fn check_dry_run(cli: &CommandLine) -> Result<()> {
    if cli.global.dry_run && is_local(&cli.command) {
        bail!(
            "this command changes files of this host, which --dry-run cannot prevent; leave \
             --dry-run out"
        );
    }
    Ok(())
}

/// Runs a command that needs no server, or hands it back as `Some`. These commands run before
/// `App::new`, which fails where no server is configured.
fn run_offline(global: &GlobalFlags, command: CliCommand) -> Result<Option<CliCommand>> {
    match command {
        CliCommand::Completion(command) => misc::completion(&command)?,
        CliCommand::Explain(command) => explain::run(&global.output, &command)?,
        CliCommand::Cluster(cluster::ClusterCommand::Init(init)) => cluster::init(&init)?,
        CliCommand::Cluster(cluster::ClusterCommand::Join(join)) if join.is_local() => {
            cluster::invite::join_here(&join)?;
        }
        CliCommand::Cluster(cluster::ClusterCommand::Backup(backup)) if backup.list => {
            cluster::backup::list(&global.output, &backup)?;
        }
        CliCommand::Release(command) => release::run(&global.output, command)?,
        CliCommand::Audit(command) => match audit::file_to_verify(&command) {
            Some((verify, path)) => audit::verify_file(&global.output, verify, path)?,
            None => return Ok(Some(CliCommand::Audit(command))),
        },
        CliCommand::Policy(command) => {
            let command = policy::offline(&global.output, command)?;
            return Ok(command.map(CliCommand::Policy));
        }
        command => return Ok(Some(command)),
    }
    Ok(None)
}

/// Runs a command.
///
/// # Errors
/// Those of the command, and `--dry-run` with a command that works on this host alone.
pub(crate) async fn run(cli: CommandLine) -> Result<()> {
    check_dry_run(&cli)?;
    let command = match cli.command {
        CliCommand::Context(command) => return context::run(&cli.global, command),
        CliCommand::Login(command) => return login::login(&cli.global, &command).await,
        CliCommand::Logout(logout) => return login::logout(&cli.global, &logout).await,
        CliCommand::Doctor(command) => return doctor::run(&cli.global, &command).await,
        CliCommand::Version => return misc::version(&cli.global).await,
        command => command,
    };
    let Some(command) = run_offline(&cli.global, command)? else {
        return Ok(());
    };
    let app = App::new(&cli.global)?;
    match command {
        CliCommand::Get(command) => get::run(&app, command).await,
        CliCommand::Tenant(command) => tenant::run(&app, command).await,
        CliCommand::Project(command) => project::run(&app, command).await,
        CliCommand::Firewall(command) => firewall::run(&app, command).await,
        CliCommand::Rollout(command) => rollout::run(&app, command).await,
        CliCommand::Quota(command) => quota::run(&app, command).await,
        CliCommand::Settings(command) => settings::run(&app, command).await,
        CliCommand::Policy(command) => policy::run(&app, command).await,
        CliCommand::Token(command) => token::run(&app, &cli.global, command).await,
        CliCommand::Partition(command) => partition::run(&app, command).await,
        CliCommand::Size(command) => size::run(&app, command).await,
        CliCommand::Image(command) => image::run(&app, command).await,
        CliCommand::Filesystem(command) => filesystem::run(&app, command).await,
        CliCommand::Network(command) => network::run(&app, command).await,
        CliCommand::Ip(command) => ip::run(&app, command).await,
        CliCommand::Machine(command) => machine::run(&app, command).await,
        CliCommand::Claim(command) => claim::run(&app, command).await,
        CliCommand::Pool(command) => pool::run(&app, command).await,
        CliCommand::NodeAllocation(command) => node_allocation::run(&app, command).await,
        CliCommand::Switch(command) => switch::run(&app, command).await,
        CliCommand::Component(command) => component::run(&app, command).await,
        CliCommand::Task(command) => task::run(&app, command).await,
        CliCommand::Vpn(command) => vpn::run(&app, command).await,
        CliCommand::Ca(command) => ca::run(&app, command).await,
        CliCommand::Cluster(command) => cluster::run(&app, command).await,
        CliCommand::Identity(command) => identity::run(&app, command).await,
        CliCommand::Join(command) => join::run(&app, command).await,
        CliCommand::Audit(command) => audit::run(&app, command).await,
        CliCommand::User(command) => user::run(&app, command).await,
        CliCommand::Apply(command) => apply::apply(&app, &command).await,
        CliCommand::Edit(command) => apply::edit(&app, &command).await,
        CliCommand::Whoami => misc::whoami(&app).await,
        CliCommand::Methods => misc::methods(&app).await,
        CliCommand::Health => misc::health(&app).await,
        CliCommand::Context(_)
        | CliCommand::Login(_)
        | CliCommand::Logout(_)
        | CliCommand::Completion(_)
        | CliCommand::Doctor(_)
        | CliCommand::Explain(_)
        | CliCommand::Release(_)
        | CliCommand::Version => Ok(()),
    }
}

/// The object of an answer.
///
/// # Errors
/// The server answered without it.
fn given<T>(part: Option<T>) -> Result<T> {
    part.context("the server's answer lacks the object")
}

/// Optimistic locking by the server: the update applies to the newest state, whatever the caller
/// read before.
fn server_lock() -> Option<UpdateMeta> {
    let strategy = OptimisticLockingStrategy::Server;
    Some(UpdateMeta {
        updated_at: None,
        locking_strategy: strategy.into(),
    })
}

/// Labels to set (`a=b`) and to remove (`a-`). `None` means no label changes.
fn label_patch(flags: &[String]) -> Result<Option<UpdateLabels>> {
    if flags.is_empty() {
        return Ok(None);
    }
    let is_removal = |flag: &&String| flag.ends_with('-') && !flag.contains('=');
    let (remove, set): (Vec<&String>, Vec<&String>) = flags.iter().partition(is_removal);
    let set: Vec<String> = set.into_iter().cloned().collect();
    let patch = LabelsPatch {
        update: Some(Labels {
            labels: pairs(&set)?,
        }),
        remove: remove
            .iter()
            .map(|flag| flag.trim_end_matches('-').to_owned())
            .collect(),
    };
    Ok(Some(UpdateLabels {
        strategy: Some(update_labels::Strategy::Patch(patch)),
    }))
}
