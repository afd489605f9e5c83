//! `metalmesh get`: lists objects of any kind, or watches them.

mod view;

use anyhow::{Result, bail};
use clap::Args;
use control_client::{ObjectWatch, WatchScope};
use proto_public::api::v2::UserServiceGetRequest;
use proto_public::metalmesh::admin::v1::{WatchChange, WatchEvent};
use tonic::{Code, Status};

use crate::app::App;
use crate::kinds::{self, ObjectKind};

use view::ObjectView;

/// Flags of `metalmesh get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Kind of the objects, singular or plural.
    ///
    /// One of audit, claim, component, filesystem-layout, firewall-rules, image, ip, join-ticket, lease,
    /// machine, network, node-allocation, partition, policy, pool, pool-host, project, project-invite,
    /// project-labels, quota, size, size-image-constraint, size-reservation, switch, task, tenant,
    /// tenant-invite, token. Invites are shown without their secrets.
    kind: String,
    /// Only the object with this id; machines and projects also by name.
    id: Option<String>,
    /// List the objects, then show changes until interrupted.
    #[arg(short, long)]
    watch: bool,
    /// Show changes alone, without listing the objects first.
    #[arg(long)]
    watch_only: bool,
    /// Only objects of the tenant with this login: itself, its projects, quota, invites, audit records.
    #[arg(long, value_name = "LOGIN", conflicts_with_all = ["all", "project"])]
    tenant: Option<String>,
}

pub(crate) async fn run(app: &App, get: GetArgs) -> Result<()> {
    let known = kinds::known(&get.kind)?;
    let id = match get.id.as_deref() {
        Some(id) => Some(real_id(app, known, id).await?),
        None => None,
    };
    let (mut watch, first) = begin(app, known, &get, id.as_deref()).await?;
    let mut view = ObjectView::new(&app.output, known);
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

/// Resolves the name of a machine or project to its id. Other kinds have ids alone.
async fn real_id(app: &App, known: &ObjectKind, id: &str) -> Result<String> {
    match known.name {
        "machine" => app.machine_id(id).await,
        "project" => app.project_id(id).await,
        _ => Ok(id.to_owned()),
    }
}

/// Starts the watch in the first scope that the caller may see.
async fn begin(
    app: &App,
    known: &ObjectKind,
    get: &GetArgs,
    id: Option<&str>,
) -> Result<(ObjectWatch, WatchEvent)> {
    let mut refused: Option<Status> = None;
    for scope in scopes(app, known, get).await? {
        let kinds = vec![known.name.to_owned()];
        let mut watch = ObjectWatch::new(&app.client, scope, kinds, id.map(str::to_owned));
        match watch.next().await {
            Ok(first) => return Ok((watch, first)),
            // The first scope is the one that was asked for; its refusal is the useful error.
            Err(status) if status.code() == Code::PermissionDenied => {
                refused.get_or_insert(status);
            }
            Err(status) => return Err(status.into()),
        }
    }
    match refused {
        Some(status) => Err(status.into()),
        None => bail!("choose whose {} to list: {}", known.plural, whose(known)),
    }
}

/// The scopes to try, widest first.
async fn scopes(app: &App, known: &ObjectKind, get: &GetArgs) -> Result<Vec<WatchScope>> {
    if let Some(login) = &get.tenant {
        return Ok(vec![WatchScope::Tenant(login.clone())]);
    }
    let project = app.project().await?.map(WatchScope::Project);
    Ok(match known.name {
        "project-invite" => project.into_iter().collect(),
        "tenant-invite" => own_tenant(app).await.into_iter().collect(),
        _ if app.everything() || known.is_admins_only() => vec![WatchScope::All],
        "claim" | "firewall-rules" | "ip" | "lease" | "machine" | "network" | "node-allocation"
        | "size-reservation" => vec![project.unwrap_or(WatchScope::All)],
        "quota" if project.is_some() => project.into_iter().collect(),
        "audit" | "project" | "quota" | "tenant" => {
            let mut scopes = vec![WatchScope::All];
            scopes.extend(own_tenant(app).await);
            if known.name == "project" {
                scopes.extend(project);
            }
            scopes
        }
        // Public objects, and the caller's own tokens.
        _ => vec![WatchScope::Own, WatchScope::All],
    })
}

/// The flags that choose a scope for the kind.
fn whose(known: &ObjectKind) -> &'static str {
    match known.name {
        "project-invite" => "--project PROJECT",
        "tenant-invite" => "--tenant LOGIN",
        _ => "--project PROJECT, --tenant LOGIN, or --all as an administrator",
    }
}

/// The caller's own tenant. `None` if the token may not read it.
async fn own_tenant(app: &App) -> Option<WatchScope> {
    let answer = app
        .client
        .users()
        .get(UserServiceGetRequest {})
        .await
        .ok()?;
    Some(WatchScope::Tenant(answer.into_inner().user?.login))
}

/// Reads events up to the end of the listing.
async fn rest_of_listing(watch: &mut ObjectWatch, first: WatchEvent) -> Result<Vec<WatchChange>> {
    let mut there = first.changes;
    let mut listed = first.listed;
    while !listed {
        let event = watch.next().await?;
        there.extend(event.changes);
        listed = event.listed;
    }
    Ok(there)
}
