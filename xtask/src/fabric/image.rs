//! The guest's initramfs: Debian's kernel, FRR and network tools, and one test program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Built;
use crate::debs::{self, DebTree};
use crate::initramfs::cpio::{Archive, Node};
use crate::initramfs::{self, Packages, cached, contents, elf, mib, modules};

/// Debian packages of the guest beside those of hammer's initramfs.
const PACKAGES: [&str; 10] = [
    "busybox-static",
    "frr",
    "iproute2",
    "iputils-ping",
    "kmod",
    "libc6",
    "libgcc-s1",
    "libpam-modules",
    "nftables",
    "tcpdump",
];

/// Programs; all go to /usr/bin.
const TOOLS: [&str; 8] = ["bridge", "ip", "kmod", "nft", "ping", "ss", "tc", "tcpdump"];

/// FRR's daemons and their shell, at Debian's paths.
const FRR: [&str; 5] = [
    "usr/bin/vtysh",
    "usr/lib/frr/bfdd",
    "usr/lib/frr/bgpd",
    "usr/lib/frr/staticd",
    "usr/lib/frr/zebra",
];

/// Kernel modules that a fabric is made of. Loaded before the test starts.
const MODULES: [&str; 30] = [
    "8021q",
    "af_packet",
    "bonding",
    "bridge",
    "crc32c_generic",
    "dummy",
    "ext4",
    "macvlan",
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
    "sch_netem",
    "sch_tbf",
    "veth",
    "virtio_blk",
    "virtio_net",
    "virtio_pci",
    "virtio_rng",
    "vrf",
    "vxlan",
];

/// Lets vtysh in, which asks PAM also as root.
const PAM_MODULE: &str = "lib/x86_64-linux-gnu/security/pam_permit.so";

const FILES: [(&str, &str); 6] = [
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\nfrr:x:102:106::/nonexistent:/bin/false\n",
    ),
    ("etc/group", "root:x:0:\nfrrvty:x:105:frr\nfrr:x:106:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("etc/frr/vtysh.conf", "no service integrated-vtysh-config\n"),
    ("etc/frr/frr.conf", ""),
    (
        "etc/pam.d/frr",
        "auth sufficient pam_permit.so\naccount sufficient pam_permit.so\n",
    ),
];

const INIT: &str = include_str!("guest_files/init.sh");

/// Makes the file system of a leaf's disk; from the packages of hammer's initramfs.
const MKE2FS: &str = "mke2fs";
const MKE2FS_CONF: &str = "etc/mke2fs.conf";

/// Scripts in `/roles`, one of which init continues with.
const ROLES: [(&str, &str); 4] = [
    ("leaf", include_str!("guest_files/leaf.sh")),
    ("spine", include_str!("guest_files/spine.sh")),
    ("switch", include_str!("guest_files/switch.sh")),
    ("test", include_str!("guest_files/test.sh")),
];

/// Everything of the guest but the test program.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) kernel: PathBuf,
    layer: Vec<u8>,
}

/// Fetches packages and packs the guest, or takes both from the cache.
pub(super) fn prepare() -> Result<Base> {
    let Packages {
        tree: kernel_tree,
        kernel_version,
    } = initramfs::fetch_packages()?;
    let tree = debs::fetch("fabric", &PACKAGES)?;
    let recipe = format!("{TOOLS:?} {FRR:?} {MODULES:?} {FILES:?} {PAM_MODULE} {INIT} {ROLES:?}");
    let inputs = format!("{} {} {kernel_version} {recipe}", kernel_tree.key, tree.key);
    let (layer, was_cached) = initramfs::cached_layer(&inputs, initramfs::LEVEL_DEFAULT, || {
        let mut archive = base(&tree, &kernel_tree)?;
        modules::add(&mut archive, &kernel_tree.root, &kernel_version, MODULES)?;
        Ok(archive)
    })?;
    eprintln!(
        "  fabric: {} packages, base {}{}",
        tree.packages,
        mib(layer.len()),
        cached(was_cached)
    );
    Ok(Base {
        kernel: kernel_tree
            .root
            .join(format!("boot/vmlinuz-{kernel_version}")),
        layer,
    })
}

