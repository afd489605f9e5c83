//! The disk of the data directory: latency of a sync, free space, file system.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use nix::sys::statvfs::statvfs;

use crate::args::SetupCheck;
use crate::setup::finding::{FindingGrade, SetupFinding};

/// Bytes of one measured write: about one entry of the log.
const WRITE_BYTES: usize = 4096;
/// Measured writes.
const WRITES: usize = 128;
/// Longest measurement; fewer writes are measured on a slow disk.
const MEASURE_MAX: Duration = Duration::from_secs(3);
/// The 99th percentile up to which a sync is fast enough: a write of the cluster waits for one sync on
/// a majority of the nodes, and the nodes of etcd are held to the same bound.
const SYNC_GOOD: Duration = Duration::from_millis(10);
/// The median beyond which the disk is refused: a heartbeat of the leader would miss its time.
const SYNC_MAX: Duration = Duration::from_millis(500);
/// Free bytes below which the disk is refused, and below which there is a warning. The state of
/// thousands of machines with its log and two snapshots fits into the latter.
const FREE_MIN: u64 = 256 << 20;
const FREE_GOOD: u64 = 8 << 30;
/// File systems whose sync keeps its promise, and on which RocksDB is tested.
const GOOD: [&str; 6] = ["ext4", "xfs", "btrfs", "zfs", "ext3", "f2fs"];
/// File systems over a network: their locks and syncs fail in ways that a log cannot survive.
const REMOTE: [&str; 5] = ["nfs", "nfs4", "cifs", "smb3", "ceph"];

/// The disk below a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiskFacts {
    /// The directory that was measured: the data directory, or its nearest parent that exists.
    pub(super) dir: PathBuf,
    /// Latencies of syncs, sorted. Empty means that nothing was measured.
    pub(super) syncs: Vec<Duration>,
    pub(super) free_bytes: u64,
    /// Type of the file system. `None` means unknown.
    pub(super) file_system: Option<String>,
}

/// Measures the disk. A directory that does not exist yet is not created: its parent is measured.
pub(super) fn measure(data_dir: &Path) -> Result<DiskFacts> {
    let dir = existing(data_dir);
    let dir = dir
        .canonicalize()
        .with_context(|| format!("cannot enter {}", dir.display()))?;
    let disk = statvfs(&dir).with_context(|| format!("cannot inspect {}", dir.display()))?;
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    Ok(DiskFacts {
        syncs: syncs(&dir).with_context(|| format!("cannot write in {}", dir.display()))?,
        free_bytes: disk.fragment_size() * disk.blocks_available(),
        file_system: file_system(&mounts, &dir).map(str::to_owned),
        dir,
    })
}

/// The directory itself, or its nearest parent that exists.
fn existing(dir: &Path) -> PathBuf {
    let found = dir.ancestors().find(|parent| parent.is_dir());
    // A relative path without a parent is in the current directory.
    let found = found.filter(|found| !found.as_os_str().is_empty());
    found.unwrap_or_else(|| Path::new(".")).to_owned()
}

/// Latencies of syncs of appended writes, sorted.
fn syncs(dir: &Path) -> std::io::Result<Vec<Duration>> {
    let mut probe: File = tempfile::tempfile_in(dir)?;
    let block = [0x5a; WRITE_BYTES];
    let began = Instant::now();
    let mut syncs = Vec::with_capacity(WRITES);
    while syncs.len() < WRITES && began.elapsed() < MEASURE_MAX {
        let start = Instant::now();
        probe.write_all(&block)?;
        probe.sync_data()?;
        syncs.push(start.elapsed());
    }
    syncs.sort_unstable();
    Ok(syncs)
}

/// The type of the file system that `path` is on, from the text of /proc/self/mountinfo: that of the
/// longest mount point above it, and of several there the last one, which hides the others.
fn file_system<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else {
            continue;
        };
        let (Some(point), Some(kind)) = (left.split(' ').nth(4), right.split(' ').next()) else {
            continue;
        };
        // The kernel writes a space in a path as an octal number.
        let point = point.replace("\\040", " ");
        let length = point.len();
        if path.starts_with(&point) && best.is_none_or(|(longest, _)| length >= longest) {
            best = Some((length, kind));
        }
    }
    best.map(|(_, kind)| kind)
}

/// The value at a percentile of sorted values.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

/// Judges the disk.
pub(super) fn judge(facts: &DiskFacts) -> Vec<SetupFinding> {
    vec![judge_syncs(facts), judge_space(facts), judge_kind(facts)]
}

fn finding(found: String) -> SetupFinding {
    SetupFinding::ok(SetupCheck::Disk, "data_dir", found)
}

