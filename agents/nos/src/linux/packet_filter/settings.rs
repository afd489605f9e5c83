//! Settings of the kernel that the packet filter relies on.

use std::path::PathBuf;

use crate::back_end::NosError;

/// The settings below `/proc/sys/net`.
///
/// An answer of the kernel itself has the mark of the packet that it answers, so that each answer
/// counts for the port that asked for it: pings, resets and errors, and the TCP connections that
/// somebody listens for. Redirects are not taken: one would lead the switch's own packets to control
/// away. On devices that route, `all` decides with the device's own setting.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv4/fwmark_reflect", "1"),
    ("ipv6/fwmark_reflect", "1"),
    ("ipv4/tcp_fwmark_accept", "1"),
    ("ipv4/conf/all/accept_redirects", "0"),
];

fn path(key: &str) -> PathBuf {
    PathBuf::from("/proc/sys/net").join(key)
}

/// `true` if nobody has changed a setting. One that this kernel does not have counts as set.
pub(super) fn are_set() -> bool {
    SETTINGS.iter().all(|(key, value)| {
        let now = std::fs::read_to_string(path(key));
        now.map_or(true, |now| now.trim() == *value)
    })
}

/// Sets them.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn set() -> Result<(), NosError> {
    for (key, value) in SETTINGS {
        let path = path(key);
        match std::fs::write(&path, value) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            done => done.map_err(|source| NosError::Setting { path, source })?,
        }
    }
    Ok(())
}
