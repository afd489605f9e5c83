//! The kernel's room for fragments, which is one for all networks of a firewall.

use std::path::Path;
use std::{fs, io};

use tracing::warn;

/// Seconds for which the kernel waits for the rest of a datagram. Its default is up to a minute, in which
/// few packets a second fill its room.
const WAIT_S: u64 = 2;
/// The room, bytes. The fragments that the rules let a network send in [`WAIT_S`] need about 25 MB.
const ROOM_BYTES: u64 = 256 << 20;

/// A setting of the kernel, for the agent's network namespace.
struct Setting {
    path: &'static str,
    value: u64,
    /// `true` if a higher value is as good, `false` if a lower one is.
    is_least: bool,
}

const SETTINGS: [Setting; 6] = [
    room("/proc/sys/net/ipv4/ipfrag_high_thresh"),
    wait("/proc/sys/net/ipv4/ipfrag_time"),
    room("/proc/sys/net/netfilter/nf_conntrack_frag6_high_thresh"),
    wait("/proc/sys/net/netfilter/nf_conntrack_frag6_timeout"),
    room("/proc/sys/net/ipv6/ip6frag_high_thresh"),
    wait("/proc/sys/net/ipv6/ip6frag_time"),
];

const fn room(path: &'static str) -> Setting {
    Setting {
        path,
        value: ROOM_BYTES,
        is_least: true,
    }
}

const fn wait(path: &'static str) -> Setting {
    Setting {
        path,
        value: WAIT_S,
        is_least: false,
    }
}

/// Has the kernel keep more fragments, and each for a shorter time. Call it once the kernel has rules:
/// until then it has no settings of connection tracking.
pub fn make_fragment_room() {
    for setting in &SETTINGS {
        if let Err(error) = apply(Path::new(setting.path), setting.value, setting.is_least) {
            let path = setting.path;
            warn!(path, %error, "the room for fragments cannot be set");
        }
    }
}

/// Writes a setting unless it is as good already. A kernel that has not got it needs none.
fn apply(path: &Path, value: u64, is_least: bool) -> io::Result<()> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
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
        return Ok(());
    }
    fs::write(path, value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_written_only_if_it_is_not_as_good() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("setting");
        apply(&path, 2, true).unwrap();
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
            apply(&path, 2, is_least).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{found}");
        }
    }
}
