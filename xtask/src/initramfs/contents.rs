//! What is in the base of the initramfs, by name, and where it comes from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::cpio::{Archive, Node};
use super::elf;
use crate::debs::run_text;

/// Debian packages that tools are taken from. Their libraries follow by ELF's NEEDED entries.
pub(super) const PACKAGES: [&str; 21] = [
    "busybox-static",
    "ca-certificates",
    "dmsetup",
    "dosfstools",
    "e2fsprogs",
    "efibootmgr",
    "gdisk",
    "grub-common",
    "grub-efi-amd64-bin",
    "grub-pc-bin",
    "grub2-common",
    "hdparm",
    "ipmitool",
    "kmod",
    "libc6",
    "lvm2",
    "mdadm",
    "mount",
    "nvme-cli",
    "util-linux",
    "util-linux-extra",
];

/// Programs; all go to /usr/bin.
const TOOLS: [&str; 24] = [
    "blkdiscard",
    "blkid",
    "blockdev",
    "dmsetup",
    "efibootmgr",
    "fstrim",
    "grub-bios-setup",
    "grub-install",
    "grub-mkimage",
    "grub-probe",
    "hdparm",
    "ipmitool",
    "kmod",
    "lsblk",
    "lvm",
    "mdadm",
    "mke2fs",
    "mkfs.fat",
    "mkswap",
    "nvme",
    "partx",
    "sgdisk",
    "unshare",
    "wipefs",
];

/// Other names of a tool, which it tells apart by how it is called.
const ALIASES: [(&str, &str); 18] = [
    ("depmod", "kmod"),
    ("insmod", "kmod"),
    ("lsmod", "kmod"),
    ("lvchange", "lvm"),
    ("lvcreate", "lvm"),
    ("lvremove", "lvm"),
    ("lvs", "lvm"),
    ("mkfs.ext3", "mke2fs"),
    ("mkfs.ext4", "mke2fs"),
    ("mkfs.vfat", "mkfs.fat"),
    ("modprobe", "kmod"),
    ("pvcreate", "lvm"),
    ("pvs", "lvm"),
    ("rmmod", "kmod"),
    ("vgchange", "lvm"),
    ("vgcreate", "lvm"),
    ("vgremove", "lvm"),
    ("vgs", "lvm"),
];

/// Small text files. LVM and mdadm have no udev to talk to here.
const FILES: [(&str, &str); 5] = [
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
    ("etc/group", "root:x:0:\ndisk:x:6:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    (
        "etc/mdadm/mdadm.conf",
        "CREATE owner=root group=disk mode=0660 auto=yes\n",
    ),
    (
        "etc/lvm/lvm.conf",
        "activation {\n  udev_sync = 0\n  udev_rules = 0\n}\n\
         devices {\n  obtain_device_list_from_udev = 0\n  external_device_info_source = \"none\"\n}\n\
         backup {\n  backup = 0\n  archive = 0\n}\n",
    ),
];

/// What makes a cached base stale beside its packages: the lists of this file and of `modules`.
pub(super) fn recipe() -> String {
    format!(
        "{TOOLS:?} {ALIASES:?} {FILES:?} {}",
        super::modules::recipe()
    )
}

/// Tools, libraries, GRUB, certificates and configuration; not the kernel's modules.
pub(super) fn base(root: &Path) -> Result<Archive> {
    let mut a = Archive::default();
    skeleton(&mut a);
    let mut programs = Vec::new();
    for tool in TOOLS {
        let path = find_tool(root, tool).with_context(|| format!("no package has {tool}"))?;
        a.file(&format!("usr/bin/{tool}"), 0o755, fs::read(&path)?);
        programs.push(path);
    }
    for (alias, tool) in ALIASES {
        a.link(&format!("usr/bin/{alias}"), tool);
    }
    libraries(&mut a, root, &programs)?;
    busybox(&mut a, root)?;
    grub(&mut a, root)?;
    certificates(&mut a, root)?;
    a.file(
        "etc/mke2fs.conf",
        0o644,
        fs::read(root.join("etc/mke2fs.conf"))?,
    );
    for (path, text) in FILES {
        a.file(path, 0o644, text);
    }
    Ok(a)
}

