//! The kernel's virtual file systems.

use std::fs;

use nix::mount::{MsFlags, mount};

const NOTHING: MsFlags = MsFlags::empty();

/// Mounts the file systems that every program expects. Returns one text per failure, because the
/// machine may still be able to report to control without one of them.
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
        // The mount fails with the reason if there is no directory.
        drop(fs::create_dir_all(at));
        if let Err(error) = mount(Some(kind), at, Some(kind), flags, data) {
            failures.push(format!("cannot mount {at}: {error}"));
        }
    }
    failures
}

/// Mounts the EFI variables; needs their driver. `None` means success, or a BIOS machine.
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
