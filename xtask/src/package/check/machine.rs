//! The units in an emulated machine with systemd: each service works in its sandbox.
//!
//! The machine is the Debian of the chroot check with the packages installed, booted from memory. Its
//! script (`xtask/package/check/units.sh`) sets up control and agents as an operator does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tests_lab::kvm;

use super::debian::Debian;
use super::{CheckedDeb, Outcome};
use crate::debs::cache_dir;
use crate::fabric::guest::Guest;
use crate::fabric::qemu::{self, Qemu};
use crate::initramfs::cpio::{Archive, Node};
use crate::initramfs::{self, LEVEL_DEFAULT, Packages, modules};

/// On an idle machine with an emulated processor.
const LIMIT: Duration = Duration::from_secs(900);
/// The system is in memory twice while it moves out of the initramfs.
const MEMORY_MIB: u32 = 2560;
/// Kernel modules that the services use.
const MODULES: [&str; 22] = [
    "af_packet",
    "bridge",
    "dummy",
    "nf_conntrack",
    "nf_log_syslog",
    "nf_tables",
    "nfnetlink_log",
    "nft_chain_nat",
    "nft_ct",
    "nft_hash",
    "nft_limit",
    "nft_log",
    "nft_masq",
    "nft_meta_bridge",
    "nft_nat",
    "nft_objref",
    "veth",
    "virtio_pci",
    "virtio_rng",
    "vrf",
    "vxlan",
    "8021q",
];
/// Directories of the system that the machine makes anew, or does not need.
const LEFT_OUT: [&str; 10] = [
    "boot",
    "dev",
    "proc",
    "run",
    "sys",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/man",
    "var/cache",
    "var/lib/apt",
];
/// Files of the check itself.
const FILES: [(&str, u32, &str); 4] = [
    (
        "init",
        0o755,
        include_str!("../../../package/check/init.sh"),
    ),
    (
        "usr/lib/metalmesh/check.sh",
        0o755,
        include_str!("../../../package/check/units.sh"),
    ),
    (
        "etc/systemd/system/metalmesh-check.service",
        0o644,
        include_str!("../../../package/check/metalmesh-check.service"),
    ),
    // With an empty one systemd would take this for a first boot, and enable every service.
    (
        "etc/machine-id",
        0o444,
        "0123456789abcdef0123456789abcdef\n",
    ),
];

pub(super) fn check(debs: &[CheckedDeb]) -> Result<Outcome> {
    if let Some(reason) = qemu::missing() {
        return Ok(Outcome::Skipped(reason));
    }
    let Some(debian) = Debian::unpack()? else {
        return Ok(Outcome::Skipped(
            "a chroot needs root and mmdebstrap".to_owned(),
        ));
    };
    // Kernel and initramfs of machines are not what this boots.
    for deb in debs.iter().filter(|deb| deb.name != "metalmesh-hammer") {
        debian.install(&deb.path)?;
    }
    let Packages {
        tree,
        kernel_version,
    } = initramfs::fetch_packages()?;
    let mut archive = system(debian.path())?;
    modules::add(&mut archive, &tree.root, &kernel_version, MODULES)?;
    let dir = tempfile::tempdir()?;
    let initrd = dir.path().join("initramfs.cpio.zst");
    fs::write(&initrd, initramfs::pack(&archive, LEVEL_DEFAULT)?)?;
    let kernel = tree.root.join(format!("boot/vmlinuz-{kernel_version}"));
    let accelerator = kvm::probe(&kernel, dir.path(), &cache_dir()?)?;
    let qemu = Qemu {
        kernel,
        initrd,
        accelerator,
        memory_mib: MEMORY_MIB,
        cpus: 2,
        log: dir.path().join("serial.log"),
        append: "systemd.show_status=0 systemd.journald.forward_to_console=0".to_owned(),
        more: vec!["-no-reboot".into()],
    };
    let guest = Guest { qemu, limit: LIMIT };
    let code = guest.run(|line| println!("  {line}"))?;
    ensure!(code == 0, "not every unit works in its sandbox: see above");
    Ok(Outcome::Passed)
}

/// An installed system as an archive; every file is root's, and systemd-tmpfiles gives directories of
/// services to their users when the machine boots.
fn system(root: &Path) -> Result<Archive> {
    let mut archive = Archive::default();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        for entry in fs::read_dir(&path).with_context(|| path.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let relative = match folder.is_empty() {
                true => name,
                false => format!("{folder}/{name}"),
            };
            let metadata = entry.metadata()?;
            let mode = metadata.permissions().mode() & 0o7777;
            let kind = metadata.file_type();
            if kind.is_dir() {
                archive.insert(&relative, Node::Dir { mode });
                if !LEFT_OUT.contains(&relative.as_str()) {
                    folders.push(relative);
                }
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path())?;
                archive.link(&relative, &target.to_string_lossy());
            } else if kind.is_file() {
                archive.file(&relative, mode, fs::read(entry.path())?);
            }
        }
    }
    for (path, mode, text) in FILES {
        archive.file(path, mode, text);
    }
    let wanted = "etc/systemd/system/multi-user.target.wants/metalmesh-check.service";
    archive.link(wanted, "../metalmesh-check.service");
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_the_system_without_what_it_makes_itself() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        };
        write("usr/bin/x");
        write("usr/share/doc/x/copyright");
        write("dev/null");
        std::os::unix::fs::symlink("usr/bin", root.path().join("bin")).unwrap();
        let archive = system(root.path()).unwrap();
        for path in ["init", "bin", "usr/bin/x", "dev", "usr/share/doc"] {
            assert!(archive.contains(path), "{path}");
        }
        for path in ["dev/null", "usr/share/doc/x/copyright", "usr/share/doc/x"] {
            assert!(!archive.contains(path), "{path}");
        }
    }
}
