//! The kernel's own file systems.

use std::fs;

use nix::mount::{MsFlags, mount};

const NOTHING: MsFlags = MsFlags::empty();

/// Mounts what every program expects; what failed comes back as text.
pub(super) fn all() -> Vec<String> {
    let mut failures = Vec::new();
    for (kind, at, flags, data) in [
        ("proc", "/proc", NOTHING, None),
        ("sysfs", "/sys", NOTHING, None),
        ("devtmpfs", "/dev", MsFlags::MS_NOSUID, Some("mode=0755")),
        ("devpts", "/dev/pts", MsFlags::MS_NOSUID, Some("mode=0620")),
        ("tmpfs", "/dev/shm", MsFlags::MS_NOSUID, None),
        ("tmpfs", "/run", MsFlags::MS_NOSUID, Some("mode=0755")),
        ("tmpfs", "/tmp", MsFlags::MS_NOSUID, None),
    ] {
        // Where it exists already the mount decides.
        drop(fs::create_dir_all(at));
        if let Err(error) = mount(Some(kind), at, Some(kind), flags, data) {
            failures.push(format!("cannot mount {at}: {error}"));
        }
    }
    failures
}

/// EFI variables, once their driver is loaded; a BIOS machine has none.
pub(super) fn efi_variables() -> Option<String> {
    let at = "/sys/firmware/efi/efivars";
    if !fs::exists(at).unwrap_or(false) {
        return None;
    }
    let done = mount(
        Some("efivarfs"),
        at,
        Some("efivarfs"),
        NOTHING,
        None::<&str>,
    );
    done.err()
        .map(|error| format!("cannot mount {at}: {error}"))
}
