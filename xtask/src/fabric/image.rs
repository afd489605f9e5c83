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
const TOOLS: [&str; 8] = [
    "bridge", "ip", "kmod", "nft", "ping", "ss", "tc", "tcpdump",
];

/// FRR's daemons and their shell, at Debian's paths.
const FRR: [&str; 4] = [
    "usr/bin/vtysh",
    "usr/lib/frr/bfdd",
    "usr/lib/frr/bgpd",
    "usr/lib/frr/zebra",
];

/// Kernel modules that a fabric is made of. Loaded before the test starts.
const MODULES: [&str; 16] = [
    "8021q",
    "af_packet",
    "bonding",
    "bridge",
    "dummy",
    "macvlan",
    "nf_tables",
    "nft_limit",
    "nft_meta_bridge",
    "sch_netem",
    "sch_tbf",
    "veth",
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

const INIT: &str = include_str!("init.sh");

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
    let recipe = format!("{TOOLS:?} {FRR:?} {MODULES:?} {FILES:?} {PAM_MODULE} {INIT}");
    let inputs = format!("{} {} {kernel_version} {recipe}", kernel_tree.key, tree.key);
    let (layer, was_cached) = initramfs::cached_layer(&inputs, initramfs::LEVEL_DEFAULT, || {
        let mut archive = base(&tree)?;
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

fn base(tree: &DebTree) -> Result<Archive> {
    let root = &tree.root;
    let mut archive = Archive::default();
    contents::skeleton(&mut archive);
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
    Ok(archive)
}

/// Writes the initramfs that runs the test with `arguments` to `dir`.
pub(super) fn write(
    base: &Base,
    built: &Built,
    arguments: &[String],
    dir: &Path,
) -> Result<PathBuf> {
    let mut archive = Archive::default();
    let mut stripped = vec![strip(&built.test, dir)?];
    archive.file("test", 0o755, fs::read(&stripped[0])?);
    for daemon in &built.daemons {
        let program = strip(daemon, dir)?;
        let name = program.file_name().context("a program without a name")?;
        let at = format!("usr/bin/{}", name.to_string_lossy());
        archive.file(&at, 0o755, fs::read(&program)?);
        stripped.push(program);
    }
    // The host's: the programs were linked with them. They replace those of the packages.
    for (name, path) in elf::closure(Path::new("/"), &stripped)? {
        archive.file(&format!("usr/lib/{name}"), 0o755, fs::read(path)?);
    }
    let lines: String = arguments.iter().map(|a| format!("{a}\n")).collect();
    archive.file("arguments", 0o644, lines);
    let layer = initramfs::pack(&archive, initramfs::LEVEL_DEFAULT)?;
    let initrd = dir.join("initramfs.cpio.zst");
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
        assert!(MODULES.is_sorted());
    }
}
