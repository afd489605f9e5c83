//! What the kernel knows about processes: CPU time and memory.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// User and system time of a process so far, microseconds: its CPU clock, which counts ended
/// threads too (`clock_getcpuclockid(3)`). `/proc/PID/stat` counts in steps of 10 ms.
pub(crate) fn cpu_us(pid: u32) -> Result<u64> {
    let number = i32::try_from(pid).context("pid is too large")?;
    let clock = clock_getcpuclockid(Pid::from_raw(number))
        .with_context(|| format!("no CPU clock of process {pid}"))?;
    let time = Duration::from(clock_gettime(clock)?);
    Ok(u64::try_from(time.as_micros())?)
}

/// Resident memory of a process, KiB.
pub(crate) fn rss_kib(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmRSS in status")?.parse()?)
}

/// CPU time of all threads of a process that live, nanoseconds.
pub(crate) fn run_ns(pid: u32) -> Result<u64> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end in between.
        let text = std::fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        let run = text.split_whitespace().next().unwrap_or("0");
        sum += run.parse::<u64>()?;
    }
    Ok(sum)
}

/// Processes and all their descendants, as they are now.
pub(crate) fn family(roots: &[u32]) -> Result<BTreeSet<u32>> {
    let mut parents = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // It may have ended in between.
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_whitespace().nth(1))
            .and_then(|parent| parent.parse().ok());
        parents.extend(parent.map(|parent: u32| (pid, parent)));
    }
    let mut family: BTreeSet<u32> = roots.iter().copied().collect();
    loop {
        let known = family.len();
        let children = parents.iter().filter(|(_, parent)| family.contains(parent));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        family.extend(children);
        if family.len() == known {
            return Ok(family);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn children_belong_to_the_family() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let family = super::family(&[std::process::id()]).unwrap();
        assert!(family.contains(&child.id()) && family.contains(&std::process::id()));
        assert!(super::run_ns(std::process::id()).unwrap() > 0);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn this_process_uses_memory_and_time() {
        let pid = std::process::id();
        assert!(super::rss_kib(pid).unwrap() > 100);
        let began = std::time::Instant::now();
        while super::cpu_us(pid).unwrap() == 0 {
            assert!(began.elapsed().as_secs() < 30, "no time passes");
        }
    }
}
