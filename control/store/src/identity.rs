//! Whose data directory this is, and that only one process has it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::StartMode;
use crate::disk::{DiskLock, StoreDisk};
use crate::error::OpenError;
use crate::random::random_id;

const FILE: &str = "NODE";
const LOCK: &str = "LOCK";
const FORMAT: u32 = 1;

/// Written once, when the directory is made. Text, so that an operator can read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeFile {
    /// Layout of the directory.
    pub(crate) format: u32,
    /// Made when the cluster was; part of every log segment.
    pub(crate) cluster_id: Uuid,
    pub(crate) cluster: String,
    pub(crate) node: u64,
}

/// Takes the directory for this process, for as long as the store is open.
pub(crate) fn lock(disk: &dyn StoreDisk, dir: &Path) -> Result<DiskLock, OpenError> {
    let path = dir.join(LOCK);
    let lock = disk.lock(&path).map_err(|e| io_error("lock", &path, e))?;
    lock.ok_or_else(|| OpenError::InUse {
        path: dir.to_owned(),
    })
}

/// Whose data directory it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryOwner {
    /// The cluster's id.
    pub cluster_id: Uuid,
    /// Its name.
    pub cluster: String,
    /// The node's number in it.
    pub node: u64,
}

/// Whose data directory `dir` is; `None` when it is nobody's yet.
///
/// # Errors
/// When the file that says so cannot be read.
pub fn claimed(dir: &Path) -> Result<Option<DirectoryOwner>, OpenError> {
    let path = dir.join(FILE);
    let disk = crate::disk::RealDisk;
    if !disk.exists(&path) {
        return Ok(None);
    }
    let found = read(&disk, &path)?;
    Ok(Some(DirectoryOwner {
        cluster_id: found.cluster_id,
        cluster: found.cluster,
        node: found.node,
    }))
}

/// Reads whose directory this is; a new directory becomes ours.
pub(crate) fn claim(
    disk: &dyn StoreDisk,
    dir: &Path,
    cluster: &str,
    node: u64,
    begin: StartMode,
) -> Result<NodeFile, OpenError> {
    let path = dir.join(FILE);
    if !disk.exists(&path) {
        let cluster = cluster.to_owned();
        let identity = NodeFile {
            format: FORMAT,
            cluster_id: match begin {
                StartMode::Form => random_id(),
                StartMode::Join(cluster_id) => cluster_id,
            },
            cluster,
            node,
        };
        write(disk, dir, &path, &identity).map_err(|e| io_error("write", &path, e))?;
        return Ok(identity);
    }
    let found = read(disk, &path)?;
    if found.cluster != cluster || found.node != node {
        return Err(OpenError::Foreign {
            path: dir.to_owned(),
            found: format!("node {} of cluster {:?}", found.node, found.cluster),
            wanted: format!("node {node} of cluster {cluster:?}"),
        });
    }
    if let StartMode::Join(wanted) = begin
        && found.cluster_id != wanted
    {
        return Err(OpenError::Foreign {
            path: dir.to_owned(),
            found: format!("cluster {}", found.cluster_id),
            wanted: format!("a part of cluster {wanted}"),
        });
    }
    Ok(found)
}

/// Reads the file that says whose directory it is.
fn read(disk: &dyn StoreDisk, path: &Path) -> Result<NodeFile, OpenError> {
    let text = disk.read(path).map_err(|e| io_error("read", path, e))?;
    let unreadable = |reason: String| OpenError::Identity {
        path: path.to_owned(),
        reason,
    };
    let found: NodeFile = serde_json::from_slice(&text).map_err(|e| unreadable(e.to_string()))?;
    if found.format != FORMAT {
        let reason = format!("it has format {}, this build knows {FORMAT}", found.format);
        return Err(unreadable(reason));
    }
    Ok(found)
}

fn write(
    disk: &dyn StoreDisk,
    dir: &Path,
    path: &Path,
    identity: &NodeFile,
) -> std::io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut text = serde_json::to_vec_pretty(identity)?;
    text.push(b'\n');
    let file = disk.create(&temporary)?;
    file.write_at(&text, 0)?;
    file.sync()?;
    disk.rename(&temporary, path)?;
    disk.sync_dir(dir)
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
    use crate::disk::RealDisk;

    #[test]
    fn a_directory_stays_with_its_first_owner() {
        let dir = tempfile::tempdir().unwrap();
        let first = claim(&RealDisk, dir.path(), "east", 1, StartMode::Form).unwrap();
        assert_eq!(
            claim(&RealDisk, dir.path(), "east", 1, StartMode::Form).unwrap(),
            first
        );
        let error = claim(&RealDisk, dir.path(), "west", 1, StartMode::Form)
            .unwrap_err()
            .to_string();
        assert!(error.contains("node 1 of cluster \"east\""), "{error}");
        assert!(matches!(
            claim(&RealDisk, dir.path(), "east", 2, StartMode::Form),
            Err(OpenError::Foreign { .. })
        ));
        let claim_as = |begin| claim(&RealDisk, dir.path(), "east", 1, begin);
        let error = claim_as(StartMode::Join(Uuid::new_v4())).unwrap_err();
        assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
        assert_eq!(claim_as(StartMode::Join(first.cluster_id)).unwrap(), first);
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(matches!(
            claim(&RealDisk, dir.path(), "east", 1, StartMode::Form),
            Err(OpenError::Identity { .. })
        ));
    }

    #[test]
    fn only_one_holds_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let held = lock(&RealDisk, dir.path()).unwrap();
        assert!(matches!(
            lock(&RealDisk, dir.path()),
            Err(OpenError::InUse { .. })
        ));
        drop(held);
        lock(&RealDisk, dir.path()).unwrap();
    }
}
