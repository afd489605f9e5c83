//! Makes the data of earlier tenants unreadable, and reports the result for each disk.
//!
//! Each disk gets the strongest method that it supports. Success is not taken from the device's
//! status but from samples that are read back. If a method fails, the next one is tried; the last,
//! overwriting, fails only if the disk does. A failure is always reported: control then taints the
//! machine.

mod blocks;
mod plan;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use proto_mesh::DiskWipe;
use tokio::task::JoinSet;

use crate::cmd::{Cmd, run_all};
use crate::inventory::{Disk, Sys};
use blocks::Samples;
pub use plan::{AtaSecurity, Method, methods, release_commands};

/// Longest time of one erase command. Formats and secure erases of flash take seconds to minutes;
/// a device that needs more counts as failed and gets the next method.
const ERASE_LIMIT: Duration = Duration::from_secs(3600);
/// Longest time of commands that query a disk or release it.
const ASK_LIMIT: Duration = Duration::from_secs(30);

/// Wipes all disks concurrently. Returns one record per disk, with a method or an error.
pub async fn run(disks: Vec<Disk>) -> Vec<DiskWipe> {
    let wipes = disks.into_iter();
    collect(wipes.map(|disk| record(disk, Depth::Full)).collect()).await
}

/// Removes partition tables, and signatures of file systems, RAID and LVM, from all disks concurrently.
/// The data between stays: only for disks that stay with their project. Returns one record per disk.
pub async fn run_metadata(sys: &Sys) -> Vec<DiskWipe> {
    let wipes = sys.disks().into_iter();
    let wipes = wipes.map(|disk| {
        let partitions = sys.partitions(&disk);
        record(disk, Depth::Metadata { partitions })
    });
    collect(wipes.collect()).await
}

/// Runs the wipes of all disks at once.
async fn collect(wipes: Vec<impl Future<Output = DiskWipe> + Send + 'static>) -> Vec<DiskWipe> {
    // Before any disk is touched: an active array or volume group holds its disks open. It would
    // make the erase commands fail with EBUSY, and a running mirror could write old data back.
    if let Err(error) = run_all(&release_commands(), ASK_LIMIT).await {
        tracing::warn!(%error, "arrays and volumes not released");
    }
    let mut running = JoinSet::new();
    for wipe in wipes {
        running.spawn(wipe);
    }
    let mut records = Vec::new();
    while let Some(done) = running.join_next().await {
        match done {
            Ok(record) => records.push(record),
            // A task that panicked must not shorten the report: control counts a machine as clean
            // only if no record has an error.
            Err(error) => records.push(DiskWipe {
                error: error.to_string(),
                ..DiskWipe::default()
            }),
        }
    }
    records.sort_by(|a, b| a.name.cmp(&b.name));
    records
}

/// How much of a disk is wiped.
enum Depth {
    /// All of it, by the strongest method that works.
    Full,
    /// Partition tables and signatures, also those of the partitions with these paths.
    Metadata {
        /// Paths of the partitions.
        partitions: Vec<String>,
    },
}

/// Wipes a disk and describes the result.
async fn record(disk: Disk, depth: Depth) -> DiskWipe {
    let started = Instant::now();
    let mut record = DiskWipe {
        name: disk.path(),
        serial: disk.serial.clone(),
        ..DiskWipe::default()
    };
    let method = match depth {
        Depth::Full => wipe(&disk).await.map(Method::name),
        Depth::Metadata { partitions } => wipe_metadata(&disk, &partitions).await,
    };
    match method {
        Ok(method) => record.method = method.to_string(),
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

/// Wipes a disk by the first method that works.
async fn wipe(disk: &Disk) -> Result<Method> {
    let path = disk.path();
    // First of all: if the power fails during the erase, the next boot must not assemble an array
    // or activate a volume group from the old signatures, nor the firmware boot the old system.
    run_all(&plan::metadata_commands(&path), ASK_LIMIT).await?;
    let ata = if disk.name.starts_with("sd") {
        ata_security(&path).await
    } else {
        AtaSecurity::default()
    };
    // Before the first method: only content read now can show afterwards whether it is gone.
    let before = blocking(&path, blocks::sample)
        .await
        .context("cannot read the disk")?;
    let mut failures = Vec::new();
    for method in methods(disk, ata) {
        match apply(disk, method, &before).await {
            Ok(()) => {
                // A cryptographic erase may leave random bytes, and samples miss most blocks: the
                // next boot must find no partition table, whatever the method left behind.
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
                    "wipe method failed; trying the next"
                );
                // All reasons go into the report: the operator must see why the strongest method
                // did not work, not only the last.
                failures.push(format!("{}: {error:#}", method.name()));
            }
        }
    }
    bail!("no method worked: {}", failures.join("; "))
}

/// Removes the tables and signatures of a disk and of its partitions.
async fn wipe_metadata(disk: &Disk, partitions: &[String]) -> Result<&'static str> {
    let path = disk.path();
    // The partitions first: without the table the kernel does not know them any more, and the next
    // installation may put one at the same place, where an old signature would come to life again.
    for partition in partitions {
        run_all(&plan::signature_commands(partition), ASK_LIMIT).await?;
    }
    run_all(&plan::metadata_commands(&path), ASK_LIMIT).await?;
    blocking(&path, blocks::zero_ends)
        .await
        .context("cannot overwrite the ends of the disk")?;
    Ok(plan::METADATA)
}

async fn apply(disk: &Disk, method: Method, before: &Samples) -> Result<()> {
    let path = disk.path();
    run_all(&method.commands(&path), ERASE_LIMIT).await?;
    let samples = before.clone();
    match method {
        // Not sampled: each block is read or written here, and a failed write is an error.
        Method::Zero => {
            let changed = blocking(&path, blocks::zero).await?;
            tracing::debug!(disk = path, changed, "overwritten");
        }
        // Discard is a hint that a device may ignore, and not every device reads zeros afterwards:
        // anything but zeros in a sample counts as data that was left.
        Method::Discard => {
            let left = blocking(&path, move |p| blocks::not_zero(p, &samples)).await?;
            ensure!(left == 0, "{left} blocks still hold data");
        }
        // These may leave zeros, ones or, after a change of the media key, random bytes: the
        // samples must have changed, nothing more can be asked.
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
        // No answer counts as no security feature: the disk gets a weaker method instead.
        Err(_) => AtaSecurity::default(),
    }
}

/// Runs a function that reads or writes a whole disk on a thread for blocking work, so that events
/// and the order stream continue meanwhile.
async fn blocking<T, F>(path: &str, work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce(&str) -> std::io::Result<T> + Send + 'static,
{
    let path = path.to_string();
    Ok(tokio::task::spawn_blocking(move || work(&path)).await??)
}
