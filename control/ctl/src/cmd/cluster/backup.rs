//! `metalmesh cluster backup`.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use proto_backup::{Encryption, Head, Identities, Item, NewKey, Reader};
use proto_public::metalmesh::admin::v1::{BackupServiceCreateRequest, BackupSummary};
use serde_json::json;

use crate::app::App;
use crate::files;
use crate::output::{OutputFormat, print_table};
use crate::text::moment;

/// Flags of `metalmesh cluster backup`.
#[derive(Debug, Args)]
pub(crate) struct ClusterBackupArgs {
    /// File to write, which must not exist; with --list the file to read.
    file: PathBuf,
    /// Encrypt for this age recipient (age1...). Repeatable. Without it a new key is created and
    /// written to FILE.key.
    #[arg(long, value_name = "RECIPIENT", conflicts_with = "list")]
    recipient: Vec<String>,
    /// Do not encrypt. The file then shows the whole state to everybody who can read it; only the
    /// key that unseals the private keys in it is left out.
    #[arg(long, conflicts_with_all = ["recipient", "list"])]
    plain: bool,
    /// Show the contents of the file and verify that it is complete.
    #[arg(long)]
    pub(crate) list: bool,
    /// Key file that decrypts the backup, with --list [default: FILE.key].
    #[arg(long, value_name = "KEYFILE", requires = "list")]
    identity: Option<PathBuf>,
}

pub(crate) async fn run(app: &App, backup: ClusterBackupArgs) -> Result<()> {
    ensure!(
        !backup.file.exists(),
        "{} exists already; choose a new file",
        backup.file.display()
    );
    let key = key_file(&backup.file);
    let new = (backup.recipient.is_empty() && !backup.plain).then(NewKey::generate);
    let recipients = match &new {
        Some(new) => {
            files::write_private(&key, &new.file())?;
            vec![new.recipient()]
        }
        None => backup.recipient.clone(),
    };
    let made = create(app, &backup.file, recipients, backup.plain).await;
    let summary = match made {
        Ok(summary) => summary,
        Err(error) => {
            if new.is_some() {
                remove(&key);
            }
            return Err(error);
        }
    };
    if let Some(new) = &new {
        // The new key is still in memory: verify the file before anybody relies on it.
        read_all(&backup.file, Some(&Identities::parse(&new.file())?))?;
    }
    told(app, &backup, &summary, new.is_some().then_some(&key))
}

fn told(
    app: &App,
    backup: &ClusterBackupArgs,
    summary: &BackupSummary,
    key: Option<&PathBuf>,
) -> Result<()> {
    if !app.output.is_table() {
        return app.output.value(&json!({
            "file": backup.file, "key": key, "revision": summary.revision,
            "objects": summary.objects, "bytes": summary.bytes,
        }));
    }
    outln!(
        "backup:  {} ({} objects, revision {})",
        backup.file.display(),
        summary.objects,
        summary.revision
    );
    match key {
        Some(key) => {
            outln!("key:     {}", key.display());
            noteln!(
                "hint:  keep the key apart from the backup: the backup cannot be read without the \
                 key, and both together give the whole state"
            );
        }
        None if backup.plain => noteln!(
            "hint:  the backup is not encrypted; to restore it you need copies of a node's \
             seal.key and data.key"
        ),
        None => {}
    }
    Ok(())
}

/// Receives a backup. The file gets its name only when it is complete, so that no script takes a
/// part for a backup.
async fn create(
    app: &App,
    path: &Path,
    recipients: Vec<String>,
    plain: bool,
) -> Result<BackupSummary> {
    let partial = with_suffix(path, ".partial");
    let received = receive(app, &partial, recipients, plain).await;
    let renamed = received.and_then(|summary| {
        std::fs::rename(&partial, path)
            .with_context(|| format!("cannot name {}", path.display()))?;
        Ok(summary)
    });
    if renamed.is_err() {
        remove(&partial);
    }
    renamed
}