fn judge_syncs(facts: &DiskFacts) -> SetupFinding {
    let (median, late) = (percentile(&facts.syncs, 50), percentile(&facts.syncs, 99));
    let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1000.0);
    let found = format!(
        "a sync takes {} (99th percentile {}) in {}",
        ms(median),
        ms(late),
        facts.dir.display()
    );
    let grade = match (median > SYNC_MAX, late > SYNC_GOOD) {
        (true, _) => FindingGrade::Fail,
        (false, true) => FindingGrade::Warn,
        (false, false) => FindingGrade::Ok,
    };
    let remedy = format!(
        "writes wait for it: use a disk with at most {} (99th percentile), for example a local SSD \
         of its own",
        ms(SYNC_GOOD)
    );
    match grade {
        FindingGrade::Ok => finding(found),
        FindingGrade::Warn => finding(found).warn(remedy),
        FindingGrade::Fail => finding(found).fail(remedy),
    }
}

fn judge_space(facts: &DiskFacts) -> SetupFinding {
    let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
    let found = format!("{} free", mib(facts.free_bytes));
    match facts.free_bytes {
        free if free < FREE_MIN => finding(format!("{found}, less than {}", mib(FREE_MIN)))
            .fail("free space, or name another data_dir"),
        free if free < FREE_GOOD => finding(format!("{found}, less than {}", mib(FREE_GOOD)))
            .warn("the node stops writing when the disk is full: give it more"),
        _ => finding(found),
    }
}

fn judge_kind(facts: &DiskFacts) -> SetupFinding {
    let Some(kind) = facts.file_system.as_deref() else {
        return finding("its file system is unknown".to_owned())
            .warn("use a local file system: ext4 or xfs");
    };
    if GOOD.contains(&kind) {
        return finding(format!("on {kind}"));
    }
    if REMOTE.contains(&kind) {
        return finding(format!("on {kind}, a file system over a network"))
            .fail("name a data_dir on a local disk: ext4 or xfs");
    }
    let remedy = match kind {
        "tmpfs" | "ramfs" => "a restart of the host loses everything: use a local disk",
        _ => "it is not tested: use ext4 or xfs",
    };
    finding(format!("on {kind}")).warn(remedy)
}

#[cfg(test)]
mod tests {
    use super::FindingGrade::{Fail, Ok, Warn};
    use super::*;

    fn facts(sync_ms: &[u64], free_mib: u64, kind: Option<&str>) -> DiskFacts {
        DiskFacts {
            dir: PathBuf::from("/var/lib/metalmesh"),
            syncs: sync_ms.iter().copied().map(Duration::from_millis).collect(),
            free_bytes: free_mib << 20,
            file_system: kind.map(str::to_owned),
        }
    }

    #[test]
    fn disks_are_judged() {
        let mut mostly_fast = vec![1; 98];
        mostly_fast.extend([40, 50]);
        for (syncs, free_mib, kind, expected) in [
            (&[1, 2, 3][..], 10_000, Some("ext4"), [Ok, Ok, Ok]),
            (&mostly_fast, 10_000, Some("xfs"), [Warn, Ok, Ok]),
            (&[501, 600, 700], 300, Some("tmpfs"), [Fail, Warn, Warn]),
            (&[1], 255, Some("nfs4"), [Ok, Fail, Fail]),
            (&[1], 8192, None, [Ok, Ok, Warn]),
            (&[1], 8191, Some("overlay"), [Ok, Warn, Warn]),
        ] {
            let judged = judge(&facts(syncs, free_mib, kind));
            let grades: Vec<_> = judged.iter().map(|finding| finding.grade).collect();
            assert_eq!(grades, expected, "{judged:?}");
            for finding in judged {
                assert_eq!(
                    finding.remedy.is_empty(),
                    finding.grade == Ok,
                    "{finding:?}"
                );
            }
        }
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let all: Vec<_> = (1..=100).map(Duration::from_millis).collect();
        for (of, percent, expected) in [(&all[..], 50, 50), (&all, 99, 99), (&all[..1], 99, 1)] {
            assert_eq!(percentile(of, percent), Duration::from_millis(expected));
        }
        assert_eq!(percentile(&[], 99), Duration::ZERO);
    }

    #[test]
    fn the_file_system_is_that_of_the_nearest_mount() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      30 22 0:25 / /var rw - xfs /dev/sdb1 rw\n\
                      31 22 0:26 / /tmp rw - ext4 /dev/sdc1 rw\n\
                      32 31 0:27 / /tmp rw - tmpfs tmpfs rw\n\
                      33 22 0:28 / /my\\040disk rw - btrfs /dev/sdd1 rw\n\
                      nonsense\n";
        for (path, expected) in [
            ("/etc", "ext4"),
            ("/var/lib/metalmesh", "xfs"),
            ("/variant", "ext4"),
            ("/tmp/x", "tmpfs"),
            ("/my disk/x", "btrfs"),
        ] {
            assert_eq!(
                file_system(mounts, Path::new(path)),
                Some(expected),
                "{path}"
            );
        }
        assert_eq!(file_system("", Path::new("/")), None);
    }

    #[test]
    fn a_directory_to_come_is_measured_at_its_parent() {
        let dir = tempfile::tempdir().unwrap();
        let facts = measure(&dir.path().join("a/b")).unwrap();
        assert_eq!(facts.dir, dir.path().canonicalize().unwrap());
        assert!(!facts.syncs.is_empty() && facts.free_bytes > 0);
        assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none());
    }
}
