//! `metalmesh settings`.

use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::{
    AuditRetention, Budgets, Settings, SettingsServiceGetRequest, SettingsServiceSetRequest,
};

use super::given;
use crate::app::App;
use crate::text::parse_duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the settings of the cluster.
    #[command(visible_alias = "describe")]
    Show,
    /// Change settings of the cluster; what is left out stays.
    Set(Set),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Set {
    /// Records of the audit trail that are kept.
    #[arg(long, value_name = "NUMBER")]
    audit_records: Option<u32>,
    /// Records that are kept at most while a place outside has not read them.
    #[arg(long, value_name = "NUMBER")]
    audit_unread: Option<u32>,
    /// Age at which records go: 8h, 90d; 0s for none.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    audit_age: Option<Duration>,
    /// Tokens of a user, and of the components of a project together.
    #[arg(long, value_name = "NUMBER")]
    tokens_per_user: Option<u32>,
    /// Tenants that a user made.
    #[arg(long, value_name = "NUMBER")]
    tenants_per_user: Option<u32>,
    /// Projects of a tenant.
    #[arg(long, value_name = "NUMBER")]
    projects_per_tenant: Option<u32>,
    /// Open invites of a user.
    #[arg(long, value_name = "NUMBER")]
    invites_per_user: Option<u32>,
    /// Addresses of a project that no quota bounds.
    #[arg(long, value_name = "NUMBER")]
    ips_per_project: Option<u32>,
    /// Networks of a project that no quota bounds.
    #[arg(long, value_name = "NUMBER")]
    networks_per_project: Option<u32>,
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut client = app.client.settings();
    let settings = match command {
        Command::Show => {
            let answer = client.get(SettingsServiceGetRequest {}).await?;
            answer.into_inner().settings
        }
        Command::Set(set) => {
            let request = SettingsServiceSetRequest {
                settings: Some(set.settings()),
            };
            client.set(request).await?.into_inner().settings
        }
    };
    app.output.one(&given(settings)?)
}

impl Set {
    fn settings(self) -> Settings {
        let age_max = self.audit_age.map(|age| prost_types::Duration {
            seconds: i64::try_from(age.as_secs()).unwrap_or(i64::MAX),
            nanos: 0,
        });
        Settings {
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
        }
    }
}
