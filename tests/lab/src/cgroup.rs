//! Control groups of a lab: one for each host that runs an init system of its own.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::state::Record;

/// Where the second version of control groups is, also beside the first one.
const TREES: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// Longest time that the processes of a host live on after its init was killed: the kernel ends
/// them, and tells nobody.
const ENDING: Duration = Duration::from_secs(10);
/// How often a group with processes is tried again.
const POLL: Duration = Duration::from_millis(100);

/// Makes the group of a host, recorded first.
///
/// # Errors
/// This machine has no control groups of the second version, or gives no right to make one.
pub fn create(record: &Record, name: &str) -> Result<PathBuf> {
    let group = tree()?.join(format!("mm-{}-{name}", record.state().id));
    record.update(|s| s.control_groups.push(group.clone()))?;
    fs::create_dir_all(&group).with_context(|| format!("cannot make {}", group.display()))?;
    Ok(group)
}

fn tree() -> Result<PathBuf> {
    let is_second = |tree: &&str| Path::new(*tree).join("cgroup.controllers").exists();
    match TREES.into_iter().find(is_second) {
        Some(tree) => Ok(PathBuf::from(tree)),
        None => bail!("{} is no cgroup2 file system; mount one", TREES[1]),
    }
}

/// Removes a group with those inside it. The init of their host was killed.
pub(crate) fn delete(group: &Path) -> Result<()> {
    let deadline = Instant::now() + ENDING;
    loop {
        match remove(group) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                thread::park_timeout(POLL);
            }
            done => return done,
        }
    }
}

fn is_busy(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == ErrorKind::ResourceBusy)
}

fn remove(group: &Path) -> Result<()> {
    let entries = match fs::read_dir(group) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).context(format!("cannot read {}", group.display())),
    };
    for entry in entries {
        let entry = entry?;
        // The files of a group go with it.
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(group).with_context(|| format!("cannot remove {}", group.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_goes_with_those_inside_it() {
        let group = std::env::temp_dir().join(format!("mm-cgroup-{}", std::process::id()));
        fs::create_dir_all(group.join("system.slice/ssh.service")).unwrap();
        delete(&group).unwrap();
        assert!(!group.exists());
        delete(&group).unwrap();
    }
}
