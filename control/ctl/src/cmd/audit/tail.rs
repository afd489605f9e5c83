//! The end of the trail, and what is added.

use std::collections::VecDeque;

use anyhow::Result;
use clap::Args;
use control_client::{Watch, WatchScope};
use prost::Message as _;
use proto_public::api::v2::AuditTrace;
use proto_public::metalmesh::admin::v1::{WatchChange, WatchChangeType};

use super::Filter;
use crate::app::App;
use crate::output::{Row as _, table, to_json};

/// Flags of `metalmesh audit tail`.
#[derive(Debug, Args)]
pub(crate) struct Tail {
    #[command(flatten)]
    filter: Filter,
    /// So many of what is there.
    #[arg(short = 'n', long, default_value_t = 10)]
    lines: usize,
    /// Go on showing what is added, until interrupted.
    #[arg(short, long)]
    follow: bool,
}

pub(super) async fn run(app: &App, tail: Tail) -> Result<()> {
    let scope = match &tail.filter.tenant {
        Some(login) => WatchScope::Tenant(login.clone()),
        None => WatchScope::All,
    };
    let project = app.project().await?;
    let fits = |trace: &AuditTrace| tail.filter.fits(trace, project.as_deref());
    let mut watch = Watch::new(&app.client, scope, vec!["audit".to_owned()], None);
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

/// The record that came; the oldest go without a word.
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
