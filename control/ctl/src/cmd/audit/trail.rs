//! The trail from a server or a file, checked and exported.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use proto_public::metalmesh::admin::v1::AuditTrailServiceListRequest;
use proto_types::AuditHash;
use serde::{Deserialize, Serialize};

use super::chain::{Anchor, Line, Verdict, Walk};
use crate::app::App;
use crate::output::Format;

/// What an export says it is.
const FORMAT: &str = "metalmesh audit trail 1";
/// Readings of a trail whose oldest records are dropped meanwhile.
const READINGS_MAX: u32 = 3;
/// The longest line of an export, bytes: a record with its body, twice over.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Flags of `metalmesh audit verify`.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Check this export instead of a server's trail; no server is asked.
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// A hash that an earlier verification or export ended with: it must still be there.
    #[arg(long, value_name = "HASH")]
    head: Option<AuditHash>,
}

/// The first line of an export.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: String,
    anchor: Option<Anchor>,
}

/// Checks an export.
pub(crate) fn verify_file(output: &Format, verify: &Verify, path: &Path) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let verdict = read(BufReader::new(file), verify.head)
        .with_context(|| format!("{} is not sound", path.display()))?;
    say(output, &verdict)
}

/// Checks the trail of the server.
pub(super) async fn verify(app: &App, verify: &Verify) -> Result<()> {
    let verdict = walk(app, verify.head, |_| Ok(()), |_| Ok(())).await?;
    say(&app.output, &verdict)
}

/// Writes the trail, checked on the way, to a new file.
pub(super) async fn export(app: &App, path: &Path) -> Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot create {}", path.display()))?;
    let out = std::cell::RefCell::new(BufWriter::new(file));
    let begin = |anchor: Option<&Anchor>| {
        let mut out = out.borrow_mut();
        // What an earlier reading wrote is not a part of this one.
        out.flush()?;
        out.get_ref().set_len(0)?;
        std::io::Seek::rewind(out.get_mut())?;
        let head = Head {
            format: FORMAT.to_owned(),
            anchor: anchor.cloned(),
        };
        Ok(writeln!(out, "{}", serde_json::to_string(&head)?)?)
    };
    let each = |line: &Line| {
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

fn say(output: &Format, verdict: &Verdict) -> Result<()> {
    if output.is_table() {
        verdict.say();
        return Ok(());
    }
    output.value(&serde_json::to_value(verdict)?)
}

/// Walks along the trail of the server; again from its begin when that moved meanwhile.
async fn walk(
    app: &App,
    wanted: Option<AuditHash>,
    begin: impl Fn(Option<&Anchor>) -> Result<()>,
    each: impl Fn(&Line) -> Result<()>,
) -> Result<Verdict> {
    for _ in 0..READINGS_MAX {
        let mut pages = Pages { app, after: 0 };
        let (anchor, mut lines) = pages.next().await?;
        begin(anchor.as_ref())?;
        let mut walk = Walk::new(anchor, wanted);
        let is_whole = loop {
            if lines.is_empty() {
                break true;
            }
            for line in &lines {
                walk.step(line)?;
                each(line)?;
            }
            let (anchor, more) = pages.next().await?;
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

/// Readings of the trail, one behind the other.
struct Pages<'a> {
    app: &'a App,
    after: u64,
}

impl Pages<'_> {
    async fn next(&mut self) -> Result<(Option<Anchor>, Vec<Line>)> {
        let request = AuditTrailServiceListRequest {
            after: self.after,
            limit: 0,
        };
        let page = self.app.client.audit_trail().list(request).await?;
        let page = page.into_inner();
        let anchor = page.anchor.as_ref().map(Anchor::read).transpose()?;
        let lines: Vec<Line> = page
            .records
            .into_iter()
            .map(Line::read)
            .collect::<Result<_>>()?;
        if let Some(last) = lines.last() {
            self.after = last.sequence;
        }
        Ok((anchor, lines))
    }
}

/// Walks along an export.
fn read(mut from: impl BufRead, wanted: Option<AuditHash>) -> Result<Verdict> {
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
    let head: Head = serde_json::from_str(&head).context("line 1 is not that of an export")?;
    ensure!(
        head.format == FORMAT,
        "it is a {:?}; this program reads {FORMAT:?}",
        head.format
    );
    let mut walk = Walk::new(head.anchor, wanted);
    let mut lines = 1_u64;
    while let Some(line) = next()? {
        lines += 1;
        let line: Line =
            serde_json::from_str(&line).with_context(|| format!("line {lines} is no record"))?;
        walk.step(&line)?;
    }
    walk.end()
}
