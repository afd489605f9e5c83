//! Whose data directory this is, and that only one process has it.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::OpenError;
use crate::wal::segment::sync_dir;

const FILE: &str = "NODE";
const LOCK: &str = "LOCK";
const FORMAT: u32 = 1;

/// Written once, when the directory is made. Text, so that an operator can read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Layout of the directory.
    pub(crate) format: u32,
    /// Made when the cluster was; part of every log segment.
    pub(crate) cluster_id: Uuid,
    pub(crate) cluster: String,
    pub(crate) node: u64,
}

/// Held as long as the store is open.
#[derive(Debug)]
pub(crate) struct DirLock(#[expect(dead_code, reason = "the lock lives as long as the file")] File);

/// Takes the directory for this process.
pub(crate) fn lock(dir: &Path) -> Result<DirLock, OpenError> {
    let path = dir.join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(|e| io_error("open", &path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(DirLock(file)),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: dir.to_owned(),
        }),
        Err(TryLockError::Error(e)) => Err(io_error("lock", &path, e)),
    }
}

/// Reads whose directory this is; a new directory becomes ours.
pub(crate) fn claim(dir: &Path, cluster: &str, node: u64) -> Result<Identity, OpenError> {
    let path = dir.join(FILE);
    if !path.exists() {
        let cluster = cluster.to_owned();
        let identity = Identity {
            format: FORMAT,
            cluster_id: Uuid::new_v4(),
            cluster,
            node,
        };
        write(dir, &path, &identity).map_err(|e| io_error("write", &path, e))?;
        return Ok(identity);
    }
    let text = std::fs::read_to_string(&path).map_err(|e| io_error("read", &path, e))?;
    let unreadable = |reason: String| OpenError::Identity {
        path: path.clone(),
        reason,
    };
    let found: Identity = serde_json::from_str(&text).map_err(|e| unreadable(e.to_string()))?;
    if found.format != FORMAT {
        let reason = format!("it has format {}, this build knows {FORMAT}", found.format);
        return Err(unreadable(reason));
    }
    if found.cluster != cluster || found.node != node {
        return Err(OpenError::Foreign {
            path: dir.to_owned(),
            found: format!("node {} of cluster {:?}", found.node, found.cluster),
            wanted: format!("node {node} of cluster {cluster:?}"),
        });
    }
    Ok(found)
}

fn write(dir: &Path, path: &Path, identity: &Identity) -> std::io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(&serde_json::to_vec_pretty(identity)?)?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    sync_dir(dir)
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: std::io::Error) -> OpenError {
    OpenError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stays_with_its_first_owner() {
        let dir = tempfile::tempdir().unwrap();
        let first = claim(dir.path(), "east", 1).unwrap();
        assert_eq!(claim(dir.path(), "east", 1).unwrap(), first);
        let error = claim(dir.path(), "west", 1).unwrap_err().to_string();
        assert!(error.contains("node 1 of cluster \"east\""), "{error}");
        assert!(matches!(
            claim(dir.path(), "east", 2),
            Err(OpenError::Foreign { .. })
        ));
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(matches!(
            claim(dir.path(), "east", 1),
            Err(OpenError::Identity { .. })
        ));
    }

    #[test]
    fn only_one_holds_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let held = lock(dir.path()).unwrap();
        assert!(matches!(lock(dir.path()), Err(OpenError::InUse { .. })));
        drop(held);
        lock(dir.path()).unwrap();
    }
}
