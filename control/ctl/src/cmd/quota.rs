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
pub(crate) enum Command {
    /// Set how much a tenant or project may have; what is left out is not bounded.
    Set {
        #[command(flatten)]
        subject: Subject,
        /// Allocated machines.
        #[arg(long, value_name = "NUMBER")]
        machines: Option<u32>,
        /// Allocated machines of a size; may be given more than once.
        #[arg(long = "size", value_name = "SIZE=NUMBER")]
        sizes: Vec<String>,
        /// Networks of its own.
        #[arg(long, value_name = "NUMBER")]
        networks: Option<u32>,
        /// Addresses, those of machines included.
        #[arg(long, value_name = "NUMBER")]
        ips: Option<u32>,
    },
    /// List all quotas and what is used of them.
    #[command(visible_alias = "list")]
    Ls,
    /// Show the quotas that hold for a tenant or project.
    #[command(visible_alias = "describe")]
    Show(Subject),
    /// Take all bounds away.
    #[command(visible_alias = "delete")]
    Rm(Subject),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Subject {
    /// All projects of this tenant together.
    #[arg(long = "of-tenant", value_name = "LOGIN")]
    tenant: Option<String>,
    /// This project: its id or name.
    #[arg(long = "of-project", value_name = "PROJECT")]
    project: Option<String>,
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    let mut quotas = app.client.quotas();
    match command {
        Command::Set {
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
        Command::Ls => {
            let answer = quotas.list(QuotaServiceListRequest {}).await?;
            app.output.list(&answer.into_inner().quotas)
        }
        Command::Show(subject) => show(app, subject).await,
        Command::Rm(subject) => {
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

async fn show(app: &App, subject: Subject) -> Result<()> {
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
        noteln!("Nothing is bounded.");
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

/// What is used of what may be had: `3/4`; nothing for no bound.
pub(crate) fn used_of(used: Option<u32>, limit: Option<u32>) -> String {
    limit.map_or_else(
        || "-".to_owned(),
        |limit| format!("{}/{limit}", used.unwrap_or(0)),
    )
}

/// The same for each size that is bounded, in order.
pub(crate) fn used_of_sizes(quota: &Quota) -> String {
    let limits = quota.limits.as_ref().map(|it| &it.machines_of_size);
    let used = quota.used.as_ref().map(|it| &it.machines_of_size);
    let all = limits.into_iter().flatten().map(|(size, limit)| {
        let used = used.and_then(|used| used.get(size)).copied();
        format!("{size}={}", used_of(used, Some(*limit)))
    });
    let mut all: Vec<String> = all.collect();
    all.sort();
    crate::text::or_dash(all.join(" "))
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

    #[test]
    fn what_is_used_stands_before_what_may_be_had() {
        assert_eq!(used_of(Some(3), Some(4)), "3/4");
        assert_eq!(used_of(None, Some(4)), "0/4");
        assert_eq!(used_of(Some(3), None), "-");
    }
}
