//! Mounting the new system, parents first, and unmounting it, children first.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::layout::Fs;

/// Attempts to unmount a busy file system; 5 s with the pauses.
const UNMOUNT_TRIES_MAX: u32 = 50;
/// Pause between two attempts.
const UNMOUNT_PAUSE: Duration = Duration::from_millis(100);

/// Mounts the file systems that have a path and are on a disk. tmpfs is for the installed system.
pub(super) fn all(filesystems: &[Fs], target: &Path) -> Result<()> {
    for fs in filesystems.iter().filter(|f| f.path.starts_with('/')) {
        let (flags, data) = match fs.format.as_str() {
            "ext3" | "ext4" => (MsFlags::MS_NOATIME, ""),
            // "quiet": FAT has no owners, and an error for changing them would fail the unpacking
            // of an image with files there.
            "vfat" => (MsFlags::MS_NOATIME, "quiet,umask=0077"),
            _ => continue,
        };
        let at = join(target, &fs.path);
        fs::create_dir_all(&at)?;
        mount(
            Some(fs.device.as_str()),
            &at,
            Some(fs.format.as_str()),
            flags,
            Some(data),
        )
        .with_context(|| format!("cannot mount {} at {}", fs.device, fs.path))?;
    }
    Ok(())
}

fn join(target: &Path, path: &str) -> PathBuf {
    target.join(path.trim_start_matches('/'))
}

/// Writes out all dirty pages and unmounts everything at and below `target`, children first.
pub(super) fn none(target: &Path) -> Result<()> {
    nix::unistd::sync();
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    for at in below(&mounts, target).iter().rev() {
        let mut tries = 0;
        loop {
            match umount2(at, MntFlags::empty()) {
                // A killed tool keeps its files open until the kernel has reaped it.
                Err(Errno::EBUSY) if tries < UNMOUNT_TRIES_MAX => {
                    tries += 1;
                    std::thread::sleep(UNMOUNT_PAUSE);
                }
                done => break done.with_context(|| format!("cannot unmount {}", at.display()))?,
            }
        }
    }
    Ok(())
}

/// Mount points at or below `target`, in the order of mounting.
fn below(mounts: &str, target: &Path) -> Vec<PathBuf> {
    mounts
        .lines()
        // The kernel writes white space in a path as an octal escape. Mount points of a layout have
        // none (`check::is_mount_point`).
        .filter_map(|l| l.split(' ').nth(1))
        .map(PathBuf::from)
        .filter(|p| p.starts_with(target))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below() {
        let mounts = "proc /proc proc rw 0 0\n/dev/vda3 /mnt ext4 rw 0 0\n\
                      /dev/vda2 /mnt/boot/efi vfat rw 0 0\nx /mnt2 ext4 rw 0 0\n";
        let want = [PathBuf::from("/mnt"), PathBuf::from("/mnt/boot/efi")];
        assert_eq!(below(mounts, Path::new("/mnt")), want);
        assert_eq!(join(Path::new("/mnt"), "/"), Path::new("/mnt"));
    }
}