async fn receive(
    app: &App,
    partial: &Path,
    recipients: Vec<String>,
    plain: bool,
) -> Result<BackupSummary> {
    let request = BackupServiceCreateRequest { recipients, plain };
    let mut pieces = app.client.backups().create(request).await?.into_inner();
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(partial)
        .with_context(|| format!("cannot create {}", partial.display()))?;
    let write = || format!("cannot write {}", partial.display());
    let mut out = BufWriter::new(file);
    while let Some(piece) = pieces.message().await? {
        out.write_all(&piece.piece).with_context(write)?;
        if let Some(summary) = piece.summary {
            let file = out
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error);
            file.and_then(|file| file.sync_all()).with_context(write)?;
            return Ok(summary);
        }
    }
    bail!("the stream ended before the backup was complete; try again")
}

/// Shows the contents of a backup file.
pub(crate) fn list(output: &OutputFormat, backup: &ClusterBackupArgs) -> Result<()> {
    let path = &backup.file;
    let head = Head::read(&mut open(path)?).with_context(|| named(path))?;
    let key = backup.identity.clone().unwrap_or_else(|| key_file(path));
    let has_key = backup.identity.is_some() || key.exists();
    let keys = match head.encryption {
        Encryption::Age if has_key => {
            let text = files::read(&key)?;
            Some(Identities::parse(&text).with_context(|| named(&key))?)
        }
        _ => None,
    };
    let can_read = keys.is_some() || head.encryption == Encryption::None;
    let counts = match can_read {
        true => Some(read_all(path, keys.as_ref())?),
        false => None,
    };
    if !output.is_table() {
        return output.value(&json!({ "head": head, "objects": counts, "whole": can_read }));
    }
    show(&head, counts.as_ref());
    if counts.is_none() {
        noteln!(
            "hint:  the backup is encrypted; to show and verify its contents, name its key: \
             --identity KEYFILE"
        );
    }
    Ok(())
}

fn show(head: &Head, counts: Option<&BTreeMap<String, u64>>) {
    let made_at = prost_types::Timestamp {
        seconds: i64::try_from(head.made_at_ms / 1000).unwrap_or(i64::MAX),
        nanos: 0,
    };
    outln!("cluster:     {} ({})", head.cluster, head.cluster_id);
    outln!(
        "made:        {}, by node {} with metalmesh {}",
        moment(Some(&made_at)),
        head.node,
        head.made_by
    );
    outln!("revision:    {}", head.revision);
    outln!("level:       {}", head.feature_level);
    let encryption = match head.encryption {
        Encryption::Age => "age",
        Encryption::None => "none",
    };
    outln!("encryption:  {encryption}");
    let Some(counts) = counts else { return };
    let all: u64 = counts.values().sum();
    outln!("whole:       yes, {all} objects\n");
    let rows = counts
        .iter()
        .map(|(kind, count)| vec![kind.clone(), count.to_string()]);
    print_table(&["kind", "objects"], rows);
}

/// Reads and verifies the whole file. Returns the number of objects of each kind.
fn read_all(path: &Path, keys: Option<&Identities>) -> Result<BTreeMap<String, u64>> {
    let mut reader = Reader::open(open(path)?, keys).with_context(|| named(path))?;
    let mut counts = BTreeMap::new();
    while let Some(item) = reader.item().with_context(|| named(path))? {
        if let Item::Row { key, .. } = item {
            let kind = key.split(|b| *b == b'/').next().unwrap_or_default();
            let kind = String::from_utf8_lossy(kind).into_owned();
            *counts.entry(kind).or_default() += 1;
        }
    }
    Ok(counts)
}

fn open(path: &Path) -> Result<BufReader<File>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(BufReader::new(file))
}

fn named(path: &Path) -> String {
    format!("cannot use {}", path.display())
}

fn key_file(path: &Path) -> PathBuf {
    with_suffix(path, ".key")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes an incomplete file, and warns if that fails.
fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            noteln!("warning: cannot remove {}: {error}", path.display());
        }
        _ => {}
    }
}
