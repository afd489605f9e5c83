//! Processors and memory.

use std::collections::{BTreeMap, BTreeSet};

use proto_mesh::Cpu;

use super::Sys;

#[derive(Default)]
struct Socket {
    vendor: String,
    model: String,
    cores: BTreeSet<String>,
    threads: u32,
}

/// One entry per socket.
pub(super) fn list(sys: &Sys) -> Vec<Cpu> {
    parse(&sys.text("proc/cpuinfo"))
}

fn parse(cpuinfo: &str) -> Vec<Cpu> {
    let mut sockets: BTreeMap<String, Socket> = BTreeMap::new();
    for block in cpuinfo.split("\n\n").filter(|b| !b.trim().is_empty()) {
        let field = |name: &str| {
            let mut lines = block.lines().filter_map(|l| l.split_once(':'));
            lines
                .find(|(k, _)| k.trim() == name)
                .map_or("", |(_, v)| v.trim())
        };
        let socket = sockets.entry(field("physical id").to_string()).or_default();
        socket.vendor = field("vendor_id").to_string();
        socket.model = field("model name").to_string();
        socket.threads += 1;
        let core = field("core id");
        // Kernels of some platforms print no core id; every thread counts as a core then.
        let core = if core.is_empty() {
            socket.threads.to_string()
        } else {
            core.to_string()
        };
        socket.cores.insert(core);
    }
    sockets
        .into_values()
        .map(|s| Cpu {
            vendor: s.vendor,
            model: s.model,
            // Saturates; `threads` above is a u32 count of the same lines.
            cores: u32::try_from(s.cores.len()).unwrap_or(u32::MAX),
            threads: s.threads,
        })
        .collect()
}

/// Installed memory, bytes. The online memory blocks include the kernel's own memory; kernels
/// without them give `MemTotal`, which does not. Sizes of machines are matched by this number, so
/// it must not change with the kernel's version. 0 if neither is readable.
pub(super) fn memory(sys: &Sys) -> u64 {
    const BLOCKS: &str = "sys/devices/system/memory";
    let block_size = sys.text(&format!("{BLOCKS}/block_size_bytes"));
    // An unreadable size means a kernel without memory blocks: 0 selects `MemTotal` below.
    let block_size = u64::from_str_radix(&block_size, 16).unwrap_or(0);
    let online = sys
        .names(BLOCKS)
        .iter()
        .filter(|n| {
            n.strip_prefix("memory")
                .is_some_and(|r| r.parse::<u32>().is_ok())
        })
        .filter(|n| sys.text(&format!("{BLOCKS}/{n}/online")) == "1")
        .count() as u64;
    if block_size > 0 && online > 0 {
        block_size * online
    } else {
        meminfo_total(&sys.text("proc/meminfo"))
    }
}

fn meminfo_total(meminfo: &str) -> u64 {
    let line = meminfo
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))
        .unwrap_or_default();
    match line.trim().trim_end_matches("kB").trim().parse::<u64>() {
        Ok(kib) => kib * 1024,
        // Registration must not fail for it: control shows a machine of 0 bytes, which matches no
        // size, and an operator sees why.
        Err(error) => {
            tracing::warn!(line, %error, "memory size not understood; reporting 0");
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Fake;
    use super::*;

    #[test]
    fn sockets_cores_and_threads() {
        let thread = |socket: u32, core: u32| {
            format!(
                "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nphysical id\t: {socket}\ncore id\t\t: {core}\n\n"
            )
        };
        let text: String = [(0, 0), (0, 1), (0, 0), (0, 1), (1, 0)]
            .map(|(s, c)| thread(s, c))
            .concat();
        let cpus = parse(&text);
        assert_eq!(cpus.len(), 2);
        assert_eq!(
            (cpus[0].cores, cpus[0].threads, cpus[0].model.as_str()),
            (2, 4, "Xeon")
        );
        assert_eq!((cpus[1].cores, cpus[1].threads), (1, 1));
        assert!(parse("").is_empty());
    }

    #[test]
    fn memory_blocks_then_total() {
        let fake = Fake::new(&[("proc/meminfo", "MemTotal:         700000 kB\nMemFree: 1 kB")]);
        assert_eq!(memory(&fake.sys()), 700_000 * 1024);
        fake.put("sys/devices/system/memory/block_size_bytes", "8000000\n");
        for n in 0..6 {
            fake.put(
                &format!("sys/devices/system/memory/memory{n}/online"),
                "1\n",
            );
        }
        assert_eq!(memory(&fake.sys()), 768 << 20);
    }
}
