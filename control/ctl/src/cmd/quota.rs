//! `metalmesh quota`.

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use proto_public::metalmesh::admin::v1::quota_service_remove_request::Subject as RemoveSubject;
use proto_public::metalmesh::admin::v1::{
    Amounts, Quota, QuotaServiceListRequest, QuotaServiceProjectRequest, QuotaServiceRemoveRequest,
    QuotaServiceSetRequest, QuotaServiceTenantRequest, quota,
};

use super::given;
use crate::app::App;

#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// Set the quota of a tenant or project; what is left out is not limited.
    Set {
        #[command(flatten)]
        subject: QuotaSubjectArgs,
        /// Limit of allocated machines.
        #[arg(long, value_name = "NUMBER")]
        machines: Option<u32>,
        /// Limit of allocated machines of a size. Repeatable.
        #[arg(long = "size", value_name = "SIZE=NUMBER")]
        sizes: Vec<String>,
        /// Limit of its own networks.
        #[arg(long, value_name = "NUMBER")]
        networks: Option<u32>,
        /// Limit of IP addresses, including those of machines.
        #[arg(long, value_name = "NUMBER")]
        ips: Option<u32>,
    },
    /// List all quotas and their usage.
    #[command(visible_alias = "list")]
    Ls,
    /// Show the quotas that apply to a tenant or project.
    #[command(visible_alias = "describe")]
    Show(QuotaSubjectArgs),
    /// Remove the quota of a tenant or project.
    #[command(visible_alias = "delete")]
    Rm(QuotaSubjectArgs),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct QuotaSubjectArgs {
    /// All projects of this tenant together.
    #[arg(long = "of-tenant", value_name = "LOGIN")]
    tenant: Option<String>,
    /// This project, by id or name.
    #[arg(long = "of-project", value_name = "PROJECT")]
    project: Option<String>,
}

pub(crate) async fn run(app: &App, command: QuotaCommand) -> Result<()> {
    let mut quotas = app.client.quotas();
    match command {
        QuotaCommand::Set {
            subject,
            machines,
            sizes,
            networks,
            ips,
        } => {
            let sizes = sizes.iter().map(|flag| of_size(flag));
            let limits = Amounts {
                machines,
                machines_of_size: sizes.collect::<Result<_>>()?,
                networks,
                ips,
            };
            let subject = match (subject.tenant, subject.project) {
                (Some(login), _) => Some(quota::Subject::Tenant(login)),
                (None, Some(project)) => {
                    Some(quota::Subject::Project(app.project_id(&project).await?))
                }
                (None, None) => None,
            };
            let quota = Quota {
                subject,
                limits: Some(limits),
                ..Quota::default()
            };
            let request = QuotaServiceSetRequest { quota: Some(quota) };
            let answer = quotas.set(request).await?.into_inner();
            app.output.one(&given(answer.quota)?)
        }
        QuotaCommand::Ls => {
            let answer = quotas.list(QuotaServiceListRequest {}).await?;
            app.output.list(&answer.into_inner().quotas)
        }
        QuotaCommand::Show(subject) => show(app, subject).await,
        QuotaCommand::Rm(subject) => {
            let subject = match (subject.tenant, subject.project) {
                (Some(login), _) => Some(RemoveSubject::Tenant(login)),
                (None, Some(project)) => {
                    Some(RemoveSubject::Project(app.project_id(&project).await?))
                }
                (None, None) => None,
            };
            let request = QuotaServiceRemoveRequest { subject };
            let answer = quotas.remove(request).await?.into_inner();
            app.output.one(&given(answer.quota)?)
        }
    }
}

async fn show(app: &App, subject: QuotaSubjectArgs) -> Result<()> {
    let mut quotas = app.client.quotas();
    let found: Vec<Quota> = match (subject.tenant, subject.project) {
        (Some(login), _) => {
            let request = QuotaServiceTenantRequest { login };
            let answer = quotas.tenant(request).await?.into_inner();
            answer.quota.into_iter().collect()
        }
        (None, Some(project)) => {
            let project = app.project_id(&project).await?;
            let request = QuotaServiceProjectRequest { project };
            let answer = quotas.project(request).await?.into_inner();
            [answer.quota, answer.tenant]
                .into_iter()
                .flatten()
                .collect()
        }
        (None, None) => Vec::new(),
    };
    if found.is_empty() && app.output.is_table() {
        noteln!("No quota applies.");
        return Ok(());
    }
    app.output.list(&found)
}

fn of_size(flag: &str) -> Result<(String, u32)> {
    let wrong = || format!("{flag:?} is not SIZE=NUMBER, for example small=4");
    let (size, number) = flag.split_once('=').with_context(wrong)?;
    let number = number.parse().with_context(wrong)?;
    Ok((size.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_with_numbers() {
        assert_eq!(of_size("small=4").unwrap(), ("small".to_owned(), 4));
        for bad in ["small", "small=", "small=-1", "small=many"] {
            assert!(of_size(bad).is_err(), "{bad}");
        }
    }
}
