//! `metalmesh settings`.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    AuditRetention, Budgets, Settings, SettingsServiceGetRequest, SettingsServiceSetRequest,
};

use super::given;
use crate::app::App;
use crate::text::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum SettingsCommand {
    /// Show the settings of the cluster.
    #[command(visible_alias = "describe")]
    Show,
    /// Change settings of the cluster; what is left out does not change.
    Set(SettingsSetArgs),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct SettingsSetArgs {
    /// Maximum number of audit records.
    #[arg(long, value_name = "NUMBER")]
    audit_records: Option<u32>,
    /// Maximum number of audit records that wait for an export.
    #[arg(long, value_name = "NUMBER")]
    audit_unread: Option<u32>,
    /// Maximum age of audit records: 8h, 90d; 0s means no limit.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    audit_age: Option<Duration>,
    /// Maximum number of tokens of a user, and of all components of a project together.
    #[arg(long, value_name = "NUMBER")]
    tokens_per_user: Option<u32>,
    /// Maximum number of tenants that a user creates.
    #[arg(long, value_name = "NUMBER")]
    tenants_per_user: Option<u32>,
    /// Maximum number of projects of a tenant.
    #[arg(long, value_name = "NUMBER")]
    projects_per_tenant: Option<u32>,
    /// Maximum number of open invites of a user.
    #[arg(long, value_name = "NUMBER")]
    invites_per_user: Option<u32>,
    /// Maximum number of IP addresses of a project without a quota for them.
    #[arg(long, value_name = "NUMBER")]
    ips_per_project: Option<u32>,
    /// Maximum number of networks of a project without a quota for them.
    #[arg(long, value_name = "NUMBER")]
    networks_per_project: Option<u32>,
}

pub(crate) async fn run(app: &App, command: SettingsCommand) -> Result<()> {
    let mut client = app.client.settings();
    let settings = match command {
        SettingsCommand::Show => {
            let answer = client.get(SettingsServiceGetRequest {}).await?;
            answer.into_inner().settings
        }
        SettingsCommand::Set(set) => {
            let request = SettingsServiceSetRequest {
                settings: Some(set.settings()?),
            };
            client.set(request).await?.into_inner().settings
        }
    };
    app.output.one(&given(settings)?)
}

impl SettingsSetArgs {
    fn settings(self) -> Result<Settings> {
        let seconds = self.audit_age.map(|age| i64::try_from(age.as_secs()));
        let seconds = seconds.transpose().context("--audit-age is too long")?;
        let age_max = seconds.map(|seconds| prost_types::Duration { seconds, nanos: 0 });
        Ok(Settings {
            audit: Some(AuditRetention {
                records_max: self.audit_records,
                unread_max: self.audit_unread,
                age_max,
            }),
            budgets: Some(Budgets {
                tokens_per_user: self.tokens_per_user,
                tenants_per_user: self.tenants_per_user,
                projects_per_tenant: self.projects_per_tenant,
                invites_per_user: self.invites_per_user,
                ips_per_project: self.ips_per_project,
                networks_per_project: self.networks_per_project,
            }),
            updated_at: None,
        })
    }
}
