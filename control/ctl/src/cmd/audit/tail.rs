//! `metalmesh audit tail`: the newest records, and those that are added.

use std::collections::VecDeque;

use anyhow::Result;
use clap::Args;
use control_client::{ObjectWatch, WatchScope};
use prost::Message as _;
use proto_public::api::v2::AuditTrace;
use proto_public::metalmesh::admin::v1::{WatchChange, WatchChangeType};

use super::AuditFilter;
use crate::app::App;
use crate::output::{TableRow as _, table, to_json};

/// Flags of `metalmesh audit tail`.
#[derive(Debug, Args)]
pub(crate) struct AuditTailArgs {
    #[command(flatten)]
    filter: AuditFilter,
    /// Number of existing records to show.
    #[arg(short = 'n', long, default_value_t = 10)]
    lines: usize,
    /// Show new records as they are written, until interrupted.
    #[arg(short, long)]
    follow: bool,
}

pub(super) async fn run(app: &App, tail: AuditTailArgs) -> Result<()> {
    let scope = match &tail.filter.tenant {
        Some(login) => WatchScope::Tenant(login.clone()),
        None => WatchScope::All,
    };
    let project = app.project().await?;
    let fits = |trace: &AuditTrace| tail.filter.fits(trace, project.as_deref());
    let mut watch = ObjectWatch::new(&app.client, scope, vec!["audit".to_owned()], None);
    let mut last = VecDeque::new();
    loop {
        let event = watch.next().await?;
        for trace in event.changes.iter().filter_map(added).filter(fits) {
            if last.len() >= tail.lines {
                last.pop_front();
            }
            if tail.lines > 0 {
                last.push_back(trace);
            }
        }
        if event.listed {
            break;
        }
    }
    show(app, last.make_contiguous(), true)?;
    if !tail.follow {
        return Ok(());
    }
    loop {
        let event = tokio::select! {
            event = watch.next() => event?,
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        let more: Vec<_> = event
            .changes
            .iter()
            .filter_map(added)
            .filter(fits)
            .collect();
        show(app, &more, false)?;
    }
}

/// The record that was added. `None` means the change drops an old record, which is not shown.
fn added(change: &WatchChange) -> Option<AuditTrace> {
    if change.r#type() == WatchChangeType::Deleted {
        return None;
    }
    AuditTrace::decode(change.object.as_ref()?.value.as_slice()).ok()
}

fn show(app: &App, traces: &[AuditTrace], is_first: bool) -> Result<()> {
    if !app.output.is_table() {
        for trace in traces {
            outln!("{}", to_json(trace)?);
        }
        return Ok(());
    }
    let wide = app.output.is_wide();
    let rows = traces.iter().map(|trace| trace.cells(wide));
    let text = table(&AuditTrace::titles(wide), rows);
    let text = match is_first {
        true => text.as_str(),
        false => text.split_once('\n').map_or("", |(_, rows)| rows),
    };
    out!("{text}");
    Ok(())
}
