//! Small files of the state directory, replaced atomically: a crash leaves the old or the new one.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use pixie_boot::{Lease, Pool};
use proto_types::MacAddr;
use serde::{Deserialize, Serialize};

/// Longest file that is read, bytes. A longer one is refused as not written by pixie.
const FILE_LEN_MAX: u64 = 64 << 20;

/// A lease on disk.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    mac: MacAddr,
    address: std::net::Ipv4Addr,
    expires_ms: u64,
    bmc: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Leases {
    version: u32,
    leases: Vec<Record>,
}

/// Reads leases. A missing file has none.
///
/// # Errors
/// If the file exists and cannot be read. An empty book instead would give held addresses to other
/// clients.
pub(crate) fn read_leases(path: &Path) -> io::Result<Vec<Lease>> {
    let Some(file) = read_json::<Leases>(path)? else {
        return Ok(Vec::new());
    };
    let pool = |bmc| if bmc { Pool::Bmcs } else { Pool::Machines };
    let lease = |r: Record| Lease {
        mac: r.mac,
        address: r.address,
        expires_ms: r.expires_ms,
        pool: pool(r.bmc),
    };
    Ok(file.leases.into_iter().map(lease).collect())
}

/// Writes leases.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_leases(path: &Path, leases: &[Lease]) -> io::Result<()> {
    let leases = leases
        .iter()
        .map(|l| Record {
            mac: l.mac,
            address: l.address,
            expires_ms: l.expires_ms,
            bmc: l.pool == Pool::Bmcs,
        })
        .collect();
    write_json(path, &Leases { version: 1, leases })
}

/// Reads a JSON file. `None` means that it does not exist.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let len = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if len > FILE_LEN_MAX {
        return Err(io::Error::other(format!(
            "{} is longer than any file of pixie",
            path.display()
        )));
    }
    serde_json::from_slice(&std::fs::read(path)?)
        .map(Some)
        .map_err(io::Error::other)
}

/// Writes a JSON file through a temporary one.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let bytes = serde_json::to_vec(value).map_err(io::Error::other)?;
    // In the same directory: a rename is atomic within one file system only.
    let temporary = path.with_extension("new");
    let mut file = File::create(&temporary)?;
    file.write_all(&bytes)?;
    // Synced before the rename: otherwise a power failure may leave the new name with no content.
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    match path.parent() {
        // The directory is synced too, or the rename itself may be lost.
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_are_read_back_and_a_broken_file_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("leases.json");
        assert_eq!(read_leases(&path).unwrap(), []);
        let lease = Lease {
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            address: [10, 0, 0, 9].into(),
            expires_ms: 7,
            pool: Pool::Bmcs,
        };
        write_leases(&path, std::slice::from_ref(&lease)).unwrap();
        assert_eq!(read_leases(&path).unwrap(), [lease]);
        std::fs::write(&path, b"{").unwrap();
        assert!(read_leases(&path).is_err());
    }
}
