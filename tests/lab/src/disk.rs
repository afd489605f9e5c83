//! Looking into a machine's disk from outside.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use anyhow::Result;
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};

const CHUNK: usize = 4 << 20;

/// Whether a sparse file holds some bytes. Holes are skipped: they read as zeros.
///
/// # Errors
/// The file cannot be read.
pub fn holds(path: &Path, marker: &[u8]) -> Result<bool> {
    let mut file = File::open(path)?;
    let finder = memchr::memmem::Finder::new(marker);
    let mut buffer = vec![0; CHUNK + marker.len()];
    let mut from = 0;
    loop {
        let data = match lseek(&file, from, Whence::SeekData) {
            Ok(data) => data,
            Err(Errno::ENXIO) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let hole = lseek(&file, data, Whence::SeekHole)?;
        let mut at = u64::try_from(data)?;
        let end = u64::try_from(hole)?;
        while at < end {
            // One marker's length beyond the chunk, so that none is cut in two.
            let length = usize::try_from(end - at)?.min(buffer.len());
            let Some(window) = buffer.get_mut(..length) else {
                break;
            };
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(window)?;
            if finder.find(window).is_some() {
                return Ok(true);
            }
            at += CHUNK as u64;
        }
        from = hole;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_marker_is_found_at_a_chunk_s_edge_and_behind_a_hole() {
        let dir = std::env::temp_dir().join(format!("mm-disk-{}", std::process::id()));
        let mut file = File::create(&dir).unwrap();
        file.write_all(&vec![b'x'; CHUNK - 3]).unwrap();
        file.write_all(b"edge-marker").unwrap();
        file.set_len(64 << 20).unwrap();
        file.seek(SeekFrom::Start(48 << 20)).unwrap();
        file.write_all(b"far-marker").unwrap();
        for (marker, found) in [("edge-marker", true), ("far-marker", true), ("none", false)] {
            assert_eq!(holds(&dir, marker.as_bytes()).unwrap(), found, "{marker}");
        }
        std::fs::remove_file(dir).unwrap();
    }
}
