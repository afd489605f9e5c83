//! The kernel's room for fragments, which is one for all networks of a firewall.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use tracing::warn;

use crate::compile::fragments::{FRAGMENTS_AT_ONCE, FRAGMENTS_PER_SECOND};

/// Seconds for which the kernel waits for the rest of a datagram. Its default is up to a minute, in which
/// few packets a second fill its room.
const WAIT_S: u32 = 2;
/// Memory that the kernel counts for a fragment, bytes: 17 KB were measured with an MTU of 9000, for which
/// a card needs several pages.
const FRAGMENT_BYTES: u64 = 20 << 10;
/// Room for the fragments that the rules let a network send in [`WAIT_S`], bytes.
const NETWORK_BYTES: u64 =
    (FRAGMENTS_AT_ONCE as u64 + FRAGMENTS_PER_SECOND as u64 * WAIT_S as u64) * FRAGMENT_BYTES;
/// The part of the host's memory that fragments may take. With less than the networks need, they take
/// each other's room: better that than a host without memory.
const MEMORY_PART: u64 = 4;
/// Pause between two looks at the settings, which others may write too.
const CHECK_PERIOD: Duration = Duration::from_secs(60);
/// The memory of the host.
const MEMORY: &str = "/proc/meminfo";

/// A setting of the kernel, for the agent's network namespace.
struct KernelSetting {
    path: &'static str,
    /// `true` for the size of a room, of which a higher one is as good; `false` for a time, of which a
    /// lower one is.
    is_room: bool,
}

const SETTINGS: [KernelSetting; 6] = [
    room("/proc/sys/net/ipv4/ipfrag_high_thresh"),
    wait("/proc/sys/net/ipv4/ipfrag_time"),
    room("/proc/sys/net/netfilter/nf_conntrack_frag6_high_thresh"),
    wait("/proc/sys/net/netfilter/nf_conntrack_frag6_timeout"),
    room("/proc/sys/net/ipv6/ip6frag_high_thresh"),
    wait("/proc/sys/net/ipv6/ip6frag_time"),
];

const fn room(path: &'static str) -> KernelSetting {
    KernelSetting {
        path,
        is_room: true,
    }
}

const fn wait(path: &'static str) -> KernelSetting {
    KernelSetting {
        path,
        is_room: false,
    }
}

/// The room while the agent runs.
#[derive(Debug, Default)]
pub(crate) struct FragmentRoom {
    /// The number of networks that it was made for, and when the settings were compared last. `None`
    /// before the first time.
    made: Option<(usize, Instant)>,
}

impl FragmentRoom {
    /// Makes the room for so many networks, and keeps it. Call it often, once the kernel has rules: until
    /// then it has no settings of connection tracking.
    pub(crate) fn keep(&mut self, networks: usize, now: Instant) {
        if !self.is_due(networks, now) {
            return;
        }
        let is_made = self.made.is_some_and(|(of, _)| of == networks);
        self.made = Some((networks, now));
        let written = make_fragment_room(networks);
        if is_made && !written.is_empty() {
            warn!(
                settings = written.join(" "),
                "somebody changed the room for fragments; repaired"
            );
        }
    }

    /// `true` if the settings must be compared.
    fn is_due(&self, networks: usize, now: Instant) -> bool {
        let is_fresh = |(of, at): (usize, Instant)| of == networks && now < at + CHECK_PERIOD;
        !self.made.is_some_and(is_fresh)
    }
}

/// Has the kernel keep the fragments of so many networks, and each for a short time. Returns the settings
/// that it has written.
pub fn make_fragment_room(networks: usize) -> Vec<&'static str> {
    let memory = fs::read_to_string(MEMORY).ok();
    let room = room_bytes(networks, memory.as_deref().and_then(memory_bytes));
    let mut written = Vec::new();
    for setting in &SETTINGS {
        let path = setting.path;
        let value = if setting.is_room {
            room
        } else {
            u64::from(WAIT_S)
        };
        match apply(Path::new(path), value, setting.is_room) {
            Ok(true) => written.push(path),
            Ok(false) => {}
            Err(error) => warn!(path, %error, "the room for fragments cannot be set"),
        }
    }
    written
}

/// The room for a number of networks, on a host with so much memory. `None` means that it is not known.
fn room_bytes(networks: usize, memory: Option<u64>) -> u64 {
    let networks = u64::try_from(networks).unwrap_or(u64::MAX);
    let wanted = NETWORK_BYTES.saturating_mul(networks.max(1));
    memory.map_or(wanted, |all| wanted.min(all / MEMORY_PART))
}

/// The memory of a host, by the text of [`MEMORY`].
fn memory_bytes(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Writes a setting unless it is as good already; `true` if it was written. A kernel that has not got it
/// needs none.
fn apply(path: &Path, value: u64, is_least: bool) -> io::Result<bool> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        text => text?,
    };
    let is_good = text
        .trim()
        .parse::<u64>()
        .is_ok_and(|found| match is_least {
            true => found >= value,
            false => found <= value,
        });
    if is_good {
        return Ok(false);
    }
    fs::write(path, value.to_string())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_written_only_if_it_is_not_as_good() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("setting");
        assert!(!apply(&path, 2, true).unwrap());
        assert!(!path.exists(), "a kernel without it");
        for (found, is_least, expected) in [
            ("1\n", true, "2"),
            ("2\n", true, "2\n"),
            ("3\n", true, "3\n"),
            ("30\n", false, "2"),
            ("1\n", false, "1\n"),
            ("?\n", false, "2"),
        ] {
            fs::write(&path, found).unwrap();
            assert_eq!(apply(&path, 2, is_least).unwrap(), expected == "2");
            assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{found}");
        }
    }

    #[test]
    fn each_network_has_its_room_as_far_as_there_is_memory() {
        const GIB: u64 = 1 << 30;
        // Two networks of 152 MB each were measured.
        assert!(room_bytes(2, None) > 2 * 152_115_720);
        assert_eq!(room_bytes(0, None), NETWORK_BYTES);
        for (networks, memory, expected) in [
            (3, Some(64 * GIB), 3 * NETWORK_BYTES),
            (30, Some(4 * GIB), GIB),
            (30, None, 30 * NETWORK_BYTES),
            (usize::MAX, None, u64::MAX),
        ] {
            assert_eq!(room_bytes(networks, memory), expected, "{networks}");
        }
        let text = "MemTotal:       16384000 kB\nMemFree:  1 kB\n";
        assert_eq!(memory_bytes(text), Some(16_384_000 * 1024));
        assert_eq!(memory_bytes("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn the_room_is_looked_at_again() {
        let begin = Instant::now();
        let made = Some((2, begin));
        for (made, networks, seconds, expected) in [
            (None, 2, 0, true),
            (made, 2, 59, false),
            (made, 2, 60, true),
            (made, 3, 1, true),
        ] {
            let now = begin + Duration::from_secs(seconds);
            let is_due = FragmentRoom { made }.is_due(networks, now);
            assert_eq!(is_due, expected, "{networks} after {seconds} s");
        }
    }
}
