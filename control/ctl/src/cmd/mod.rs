//! The commands, one module a resource.

pub(crate) mod apply;
pub(crate) mod audit;
pub(crate) mod ca;
pub(crate) mod cluster;
pub(crate) mod component;
pub(crate) mod context;
pub(crate) mod doctor;
pub(crate) mod filesystem;
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
pub(crate) mod partition;
pub(crate) mod policy;
pub(crate) mod project;
pub(crate) mod quota;
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
use crate::args::{Cli, Command};
use crate::text::pairs;

/// What changes files of this machine, so that no server can say what it would do.
fn is_local(command: &Command) -> bool {
    matches!(
        command,
        Command::Context(_)
            | Command::Login(_)
            | Command::Logout(_)
            | Command::Cluster(cluster::Command::Init(_))
            | Command::Audit(audit::Command::Export { .. })
    )
}

/// Runs what was typed.
pub(crate) async fn run(cli: Cli) -> Result<()> {
    if cli.global.dry_run && is_local(&cli.command) {
        bail!(
            "this changes things on this machine alone, and cannot be tried; leave --dry-run out"
        );
    }
    let command = match cli.command {
        Command::Context(command) => return context::run(&cli.global, command),
        Command::Login(command) => return login::login(&cli.global, &command).await,
        Command::Logout(logout) => return login::logout(&cli.global, &logout).await,
        Command::Completion(command) => return misc::completion(&command),
        Command::Cluster(cluster::Command::Init(init)) => return cluster::init(&init),
        Command::Doctor(command) => return doctor::run(&cli.global, &command).await,
        Command::Version => return misc::version(&cli.global).await,
        // A file can be looked into without any server.
        Command::Cluster(cluster::Command::Backup(backup)) if backup.list => {
            return cluster::backup::list(&cli.global.output, &backup);
        }
        Command::Audit(command) => match audit::file_to_verify(&command) {
            Some((verify, path)) => return audit::verify_file(&cli.global.output, verify, path),
            None => Command::Audit(command),
        },
        // So can a policy.
        Command::Policy(command) => match policy::offline(&cli.global.output, command)? {
            Some(command) => Command::Policy(command),
            None => return Ok(()),
        },
        command => command,
    };
    let app = App::new(&cli.global)?;
    match command {
        Command::Get(command) => get::run(&app, command).await,
        Command::Tenant(command) => tenant::run(&app, command).await,
        Command::Project(command) => project::run(&app, command).await,
        Command::Quota(command) => quota::run(&app, command).await,
        Command::Settings(command) => settings::run(&app, command).await,
        Command::Policy(command) => policy::run(&app, command).await,
        Command::Token(command) => token::run(&app, &cli.global, command).await,
        Command::Partition(command) => partition::run(&app, command).await,
        Command::Size(command) => size::run(&app, command).await,
        Command::Image(command) => image::run(&app, command).await,
        Command::Filesystem(command) => filesystem::run(&app, command).await,
        Command::Network(command) => network::run(&app, command).await,
        Command::Ip(command) => ip::run(&app, command).await,
        Command::Machine(command) => machine::run(&app, command).await,
        Command::Switch(command) => switch::run(&app, command).await,
        Command::Component(command) => component::run(&app, command).await,
        Command::Task(command) => task::run(&app, command).await,
        Command::Vpn(command) => vpn::run(&app, command).await,
        Command::Ca(command) => ca::run(&app, command).await,
        Command::Cluster(command) => cluster::run(&app, command).await,
        Command::Identity(command) => identity::run(&app, command).await,
        Command::Join(command) => join::run(&app, command).await,
        Command::Audit(command) => audit::run(&app, command).await,
        Command::User(command) => user::run(&app, command).await,
        Command::Apply(command) => apply::apply(&app, &command).await,
        Command::Edit(command) => apply::edit(&app, &command).await,
        Command::Whoami => misc::whoami(&app).await,
        Command::Methods => misc::methods(&app).await,
        Command::Health => misc::health(&app).await,
        Command::Context(_)
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Completion(_)
        | Command::Doctor(_)
        | Command::Version => Ok(()),
    }
}

/// What an answer must hold.
fn given<T>(part: Option<T>) -> Result<T> {
    part.context("the server's answer lacks the object")
}

/// An update that the server locks by itself: people see the newest state anyway.
fn server_lock() -> Option<UpdateMeta> {
    let strategy = OptimisticLockingStrategy::Server;
    Some(UpdateMeta {
        updated_at: None,
        locking_strategy: strategy.into(),
    })
}

/// Labels to set (`a=b`) and to remove (`a-`); nothing without any.
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
