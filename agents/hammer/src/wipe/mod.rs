//! Makes what earlier tenants left on the disks unreadable, and says so disk by disk.
//!
//! Each disk gets the strongest method that it has; whether it worked is not believed but read
//! back. A method that fails hands over to the next; the last, overwriting, fails only with the
//! disk. A failure is reported, never passed over: control then taints the machine.

mod blocks;
mod plan;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use proto_mesh::DiskWipe;
use tokio::task::JoinSet;

use crate::cmd::{Cmd, run_all};
use crate::inventory::Disk;
use blocks::Samples;
pub use plan::{AtaSecurity, Method, methods, release_commands};

/// Formats and secure erases of flash take seconds to minutes.
const ERASE_LIMIT: Duration = Duration::from_secs(3600);
const ASK_LIMIT: Duration = Duration::from_secs(30);

/// Wipes all disks at once; one record each, good or bad.
pub async fn run(disks: Vec<Disk>) -> Vec<DiskWipe> {
    if let Err(error) = run_all(&release_commands(), ASK_LIMIT).await {
        tracing::warn!(%error, "arrays and volumes not released");
    }
    let mut running = JoinSet::new();
    for disk in disks {
        running.spawn(record(disk));
    }
    let mut records = Vec::new();
    while let Some(done) = running.join_next().await {
        match done {
            Ok(record) => records.push(record),
            Err(error) => records.push(DiskWipe {
                error: error.to_string(),
                ..DiskWipe::default()
            }),
        }
    }
    records.sort_by(|a, b| a.name.cmp(&b.name));
    records
}

async fn record(disk: Disk) -> DiskWipe {
    let started = Instant::now();
    let mut record = DiskWipe {
        name: disk.path(),
        serial: disk.serial.clone(),
        ..DiskWipe::default()
    };
    match wipe(&disk).await {
        Ok(method) => record.method = method.name().to_string(),
        Err(error) => record.error = format!("{error:#}"),
    }
    record.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if record.error.is_empty() {
        let (disk, method, ms) = (&record.name, &record.method, record.duration_ms);
        tracing::info!(disk, method, ms, "disk wiped");
    } else {
        tracing::error!(disk = record.name, error = record.error, "disk NOT wiped");
    }
    record
}

async fn wipe(disk: &Disk) -> Result<Method> {
    let path = disk.path();
    run_all(&plan::metadata_commands(&path), ASK_LIMIT).await?;
    let ata = if disk.name.starts_with("sd") {
        ata_security(&path).await
    } else {
        AtaSecurity::default()
    };
    let before = blocking(&path, blocks::sample)
        .await
        .context("cannot read the disk")?;
    let mut failures = Vec::new();
    for method in methods(disk, ata) {
        match apply(disk, method, &before).await {
            Ok(()) => {
                // The next boot must find no trace of a partition table, whatever the method left.
                blocking(&path, blocks::zero_ends)
                    .await
                    .context("cannot overwrite the ends of the disk")?;
                return Ok(method);
            }
            Err(error) => {
                tracing::warn!(
                    disk = path,
                    method = method.name(),
                    error = format!("{error:#}"),
                    "next method"
                );
                failures.push(format!("{}: {error:#}", method.name()));
            }
        }
    }
    bail!("no method worked: {}", failures.join("; "))
}

async fn apply(disk: &Disk, method: Method, before: &Samples) -> Result<()> {
    let path = disk.path();
    run_all(&method.commands(&path), ERASE_LIMIT).await?;
    let samples = before.clone();
    match method {
        Method::Zero => {
            let changed = blocking(&path, blocks::zero).await?;
            tracing::debug!(disk = path, changed, "overwritten");
        }
        Method::Discard => {
            let left = blocking(&path, move |p| blocks::not_zero(p, &samples)).await?;
            ensure!(left == 0, "{left} blocks still hold data");
        }
        Method::NvmeFormat | Method::AtaSecureErase => {
            let left = blocking(&path, move |p| blocks::unchanged(p, &samples)).await?;
            ensure!(left == 0, "{left} blocks still hold the old data");
        }
    }
    Ok(())
}

async fn ata_security(path: &str) -> AtaSecurity {
    match Cmd::new("hdparm", ["-I", path]).run(ASK_LIMIT).await {
        Ok(text) => AtaSecurity::parse(&text),
        Err(_) => AtaSecurity::default(),
    }
}

/// Runs a function that reads or writes a whole disk beside the other tasks.
async fn blocking<T, F>(path: &str, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(&str) -> std::io::Result<T> + Send + 'static,
{
    let path = path.to_string();
    Ok(tokio::task::spawn_blocking(move || work(&path)).await??)
}
