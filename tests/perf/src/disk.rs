//! The floor under every durable write: how fast the same disk syncs.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::sample::Latencies;

const BLOCK_BYTES: usize = 4096;
/// Length of the file; it is zero-filled first, as the log's segments are.
const FILE_BYTES: usize = 16 << 20;

/// Writes blocks of 4 KiB and syncs each, for `time`.
pub(crate) fn syncs(dir: &Path, time: Duration) -> Result<Latencies> {
    let path = dir.join("floor");
    let measured = measure(&path, time).context("cannot measure the disk");
    std::fs::remove_file(&path)?;
    measured
}

fn measure(path: &Path, time: Duration) -> Result<Latencies> {
    let file = File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .open(path)?;
    file.write_all_at(&vec![0; FILE_BYTES], 0)?;
    file.sync_all()?;
    let block = [0x5a; BLOCK_BYTES];
    let mut latencies = Latencies::default();
    let until = Instant::now() + time;
    for at in (0..FILE_BYTES).step_by(BLOCK_BYTES).cycle() {
        let began = Instant::now();
        if began >= until {
            break;
        }
        file.write_all_at(&block, at as u64)?;
        file.sync_data()?;
        latencies.add(began.elapsed());
    }
    Ok(latencies)
}
