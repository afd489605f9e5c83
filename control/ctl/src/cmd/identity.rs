//! `metalmesh identity`: agents and machines, and their certificates.

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use proto_public::metalmesh::admin::v1::{
    Identity, IdentityKind, IdentityServiceGetRequest, IdentityServiceListRequest,
    IdentityServiceRevokeRequest, IdentityServiceRotateRequest,
};

use super::given;
use crate::app::App;
use crate::output::print_table;
use crate::show::state_of;
use crate::text::{enum_text, moment, or_dash};

#[derive(Debug, Subcommand)]
pub(crate) enum IdentityCommand {
    /// List the identities that have a valid certificate.
    #[command(visible_alias = "list")]
    Ls(IdentityLsArgs),
    /// Show an identity, given by its SPIFFE id or its path in the trust domain, such as
    /// partition/lab/core/leaf1.
    #[command(visible_alias = "describe")]
    Show {
        /// SPIFFE id of the identity, or its path in the trust domain.
        id: String,
    },
    /// End the sessions of an identity now, and refuse it until it joins with a new ticket.
    Revoke {
        /// SPIFFE id of the identity, or its path in the trust domain.
        id: String,
        /// Reason, which is stored with the identity.
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Make the agent create a new key and renew its certificate now; its sessions continue.
    Rotate {
        /// SPIFFE id of the identity, or its path in the trust domain.
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct IdentityLsArgs {
    /// Only identities of this partition.
    #[arg(long, default_value = "")]
    partition: String,
    /// Only installed machines of this project, by id or name.
    #[arg(long)]
    project: Option<String>,
    /// Only identities of this kind.
    #[arg(long, ignore_case = true)]
    kind: Option<IdentityKindArg>,
    /// Include identities whose certificate has expired, but that may resume.
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum IdentityKindArg {
    Core,
    Bmc,
    Pixie,
    Machine,
    ProjectMachine,
}

pub(crate) async fn run(app: &App, command: IdentityCommand) -> Result<()> {
    let mut identities = app.client.identities();
    match command {
        IdentityCommand::Ls(ls) => {
            let project = match &ls.project {
                Some(project) => app.project_id(project).await?,
                None => String::new(),
            };
            let answer = identities.list(wanted(ls, project)).await?.into_inner();
            app.output.list(&answer.identities)
        }
        IdentityCommand::Show { id } => {
            let answer = identities.get(IdentityServiceGetRequest { id }).await?;
            let found = given(answer.into_inner().identity)?;
            app.output.one_with(&found, details)
        }
        IdentityCommand::Revoke { id, reason } => {
            let request = IdentityServiceRevokeRequest { id, reason };
            let answer = identities.revoke(request).await?.into_inner();
            app.output.one(&given(answer.identity)?)
        }
        IdentityCommand::Rotate { id } => {
            let request = IdentityServiceRotateRequest { id };
            let answer = identities.rotate(request).await?.into_inner();
            app.output.one(&given(answer.identity)?)
        }
    }
}

fn wanted(ls: IdentityLsArgs, project: String) -> IdentityServiceListRequest {
    let kind = ls
        .kind
        .map_or(IdentityKind::Unspecified, |kind| match kind {
            IdentityKindArg::Core => IdentityKind::Core,
            IdentityKindArg::Bmc => IdentityKind::Bmc,
            IdentityKindArg::Pixie => IdentityKind::Pixie,
            IdentityKindArg::Machine => IdentityKind::Machine,
            IdentityKindArg::ProjectMachine => IdentityKind::ProjectMachine,
        });
    IdentityServiceListRequest {
        partition: ls.partition,
        project,
        kind: kind.into(),
        all: ls.all,
    }
}

fn details(identity: &Identity) {
    let line = |name: &str, value: String| vec![name.to_owned(), or_dash(value)];
    let method = enum_text("metalmesh.admin.v1.JoinMethod", identity.joined_by);
    let connected = identity
        .connected
        .map_or("unknown: no leader answers", |connected| {
            if connected { "yes" } else { "no" }
        });
    let rows = [
        line("id", identity.id.clone()),
        line(
            "kind",
            enum_text("metalmesh.admin.v1.IdentityKind", identity.kind),
        ),
        line("state", state_of(identity).to_owned()),
        line("partition", identity.partition.clone()),
        line("project", identity.project.clone()),
        line("joined by", format!("{method} {}", identity.joined_with)),
        line("joined", moment(identity.joined_at.as_ref())),
        line("serial", identity.serial.clone()),
        line("issued", moment(identity.issued_at.as_ref())),
        line("expires", moment(identity.expires_at.as_ref())),
        line("key sha256", identity.key_sha256.clone()),
        line("authority", identity.authority.to_string()),
        line("last seen", moment(identity.last_seen.as_ref())),
        line("connected", connected.to_owned()),
        line("new key wanted", moment(identity.rotate_since.as_ref())),
        line("revoked", moment(identity.revoked_at.as_ref())),
        line("reason", identity.revoked_reason.clone()),
    ];
    print_table(&["field", "value"], rows);
}
