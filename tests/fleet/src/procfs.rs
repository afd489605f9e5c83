//! What the kernel knows about a process: CPU time and memory.

use anyhow::{Context, Result};

/// Ticks of `/proc/PID/stat` in a second; fixed on Linux for programs.
const TICKS_PER_S: f64 = 100.0;

/// User and system time of a process so far, seconds, in steps of 10 ms.
pub(crate) fn cpu_s(pid: u32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    // The name may hold blanks and brackets: count from its end.
    let (_, rest) = text.rsplit_once(')').context("no name in stat")?;
    let fields = rest.split_whitespace().skip(11).take(2);
    let ticks = fields.map(str::parse::<f64>).sum::<Result<f64, _>>()?;
    Ok(ticks / TICKS_PER_S)
}

/// Resident memory of a process now and at its peak, MiB.
pub(crate) fn rss_mib(pid: u32) -> Result<[f64; 2]> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let of = |name: &str| -> Result<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.split_whitespace().next());
        Ok(kib.context("status is short")?.parse::<f64>()? / 1024.0)
    };
    Ok([of("VmRSS:")?, of("VmHWM:")?])
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_uses_memory() {
        let [now, peak] = super::rss_mib(std::process::id()).unwrap();
        assert!(now > 0.1 && peak >= now);
        assert!(super::cpu_s(std::process::id()).unwrap() >= 0.0);
    }
}
