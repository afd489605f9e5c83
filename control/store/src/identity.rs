//! The owner of a data directory, and the lock that keeps a second process out.

use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::config::StartMode;
use crate::disk::{DiskLock, StoreDisk};
use crate::error::OpenError;
use crate::random::random_id;

/// Name of the file with the [`NodeFile`].
const FILE: &str = "NODE";
/// Name of the lock file.
const LOCK: &str = "LOCK";
/// Directories of a data directory: applied state, Raft log, snapshots.
pub(crate) const PARTS: [&str; 3] = ["state", "log", "snapshots"];
/// Format of the data directory: its layout, the stored rows and the log records. A directory of
/// another format is refused and left as it is. Format 2 is the oldest that this program reads;
/// raise the number when a change cannot read what it replaces.
const FORMAT: u32 = 2;

/// Content of the file `NODE`: node and cluster of a data directory. Written once, when the
/// directory is made, as JSON, so that an operator can read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeFile {
    /// Format of the directory, see [`FORMAT`].
    pub(crate) format: u32,
    /// Id of the cluster, made when it was formed; every log segment contains it too.
    pub(crate) cluster_id: Uuid,
    pub(crate) cluster: String,
    pub(crate) node: u64,
}

/// Locks the directory for this process, as long as the store is open.
pub(crate) fn lock(disk: &dyn StoreDisk, dir: &Path) -> Result<DiskLock, OpenError> {
    let path = dir.join(LOCK);
    let lock = disk.lock(&path).map_err(|e| io_error("lock", &path, e))?;
    lock.ok_or_else(|| OpenError::InUse {
        path: dir.to_owned(),
    })
}

/// Node and cluster that a data directory belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryOwner {
    /// Id of the cluster.
    pub cluster_id: Uuid,
    /// Name of the cluster.
    pub cluster: String,
    /// Number of the node.
    pub node: u64,
}

/// Reads the owner of `dir`; `None` means that it has none yet.
///
/// # Errors
/// When the file `NODE` cannot be read, and when it is missing beside a log or a state.
pub fn claimed(dir: &Path) -> Result<Option<DirectoryOwner>, OpenError> {
    let path = dir.join(FILE);
    let disk = crate::disk::RealDisk;
    if !disk.exists(&path) {
        check_unowned(&disk, dir)?;
        return Ok(None);
    }
    let found = read(&disk, &path)?;
    Ok(Some(DirectoryOwner {
        cluster_id: found.cluster_id,
        cluster: found.cluster,
        node: found.node,
    }))
}

/// Checks that the directory belongs to this node; a new directory becomes this node's.
///
/// # Errors
/// [`OpenError::Foreign`] if it belongs to another node or cluster, [`OpenError::Identity`] if its
/// owner cannot be read.
pub(crate) fn claim(
    disk: &dyn StoreDisk,
    dir: &Path,
    cluster: &str,
    node: u64,
    begin: StartMode,
) -> Result<NodeFile, OpenError> {
    let path = dir.join(FILE);
    if !disk.exists(&path) {
        check_unowned(disk, dir)?;
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
    // `Form` names no id: the directory keeps the one that was made at its first start.
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

/// Refuses a directory that has a log, a snapshot or a state but no file `NODE`: a new one would give
/// the files of one cluster the id of another.
fn check_unowned(disk: &dyn StoreDisk, dir: &Path) -> Result<(), OpenError> {
    for part in PARTS {
        let part = dir.join(part);
        if disk.exists(&part) {
            let names = disk.list(&part).map_err(|e| io_error("list", &part, e))?;
            if !names.is_empty() {
                return Err(OpenError::Identity {
                    path: dir.join(FILE),
                    reason: format!("it is missing, and {} is not empty", part.display()),
                });
            }
        }
    }
    Ok(())
}

/// Reads the file `NODE`.
fn read(disk: &dyn StoreDisk, path: &Path) -> Result<NodeFile, OpenError> {
    let text = disk.read(path).map_err(|e| io_error("read", path, e))?;
    let unreadable = |reason: String| OpenError::Identity {
        path: path.to_owned(),
        reason,
    };
    let found: NodeFile = serde_json::from_slice(&text).map_err(|e| unreadable(e.to_string()))?;
    if found.format != FORMAT {
        return Err(OpenError::Format {
            path: path.parent().unwrap_or(path).to_owned(),
            found: found.format,
            known: FORMAT,
        });
    }
    Ok(found)
}

fn write(
    disk: &dyn StoreDisk,
    dir: &Path,
    path: &Path,
    identity: &NodeFile,
) -> std::io::Result<()> {
    // Complete or absent, whenever the power goes: a half-written file would lock the operator out
    // of the directory, and a missing sync could give it a second cluster id at the next start.
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
    fn a_directory_of_another_format_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let claim = || claim(&RealDisk, dir.path(), "east", 1, StartMode::Form);
        claim().unwrap();
        let path = dir.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let of = |format: u32| format!("\"format\": {format}");
        for format in [FORMAT - 1, FORMAT + 1] {
            let other = text.replace(&of(FORMAT), &of(format));
            std::fs::write(&path, &other).unwrap();
            let error = claim().unwrap_err().to_string();
            assert!(error.contains(&format!("has format {format}")), "{error}");
            assert!(error.contains("move the directory away"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
        }
    }

    #[test]
    fn a_log_without_an_owner_gets_no_new_one() {
        let dir = tempfile::tempdir().unwrap();
        for part in PARTS {
            std::fs::create_dir(dir.path().join(part)).unwrap();
        }
        let claim = || claim(&RealDisk, dir.path(), "east", 1, StartMode::Form);
        claim().expect("a start that ended before its first write left empty directories");
        std::fs::write(dir.path().join("log/1"), "an entry").unwrap();
        std::fs::remove_file(dir.path().join(FILE)).unwrap();
        for error in [claim().unwrap_err(), claimed(dir.path()).unwrap_err()] {
            assert!(matches!(error, OpenError::Identity { .. }), "{error}");
            assert!(error.to_string().contains("it is missing"), "{error}");
        }
        assert!(!dir.path().join(FILE).exists());
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