fn base(tree: &DebTree, kernel_tree: &DebTree) -> Result<Archive> {
    let root = &tree.root;
    let mut archive = Archive::default();
    contents::skeleton(&mut archive);
    mke2fs(&mut archive, &kernel_tree.root)?;
    for dir in ["var/tmp", "var/lib"] {
        archive.insert(dir, Node::Dir { mode: 0o1777 });
    }
    let mut programs = Vec::new();
    for tool in TOOLS {
        let path =
            contents::find_tool(root, tool).with_context(|| format!("no package has {tool}"))?;
        archive.file(&format!("usr/bin/{tool}"), 0o755, fs::read(&path)?);
        programs.push(path);
    }
    archive.link("usr/bin/modprobe", "kmod");
    for at in FRR {
        let path = root.join(at);
        let bytes = fs::read(&path).with_context(|| format!("no package has {at}"))?;
        archive.file(at, 0o755, bytes);
        programs.push(path);
    }
    let module = root.join(PAM_MODULE);
    archive.file(&format!("usr/{PAM_MODULE}"), 0o755, fs::read(&module)?);
    programs.push(module);
    contents::libraries(&mut archive, root, &programs)?;
    contents::busybox(&mut archive, root)?;
    for (path, text) in FILES {
        archive.file(path, 0o644, text);
    }
    archive.file("modules", 0o644, MODULES.join("\n") + "\n");
    archive.file("init", 0o755, INIT);
    for (role, script) in ROLES {
        archive.file(&format!("roles/{role}"), 0o644, script);
    }
    Ok(archive)
}

fn mke2fs(archive: &mut Archive, root: &Path) -> Result<()> {
    let path = contents::find_tool(root, MKE2FS).context("no package has mke2fs")?;
    archive.file("usr/bin/mke2fs", 0o755, fs::read(&path)?);
    archive.file(MKE2FS_CONF, 0o644, fs::read(root.join(MKE2FS_CONF))?);
    contents::libraries(archive, root, &[path])
}

/// Writes the initramfs that runs the test with `arguments` to `dir`.
pub(super) fn write(
    base: &Base,
    built: &Built,
    arguments: &[String],
    dir: &Path,
) -> Result<PathBuf> {
    let mut archive = Archive::default();
    let test = strip(&built.test, dir)?;
    archive.file("test", 0o755, fs::read(&test)?);
    let lines: String = arguments.iter().map(|a| format!("{a}\n")).collect();
    archive.file("arguments", 0o644, lines);
    finish(base, archive, &built.daemons, vec![test], dir, "initramfs")
}

/// Writes the initramfs of a guest that has these programs, but no test, to `dir`.
pub(super) fn write_switch(
    base: &Base,
    programs: &[PathBuf],
    dir: &Path,
    name: &str,
) -> Result<PathBuf> {
    let archive = Archive::default();
    finish(base, archive, programs, Vec::new(), dir, name)
}

/// Adds programs, and the libraries of these and of `linked`, and writes the initramfs.
fn finish(
    base: &Base,
    mut archive: Archive,
    programs: &[PathBuf],
    mut linked: Vec<PathBuf>,
    dir: &Path,
    name: &str,
) -> Result<PathBuf> {
    for program in programs {
        let program = strip(program, dir)?;
        let name = program.file_name().context("a program without a name")?;
        let at = format!("usr/bin/{}", name.to_string_lossy());
        archive.file(&at, 0o755, fs::read(&program)?);
        linked.push(program);
    }
    // The host's: the programs were linked with them. They replace those of the packages.
    for (name, path) in elf::closure(Path::new("/"), &linked)? {
        archive.file(&format!("usr/lib/{name}"), 0o755, fs::read(path)?);
    }
    let layer = initramfs::pack(&archive, initramfs::LEVEL_DEFAULT)?;
    let initrd = dir.join(format!("{name}.cpio.zst"));
    fs::write(&initrd, [base.layer.as_slice(), &layer].concat())?;
    Ok(initrd)
}

/// Copies a program without its symbols to `dir`.
fn strip(program: &Path, dir: &Path) -> Result<PathBuf> {
    let name = program.file_name().context("a program without a name")?;
    let stripped = dir.join(name);
    debs::run(Command::new("strip").arg("-o").arg(&stripped).arg(program))?;
    Ok(stripped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        assert!(PACKAGES.is_sorted() && TOOLS.is_sorted() && FRR.is_sorted());
        assert!(MODULES.is_sorted() && ROLES.is_sorted());
    }
}
