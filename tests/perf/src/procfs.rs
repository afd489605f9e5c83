//! What the kernel knows about processes: CPU time and memory.

use anyhow::{Context, Result};

/// Ticks of `/proc/PID/stat` in a second; fixed on Linux for programs.
const TICKS_PER_S: u64 = 100;

/// User and system time of a process so far, microseconds, in steps of 10 ms.
pub(crate) fn cpu_us(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name may hold blanks and brackets: count from its end.
    let (_, rest) = text.rsplit_once(')').context("no name in stat")?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || -> Result<u64> { Ok(fields.next().context("stat is short")?.parse()?) };
    Ok((ticks()? + ticks()?) * (1_000_000 / TICKS_PER_S))
}

/// Resident memory of a process, KiB.
pub(crate) fn rss_kib(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmRSS in status")?.parse()?)
}

#[cfg(test)]
mod tests {
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
