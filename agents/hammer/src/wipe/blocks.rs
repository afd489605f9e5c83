//! Sampling and overwriting of whole disks.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// Blocks that are read before a wipe and read back after it, at most. They take 2 MiB per disk.
const SAMPLES: u64 = 512;
/// Bytes of a sampled block.
const SAMPLE_LEN: usize = 4096;
/// Bytes at either end of the disk that are always overwritten: partition tables and the
/// signatures of file systems, RAID and LVM are stored there.
const END_LEN: u64 = 4 << 20;
/// Bytes of one step of overwriting.
const CHUNK_LEN: usize = 4 << 20;
/// Progress messages per disk.
const PROGRESS_PARTS: u64 = 10;

/// Blocks and their content before the wipe.
#[derive(Debug, Clone)]
pub(super) struct Samples {
    /// Offset and content.
    places: Vec<(u64, [u8; SAMPLE_LEN])>,
}

/// Reads blocks spread over the whole disk, each at a random offset of its part. Fixed offsets
/// could all lie in space that tenants never use.
pub(super) fn sample(path: &str) -> io::Result<Samples> {
    let file = File::open(path)?;
    let len = length(&file)?;
    let part = (len / SAMPLES).max(SAMPLE_LEN as u64);
    let mut places = Vec::new();
    let mut start = 0;
    while start + SAMPLE_LEN as u64 <= len && (places.len() as u64) < SAMPLES {
        let room = (part - SAMPLE_LEN as u64) / SAMPLE_LEN as u64;
        let at = start + rand::random_range(0..=room) * SAMPLE_LEN as u64;
        let mut block = [0; SAMPLE_LEN];
        // A disk with bad sectors can still be wiped: the block is left out of the proof.
        if file.read_exact_at(&mut block, at).is_ok() {
            places.push((at, block));
        }
        start += part;
    }
    Ok(Samples { places })
}

/// Counts the sampled blocks that do not read zero now.
pub(super) fn not_zero(path: &str, samples: &Samples) -> io::Result<usize> {
    count(path, samples, |now, _| now.iter().any(|b| *b != 0))
}

/// Counts the sampled blocks that held data and still hold the same.
pub(super) fn unchanged(path: &str, samples: &Samples) -> io::Result<usize> {
    // A block of one repeated byte is empty space or the pattern of an earlier erase; it may read
    // the same after a successful one.
    let uniform = |block: &[u8]| block.iter().all(|b| Some(b) == block.first());
    count(path, samples, |now, before| {
        now == before && !uniform(before)
    })
}

fn count(
    path: &str,
    samples: &Samples,
    is_bad: impl Fn(&[u8; SAMPLE_LEN], &[u8; SAMPLE_LEN]) -> bool,
) -> io::Result<usize> {
    // A disk of which no block could be read before has nothing to compare with: the method counts
    // as failed, and overwriting, which needs no proof, is left.
    if samples.places.is_empty() {
        return Err(io::Error::other("no block could be read before the wipe"));
    }
    // Opened anew: when the last user of a block device closes it, the kernel drops its page cache,
    // so that these reads come from the device and not from the cache of the first sampling.
    let file = File::open(path)?;
    let mut bad = 0;
    for (at, before) in &samples.places {
        let mut now = [0; SAMPLE_LEN];
        file.read_exact_at(&mut now, *at)?;
        bad += usize::from(is_bad(&now, before));
    }
    Ok(bad)
}

/// Overwrites the first and the last 4 MiB.
pub(super) fn zero_ends(path: &str) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let len = length(&file)?;
    let zeroes = vec![0; usize::try_from(END_LEN.min(len)).map_err(io::Error::other)?];
    file.write_all_at(&zeroes, 0)?;
    file.write_all_at(&zeroes, len.saturating_sub(END_LEN))?;
    file.sync_all()
}

/// Overwrites every chunk that is not zero, and returns their number. Reading first saves the
/// wear of flash, and keeps thin disks thin.
pub(super) fn zero(path: &str) -> io::Result<u64> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let len = length(&file)?;
    let zeroes = vec![0_u8; CHUNK_LEN];
    let mut buffer = vec![0_u8; CHUNK_LEN];
    let mut told = 0;
    let mut changed = 0;
    let mut at = 0;
    while at < len {
        let want = usize::try_from((len - at).min(CHUNK_LEN as u64)).map_err(io::Error::other)?;
        let (have, blank) = (&mut buffer[..want], &zeroes[..want]);
        // A sector that cannot be read may still be written, which makes the disk remap it.
        let readable = file.read_exact_at(have, at).is_ok();
        if !readable || have != blank {
            file.write_all_at(blank, at)?;
            changed += 1;
        }
        at += want as u64;
        let parts = at * PROGRESS_PARTS / len;
        if parts > told {
            told = parts;
            tracing::info!(
                disk = path,
                percent = parts * 100 / PROGRESS_PARTS,
                "overwriting"
            );
        }
    }
    // Writes that are only in the page cache are no wipe: the report must not precede the disk.
    file.sync_all()?;
    Ok(changed)
}

fn length(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(len: usize, byte: u8) -> (tempfile::NamedTempFile, String) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let data: Vec<u8> = (0..len)
            .map(|n| if n % 2 == 0 { byte } else { 1 })
            .collect();
        std::fs::write(file.path(), data).unwrap();
        let path = file.path().to_str().unwrap().to_string();
        (file, path)
    }

    #[test]
    fn data_that_stays_is_seen() {
        let (_file, path) = disk(9 << 20, 7);
        let samples = sample(&path).unwrap();
        assert!(samples.places.len() > 500);
        assert_eq!(unchanged(&path, &samples).unwrap(), samples.places.len());
        assert_eq!(not_zero(&path, &samples).unwrap(), samples.places.len());
    }

    #[test]
    fn overwriting_leaves_nothing() {
        let (_file, path) = disk((9 << 20) + 4096, 7);
        let samples = sample(&path).unwrap();
        assert_eq!(zero(&path).unwrap(), 3);
        assert_eq!(not_zero(&path, &samples).unwrap(), 0);
        assert_eq!(unchanged(&path, &samples).unwrap(), 0);
        assert!(std::fs::read(&path).unwrap().iter().all(|b| *b == 0));
        // Chunks of zeros are not written again.
        assert_eq!(zero(&path).unwrap(), 0);
    }

    #[test]
    fn both_ends_are_overwritten() {
        let (_file, path) = disk(20 << 20, 7);
        zero_ends(&path).unwrap();
        let data = std::fs::read(&path).unwrap();
        assert!(data[..4 << 20].iter().all(|b| *b == 0));
        assert!(data[16 << 20..].iter().all(|b| *b == 0));
        assert_eq!(data[10 << 20], 7);
    }

    #[test]
    fn no_samples_prove_nothing() {
        let (_file, path) = disk(8192, 7);
        let none = Samples { places: Vec::new() };
        assert!(not_zero(&path, &none).is_err());
        assert!(unchanged(&path, &none).is_err());
    }

    #[test]
    fn small_disks_are_no_trouble() {
        let (_file, path) = disk(8192, 7);
        let samples = sample(&path).unwrap();
        assert_eq!(samples.places.len(), 2);
        zero_ends(&path).unwrap();
        assert_eq!(not_zero(&path, &samples).unwrap(), 0);
    }
}
