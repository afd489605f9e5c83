//! `metalmesh get`: objects of any kind, once or as they change.

mod view;

use anyhow::{Result, bail};
use clap::Args;
use control_client::{Watch, WatchScope};
use proto_public::api::v2::UserServiceGetRequest;
use proto_public::metalmesh::admin::v1::{WatchChange, WatchEvent};
use tonic::{Code, Status};

use crate::app::App;
use crate::kinds::{self, Known};

use view::View;

/// Flags of `metalmesh get`.
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The kind, singular or plural.
    ///
    /// One of audit, component, filesystem-layout, image, ip, join-ticket, machine, network,
    /// partition, policy, project, project-invite, quota, size, size-image-constraint,
    /// size-reservation, switch, task, tenant, tenant-invite, token. Invites are shown without their secrets.
    kind: String,
    /// Only this object: its id; a machine or project also by its name.
    id: Option<String>,
    /// Go on showing what changes, until interrupted.
    #[arg(short, long)]
    watch: bool,
    /// Show what changes, but not what is there.
    #[arg(long)]
    watch_only: bool,
    /// Of a tenant, its projects, quota, invites and audit records: the tenant's login.
    #[arg(long, value_name = "LOGIN", conflicts_with_all = ["all", "project"])]
    tenant: Option<String>,
}

pub(crate) async fn run(app: &App, get: Get) -> Result<()> {
    let known = kinds::known(&get.kind)?;
    let id = match get.id.as_deref() {
        Some(id) => Some(real_id(app, known, id).await?),
        None => None,
    };
    let (mut watch, first) = begin(app, known, &get, id.as_deref()).await?;
    let mut view = View::new(&app.output, known);
    if !get.watch_only {
        let there = rest_of_listing(&mut watch, first).await?;
        match (&id, there.as_slice()) {
            (Some(id), []) if !get.watch => {
                bail!("there is no {} {id:?} that you can see", known.name)
            }
            _ => out!("{}", view.listing(&there, id.is_some(), get.watch)?),
        }
        if !get.watch {
            return Ok(());
        }
    } else {
        rest_of_listing(&mut watch, first).await?;
        out!("{}", view.listing(&[], false, true)?);
    }
    loop {
        let event = tokio::select! {
            event = watch.next() => event?,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        for change in &event.changes {
            out!("{}", view.change(change)?);
        }
    }
}

/// What people call by name has an id.
async fn real_id(app: &App, known: &Known, id: &str) -> Result<String> {
    match known.name {
        "machine" => app.machine_id(id).await,
        "project" => app.project_id(id).await,
        _ => Ok(id.to_owned()),
    }
}

/// The watch in the widest scope that the caller may see, of those that make sense.
async fn begin(
    app: &App,
    known: &Known,
    get: &Get,
    id: Option<&str>,
) -> Result<(Watch, WatchEvent)> {
    let mut refused: Option<Status> = None;
    for scope in scopes(app, known, get).await? {
        let kinds = vec![known.name.to_owned()];
        let mut watch = Watch::new(&app.client, scope, kinds, id.map(str::to_owned));
        match watch.next().await {
            Ok(first) => return Ok((watch, first)),
            // The first refusal is the one of what was asked for.
            Err(status) if status.code() == Code::PermissionDenied => {
                refused.get_or_insert(status);
            }
            Err(status) => return Err(status.into()),
        }
    }
    match refused {
        Some(status) => Err(status.into()),
        None => bail!("name whose {} you want: {}", known.plural, whose(known)),
    }
}

async fn scopes(app: &App, known: &Known, get: &Get) -> Result<Vec<WatchScope>> {
    if let Some(login) = &get.tenant {
        return Ok(vec![WatchScope::Tenant(login.clone())]);
    }
    let project = app.project().await?.map(WatchScope::Project);
    Ok(match known.name {
        "project-invite" => project.into_iter().collect(),
        "tenant-invite" => own_tenant(app).await.into_iter().collect(),
        _ if app.everything() || known.is_admins_only() => vec![WatchScope::All],
        "ip" | "machine" | "network" | "size-reservation" => {
            vec![project.unwrap_or(WatchScope::All)]
        }
        "quota" if project.is_some() => project.into_iter().collect(),
        "audit" | "project" | "quota" | "tenant" => {
            let mut scopes = vec![WatchScope::All];
            scopes.extend(own_tenant(app).await);
            if known.name == "project" {
                scopes.extend(project);
            }
            scopes
        }
        // What is everybody's, and one's own tokens.
        _ => vec![WatchScope::Own, WatchScope::All],
    })
}

/// What to say to name whose objects are wanted.
fn whose(known: &Known) -> &'static str {
    match known.name {
        "project-invite" => "--project PROJECT",
        "tenant-invite" => "--tenant LOGIN",
        _ => "--project PROJECT, --tenant LOGIN, or --all as an administrator",
    }
}

/// The caller's own tenant, if it may ask for it.
async fn own_tenant(app: &App) -> Option<WatchScope> {
    let answer = app
        .client
        .users()
        .get(UserServiceGetRequest {})
        .await
        .ok()?;
    Some(WatchScope::Tenant(answer.into_inner().user?.login))
}

/// Everything up to the end of the listing.
async fn rest_of_listing(watch: &mut Watch, first: WatchEvent) -> Result<Vec<WatchChange>> {
    let mut there = first.changes;
    let mut listed = first.listed;
    while !listed {
        let event = watch.next().await?;
        there.extend(event.changes);
        listed = event.listed;
    }
    Ok(there)
}