pub(crate) fn skeleton(a: &mut Archive) {
    for dir in [
        "dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "usr/bin", "usr/lib", "var",
    ] {
        a.insert(dir, Node::Dir { mode: 0o755 });
    }
    for (link, target) in [
        ("bin", "usr/bin"),
        ("sbin", "usr/bin"),
        ("usr/sbin", "bin"),
        ("lib", "usr/lib"),
        ("lib64", "usr/lib"),
        ("var/run", "../run"),
        ("etc/mtab", "../proc/self/mounts"),
    ] {
        a.link(link, target);
    }
    // The kernel opens it for init before devtmpfs is there.
    a.insert(
        "dev/console",
        Node::Char {
            mode: 0o600,
            major: 5,
            minor: 1,
        },
    );
}

pub(crate) fn find_tool(root: &Path, name: &str) -> Option<PathBuf> {
    ["usr/sbin", "sbin", "usr/bin", "bin", "usr/lib/grub/i386-pc"]
        .iter()
        .map(|d| root.join(d).join(name))
        .find_map(|p| p.canonicalize().ok())
}

pub(crate) fn libraries(a: &mut Archive, root: &Path, programs: &[PathBuf]) -> Result<()> {
    let mut libraries = elf::closure(root, programs)?;
    // Opened by name at run time: by pthread_cancel, and as the program interpreter.
    for name in ["libgcc_s.so.1", "ld-linux-x86-64.so.2"] {
        let path =
            elf::find_library(root, name).with_context(|| format!("no package has {name}"))?;
        libraries.insert(name.to_string(), path);
    }
    for (name, path) in libraries {
        a.file(&format!("usr/lib/{name}"), 0o755, fs::read(path)?);
    }
    Ok(())
}

/// busybox under every name that no real tool has.
pub(crate) fn busybox(a: &mut Archive, root: &Path) -> Result<()> {
    let path = find_tool(root, "busybox").context("no busybox")?;
    a.file("usr/bin/busybox", 0o755, fs::read(&path)?);
    let applets = run_text(Command::new(&path).arg("--list"))?;
    for applet in applets.lines() {
        let name = format!("usr/bin/{applet}");
        if !a.contains(&name) {
            a.link(&name, "busybox");
        }
    }
    Ok(())
}

/// The modules and images that grub-install makes boot loaders of.
fn grub(a: &mut Archive, root: &Path) -> Result<()> {
    for platform in ["i386-pc", "x86_64-efi"] {
        let dir = root.join("usr/lib/grub").join(platform);
        for entry in fs::read_dir(&dir).with_context(|| dir.display().to_string())? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let wanted = [".mod", ".lst", ".img", ".sh"]
                .iter()
                .any(|e| name.ends_with(e));
            if wanted && entry.file_type()?.is_file() {
                let bytes = fs::read(entry.path())?;
                a.file(&format!("usr/lib/grub/{platform}/{name}"), 0o644, bytes);
            }
        }
    }
    Ok(())
}

/// Mozilla's roots as one file, for images behind HTTPS.
fn certificates(a: &mut Archive, root: &Path) -> Result<()> {
    let bundle = certificate_bundle(root)?;
    a.file("etc/ssl/certs/ca-certificates.crt", 0o644, bundle);
    Ok(())
}

/// Mozilla's roots, PEM, out of Debian's package.
pub(crate) fn certificate_bundle(root: &Path) -> Result<Vec<u8>> {
    let dir = root.join("usr/share/ca-certificates/mozilla");
    let mut files: Vec<PathBuf> = fs::read_dir(dir)?
        .map(|e| Ok(e?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let mut bundle = Vec::new();
    for file in files {
        bundle.extend(fs::read(file)?);
        bundle.push(b'\n');
    }
    Ok(bundle)
}
