//! `metalmesh audit`.

mod chain;
mod tail;
mod trail;

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

pub(crate) use trail::{Verify, verify_file};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List what was done, newest last.
    #[command(visible_alias = "list")]
    Ls(Ls),
    /// Show one record.
    #[command(visible_alias = "describe")]
    Show { id: String },
    /// Show the last calls, and with --follow those that come.
    Tail(tail::Tail),
    /// Check that no record was changed, removed or inserted.
    ///
    /// Each record's hash covers the record and all before it. Exits with 1 and the first record
    /// that does not fit. Keep the head that it prints, and name it next time: what was recorded
    /// up to then must still be there.
    Verify(Verify),
    /// Write the trail with its hashes to a new file, as lines of JSON.
    ///
    /// It is checked on the way; `verify --file` checks the file anywhere.
    Export { file: PathBuf },
    /// Show how far the trail was sent to the places of the configuration.
    Exports {
        /// Forget a place that is gone from the configuration: records do not wait for it any
        /// more.
        #[arg(long, value_name = "NAME")]
        forget: Option<String>,
    },
}

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct Filter {
    /// Of this tenant and its projects, as its owner; all as an administrator without it.
    #[arg(long)]
    tenant: Option<String>,
    /// Of this login or SPIFFE id.
    #[arg(long)]
    user: Option<String>,
    /// Of this method: its full path.
    #[arg(long)]
    method: Option<String>,
    /// With this result: a status code of gRPC or its name, as 0 or ok, 5 or not-found.
    #[arg(long, value_name = "CODE", value_parser = parse_code)]
    result: Option<i32>,
}

#[derive(Debug, Args)]
pub(crate) struct Ls {
    #[command(flatten)]
    filter: Filter,
    /// Not older than this: 90s, 15m, 8h, 30d.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    since: Option<Duration>,
    /// Not younger than this.
    #[arg(long, value_name = "AGE", value_parser = parse_duration)]
    until: Option<Duration>,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(i32).range(1..=1000))]
    limit: i32,
}

impl Filter {
    fn fits(&self, trace: &AuditTrace, project: Option<&str>) -> bool {
        let is = |wanted: &Option<String>, has: &str| wanted.as_ref().is_none_or(|it| it == has);
        is(&self.user, &trace.user)
            && is(&self.method, &trace.method)
            && self
                .result
                .is_none_or(|code| trace.result_code == Some(code))
            && project.is_none_or(|project| trace.project.as_deref() == Some(project))
    }
}

pub(crate) async fn run(app: &App, command: Command) -> Result<()> {
    match command {
        Command::Show { id } => {
            let request = admin::AuditServiceGetRequest {
                uuid: id,
                phase: None,
            };
            let answer = app.client.admin_audits().get(request).await?.into_inner();
            app.output.one(&given(answer.trace)?)
        }
        Command::Ls(ls) => list(app, ls).await,
        Command::Tail(tail) => tail::run(app, tail).await,
        Command::Verify(verify) => trail::verify(app, &verify).await,
        Command::Export { file } => trail::export(app, &file).await,
        Command::Exports { forget: Some(name) } => {
            let request = AuditTrailServiceForgetExportRequest { name };
            app.client.audit_trail().forget_export(request).await?;
            Ok(())
        }
        Command::Exports { forget: None } => {
            let request = AuditTrailServiceExportsRequest {};
            let answer = app.client.audit_trail().exports(request).await?;
            app.output.list(&answer.into_inner().exports)
        }
    }
}

/// `verify --file`, which asks no server.
pub(crate) fn file_to_verify(command: &Command) -> Option<(&Verify, &std::path::Path)> {
    match command {
        Command::Verify(verify) => Some((verify, verify.file.as_deref()?)),
        _ => None,
    }
}

async fn list(app: &App, ls: Ls) -> Result<()> {
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

/// A status code of gRPC by number or name.
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
    bail!("it is none of 0..16 or ok, invalid-argument, not-found, permission-denied, ...")
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
