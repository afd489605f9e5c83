//! Verification and export of the trail of a server, and verification of an export.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use proto_public::metalmesh::admin::v1::AuditTrailServiceListRequest;
use proto_types::AuditHash;
use serde::{Deserialize, Serialize};

use super::chain::{ChainVerdict, ChainWalk};
use super::trail_line::{ChainAnchor, TrailLine};
use crate::app::App;
use crate::output::OutputFormat;

/// Format and version in the first line of an export. Exports of other formats are refused.
const FORMAT: &str = "metalmesh audit trail 1";
/// Most attempts to read a trail whose oldest records are dropped meanwhile; then the command fails.
const READINGS_MAX: u32 = 3;
/// Longest line of an export, bytes: twice a record with the largest body. A longer one is refused.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Flags of `metalmesh audit verify`.
#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// Verify this export instead of the server's trail; needs no server.
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Head of an earlier verification or export, which the trail must still contain.
    #[arg(long, value_name = "HASH")]
    head: Option<AuditHash>,
}

/// The first line of an export.
#[derive(Debug, Serialize, Deserialize)]
struct ExportHead {
    format: String,
    anchor: Option<ChainAnchor>,
}

/// Verifies an export.
pub(crate) fn verify_file(
    output: &OutputFormat,
    verify: &AuditVerifyArgs,
    path: &Path,
) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let verdict = read(BufReader::new(file), verify.head)
        .with_context(|| format!("{} is not sound", path.display()))?;
    say(output, &verdict)
}

/// Verifies the trail of the server.
pub(super) async fn verify(app: &App, verify: &AuditVerifyArgs) -> Result<()> {
    let verdict = walk(app, verify.head, |_| Ok(()), |_| Ok(())).await?;
    say(&app.output, &verdict)
}

/// Verifies the trail and writes it to a new file.
pub(super) async fn export(app: &App, path: &Path) -> Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot create {}", path.display()))?;
    let out = std::cell::RefCell::new(BufWriter::new(file));
    let begin = |anchor: Option<&ChainAnchor>| {
        let mut out = out.borrow_mut();
        // An earlier attempt may have written a part of the file, from an older anchor.
        out.flush()?;
        out.get_ref().set_len(0)?;
        std::io::Seek::rewind(out.get_mut())?;
        let head = ExportHead {
            format: FORMAT.to_owned(),
            anchor: anchor.cloned(),
        };
        Ok(writeln!(out, "{}", serde_json::to_string(&head)?)?)
    };
    let each = |line: &TrailLine| {
        let mut out = out.borrow_mut();
        Ok(writeln!(out, "{}", serde_json::to_string(line)?)?)
    };
    let written = walk(app, None, begin, each).await.and_then(|verdict| {
        let mut out = out.borrow_mut();
        out.flush()?;
        out.get_ref().sync_all()?;
        Ok(verdict)
    });
    match written {
        Ok(verdict) => say(&app.output, &verdict),
        Err(error) => {
            drop(std::fs::remove_file(path));
            Err(error.context(format!("{} was not written", path.display())))
        }
    }
}

fn say(output: &OutputFormat, verdict: &ChainVerdict) -> Result<()> {
    if output.is_table() {
        verdict.say();
        return Ok(());
    }
    output.value(&serde_json::to_value(verdict)?)
}

/// Verifies the trail of the server. It starts again when the server drops records meanwhile.
async fn walk(
    app: &App,
    wanted: Option<AuditHash>,
    begin: impl Fn(Option<&ChainAnchor>) -> Result<()>,
    each: impl Fn(&TrailLine) -> Result<()>,
) -> Result<ChainVerdict> {
    for _ in 0..READINGS_MAX {
        let mut pages = TrailPages { app, after: 0 };
        let (anchor, mut lines) = pages.next().await?;
        begin(anchor.as_ref())?;
        let mut walk = ChainWalk::new(anchor, wanted);
        let is_whole = loop {
            if lines.is_empty() {
                break true;
            }
            for line in &lines {
                walk.step(line)?;
                each(line)?;
            }
            let (anchor, more) = pages.next().await?;
            // Records between the last page and the new anchor are gone: the walk cannot continue.
            if anchor.is_some_and(|anchor| anchor.sequence > walk.sequence) {
                break false;
            }
            lines = more;
        };
        if is_whole {
            return walk.end();
        }
    }
    bail!("records are dropped faster than they can be read; try again")
}

/// Pages of the trail, in order.
struct TrailPages<'a> {
    app: &'a App,
    after: u64,
}

impl TrailPages<'_> {
    async fn next(&mut self) -> Result<(Option<ChainAnchor>, Vec<TrailLine>)> {
        let request = AuditTrailServiceListRequest {
            after: self.after,
            limit: 0,
        };
        let page = self.app.client.audit_trail().list(request).await?;
        let page = page.into_inner();
        let anchor = page.anchor.as_ref().map(ChainAnchor::read).transpose()?;
        let lines: Vec<TrailLine> = page
            .records
            .into_iter()
            .map(TrailLine::read)
            .collect::<Result<_>>()?;
        if let Some(last) = lines.last() {
            self.after = last.sequence;
        }
        Ok((anchor, lines))
    }
}

/// Verifies an export.
fn read(mut from: impl BufRead, wanted: Option<AuditHash>) -> Result<ChainVerdict> {
    let mut text = String::new();
    let mut number = 0_u64;
    let mut next = || -> Result<Option<String>> {
        text.clear();
        number += 1;
        let mut bounded = std::io::Read::take(&mut from, LINE_BYTES_MAX as u64);
        let count = bounded.read_line(&mut text)?;
        ensure!(
            count < LINE_BYTES_MAX,
            "line {number} is longer than {LINE_BYTES_MAX} bytes"
        );
        Ok((count > 0).then(|| text.clone()))
    };
    let head = next()?.context("it is empty")?;
    let head: ExportHead =
        serde_json::from_str(&head).context("line 1 is not the head of an export")?;
    ensure!(
        head.format == FORMAT,
        "its format is {:?}; this program reads {FORMAT:?}",
        head.format
    );
    let mut walk = ChainWalk::new(head.anchor, wanted);
    let mut lines = 1_u64;
    while let Some(line) = next()? {
        lines += 1;
        let line: TrailLine =
            serde_json::from_str(&line).with_context(|| format!("line {lines} is not a record"))?;
        walk.step(&line)?;
    }
    walk.end()
}
