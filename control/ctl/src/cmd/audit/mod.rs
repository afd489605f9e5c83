//! `metalmesh audit`.

mod chain;
mod tail;
mod trail;
mod trail_line;

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use proto_public::admin::v2 as admin;
use proto_public::api::v2::{AuditQuery, AuditServiceListRequest, AuditTrace};
use proto_public::metalmesh::admin::v1::{
    AuditTrailServiceExportsRequest, AuditTrailServiceForgetExportRequest,
};
use tonic::Code;

use super::given;
use crate::app::App;
use crate::text::parse_duration;

pub(crate) use trail::{AuditVerifyArgs, verify_file};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List audit records, the newest last.
    #[command(visible_alias = "list")]
    Ls(AuditLsArgs),
    /// Show one record.
    #[command(visible_alias = "describe")]
    Show {
        /// Id of the audit record.
        id: String,
    },
    /// Show the last records, and with --follow new ones as they are written.
    Tail(tail::AuditTailArgs),
    /// Check that no record was changed, removed or inserted.
    ///
    /// Each record's hash covers the record and all records before it. Exits with 1 at the first
    /// record that does not fit, and names it. Keep the head that it prints, and give it to the next
    /// verification: the records up to it must still be there.
    Verify(AuditVerifyArgs),
    /// Write the trail with its hashes to a new file, as lines of JSON.
    ///
    /// The trail is verified while it is written; `verify --file` verifies the file on any host.
    Export {
        /// New file for the trail.
        file: PathBuf,
    },
    /// Show how far the trail was sent to each export of the configuration.
    Exports {
        /// Forget an export that is no longer configured: records are no longer kept for it.
        #[arg(long, value_name = "NAME")]
        forget: Option<String>,
    },
}

/// Flags that select audit records.
#[derive(Debug, Args)]
pub(crate) struct AuditFilter {
    /// Only records of this tenant and its projects; without it all records, as an administrator.
    #[arg(long)]
    tenant: Option<String>,
    /// Only calls of this login or SPIFFE id.
    #[arg(long)]
    user: Option<String>,
    /// Only calls of this method, given by its full path.
    #[arg(long)]
    method: Option<String>,
    /// Only calls with this gRPC status code, by number or name: 0 or ok, 5 or not-found.
    #[arg(long, value_name = "CODE", value_parser = parse_code)]
    result: Option<i32>,
}

#[derive(Debug, Args)]
pub(crate) struct AuditLsArgs {
    #[command(flatten)]
    filter: AuditFilter,
    /// Only records that are younger than this: 90s, 15m, 8h, 30d.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    since: Option<Duration>,
    /// Only records that are older than this.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    until: Option<Duration>,
    /// Maximum number of records.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i32).range(1..=1000))]
    limit: i32,
}

impl AuditFilter {
    fn fits(&self, trace: &AuditTrace, project: Option<&str>) -> bool {
        let is =
            |wanted: &Option<String>, has: &str| wanted.as_ref().is_none_or(|wanted| wanted == has);
        is(&self.user, &trace.user)
            && is(&self.method, &trace.method)
            && self
                .result
                .is_none_or(|code| trace.result_code == Some(code))
            && project.is_none_or(|project| trace.project.as_deref() == Some(project))
    }
}

pub(crate) async fn run(app: &App, command: AuditCommand) -> Result<()> {
    match command {
        AuditCommand::Show { id } => {
            let request = admin::AuditServiceGetRequest {
                uuid: id,
                phase: None,
            };
            let answer = app.client.admin_audits().get(request).await?.into_inner();
            app.output.one(&given(answer.trace)?)
        }
        AuditCommand::Ls(ls) => list(app, ls).await,
        AuditCommand::Tail(tail) => tail::run(app, tail).await,
        AuditCommand::Verify(verify) => trail::verify(app, &verify).await,
        AuditCommand::Export { file } => trail::export(app, &file).await,
        AuditCommand::Exports { forget: Some(name) } => {
            let request = AuditTrailServiceForgetExportRequest { name };
            app.client.audit_trail().forget_export(request).await?;
            Ok(())
        }
        AuditCommand::Exports { forget: None } => {
            let request = AuditTrailServiceExportsRequest {};
            let answer = app.client.audit_trail().exports(request).await?;
            app.output.list(&answer.into_inner().exports)
        }
    }
}

/// The file of `verify --file`, which needs no server.
pub(crate) fn file_to_verify(
    command: &AuditCommand,
) -> Option<(&AuditVerifyArgs, &std::path::Path)> {
    match command {
        AuditCommand::Verify(verify) => Some((verify, verify.file.as_deref()?)),
        _ => None,
    }
}

async fn list(app: &App, ls: AuditLsArgs) -> Result<()> {
    let now = SystemTime::now();
    let ago = |span: Duration| now.checked_sub(span).map(prost_types::Timestamp::from);
    let query = AuditQuery {
        user: ls.filter.user,
        method: ls.filter.method,
        project: app.project().await?,
        result_code: ls.filter.result,
        from: ls.since.and_then(ago),
        to: ls.until.and_then(ago),
        limit: Some(ls.limit),
        ..Default::default()
    };
    let query = Some(query);
    let traces = match ls.filter.tenant {
        Some(login) => {
            let request = AuditServiceListRequest { login, query };
            let answer = app.client.audits().list(request).await?;
            answer.into_inner().traces
        }
        None => {
            let request = admin::AuditServiceListRequest { query };
            let answer = app.client.admin_audits().list(request).await?;
            answer.into_inner().traces
        }
    };
    app.output.list(&traces)
}

/// Parses a gRPC status code, by number or name.
fn parse_code(text: &str) -> Result<i32> {
    let wanted: String = text
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let all = (0..=16).map(Code::from_i32);
    let found = all.map(|code| (i32::from(code), format!("{code:?}").to_ascii_lowercase()));
    for (number, name) in found {
        if wanted == name || wanted == number.to_string() {
            return Ok(number);
        }
    }
    bail!("use 0 to 16, or a name: ok, invalid-argument, not-found, permission-denied, ...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names() {
        for (text, code) in [
            ("0", 0),
            ("ok", 0),
            ("not-found", 5),
            ("NOT_FOUND", 5),
            ("16", 16),
        ] {
            assert_eq!(parse_code(text).unwrap(), code, "{text}");
        }
        for bad in ["", "17", "fine"] {
            assert!(parse_code(bad).is_err(), "{bad}");
        }
    }
}
