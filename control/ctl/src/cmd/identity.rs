//! `metalmesh identity`: who has certificates.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use proto_public::metalmesh::admin::v1::{
    Identity, IdentityKind, IdentityServiceGetRequest, IdentityServiceListRequest,
    IdentityServiceRevokeRequest, IdentityServiceRotateRequest,
};

use super::given;
use crate::app::App;
use crate::output::print_table;
use crate::text::{enum_text, moment, or_dash};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the identities that have a certificate now.
    #[command(visible_alias = "list")]
    Ls(Ls),
    /// Show an identity: its SPIFFE id, or what stands behind the trust domain, such as
    /// partition/lab/core/leaf1.
    #[command(visible_alias = "describe")]
    Show { id: String },
    /// End its sessions now and refuse it until it joins with a new ticket.
    Revoke {
        id: String,
        /// Why, for the records.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Have its agent make a new key and renew with it now; sessions go on.
    Rotate { id: String },
}

#[derive(Debug, Args)]
pub(crate) struct Ls {
    #[arg(long, default_value = "")]
    partition: String,
    /// Of installed machines of this project: its id or name.
    #[arg(long)]
    project: Option<String>,
    #[arg(long)]
    kind: Option<Kind>,
    /// Those too whose certificates have ended but that may come back.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Kind {
    Core,
    Bmc,
    Pixie,
    Machine,
    ProjectMachine,
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut identities = app.client.identities();
    match command {
        Command::Ls(ls) => {
            let project = match &ls.project {
                Some(project) => app.project_id(project).await?,
                None => String::new(),
            };
            let answer = identities.list(wanted(ls, project)).await?.into_inner();
            app.output.list(&answer.identities)
        }
        Command::Show { id } => {
            let answer = identities.get(IdentityServiceGetRequest { id }).await?;
            let found = given(answer.into_inner().identity)?;
            app.output.one_with(&found, details)
        }
        Command::Revoke { id, reason } => {
            let request = IdentityServiceRevokeRequest { id, reason };
            let answer = identities.revoke(request).await?.into_inner();
            app.output.one(&given(answer.identity)?)
        }
        Command::Rotate { id } => {
            let request = IdentityServiceRotateRequest { id };
            let answer = identities.rotate(request).await?.into_inner();
            app.output.one(&given(answer.identity)?)
        }
    }
}

fn wanted(ls: Ls, project: String) -> IdentityServiceListRequest {
    let kind = ls
        .kind
        .map_or(IdentityKind::Unspecified, |kind| match kind {
            Kind::Core => IdentityKind::Core,
            Kind::Bmc => IdentityKind::Bmc,
            Kind::Pixie => IdentityKind::Pixie,
            Kind::Machine => IdentityKind::Machine,
            Kind::ProjectMachine => IdentityKind::ProjectMachine,
        });
    IdentityServiceListRequest {
        partition: ls.partition,
        project,
        kind: kind.into(),
        all: ls.all,
    }
}

/// `active`, `revoked`, `ended`, or that a new key is awaited.
pub(crate) fn state_of(it: &Identity) -> &'static str {
    if it.revoked_at.is_some() {
        "revoked"
    } else if it.rotate_since.is_some() {
        "rotating"
    } else if it.connected == Some(true) {
        "connected"
    } else {
        "known"
    }
}

fn details(it: &Identity) {
    let line = |name: &str, value: String| vec![name.to_owned(), or_dash(value)];
    let method = enum_text("metalmesh.admin.v1.JoinMethod", it.joined_by);
    let connected = it.connected.map_or("unknown: ask the leader", |connected| {
        if connected { "yes" } else { "no" }
    });
    let rows = [
        line("id", it.id.clone()),
        line(
            "kind",
            enum_text("metalmesh.admin.v1.IdentityKind", it.kind),
        ),
        line("state", state_of(it).to_owned()),
        line("partition", it.partition.clone()),
        line("project", it.project.clone()),
        line("joined by", format!("{method} {}", it.joined_with)),
        line("joined", moment(it.joined_at.as_ref())),
        line("serial", it.serial.clone()),
        line("issued", moment(it.issued_at.as_ref())),
        line("expires", moment(it.expires_at.as_ref())),
        line("key sha256", it.key_sha256.clone()),
        line("authority", it.authority.to_string()),
        line("last seen", moment(it.last_seen.as_ref())),
        line("connected", connected.to_owned()),
        line("new key wanted", moment(it.rotate_since.as_ref())),
        line("revoked", moment(it.revoked_at.as_ref())),
        line("reason", it.revoked_reason.clone()),
    ];
    print_table(&["field", "value"], rows);
}
