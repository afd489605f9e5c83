//! Which kernel modules the initramfs has, with what they depend on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Modules;
use super::cpio::{Archive, Node};
use crate::debs::run;

/// What every machine may need, virtual ones first.
const COMMON: [&str; 46] = [
    "8021q",
    "af_packet",
    "ahci",
    "bonding",
    "bridge",
    "crc32c_generic",
    "dm_mirror",
    "dm_mod",
    "dm_raid",
    "dmi_sysfs",
    "e1000",
    "e1000e",
    "efivarfs",
    "ext4",
    "hmac",
    "i6300esb",
    "igb",
    "ipmi_devintf",
    "ipmi_msghandler",
    "ipmi_si",
    "isofs",
    "iTCO_wdt",
    "loop",
    "net_failover",
    "nls_ascii",
    "nls_cp437",
    "nls_utf8",
    "nvme",
    "qemu_fw_cfg",
    "raid0",
    "raid1",
    "raid10",
    "raid456",
    "sd_mod",
    "sha256_generic",
    "sr_mod",
    "vfat",
    "virtio_balloon",
    "virtio_blk",
    "virtio_console",
    "virtio_net",
    "virtio_pci",
    "virtio_rng",
    "virtio_scsi",
    "vmw_pvscsi",
    "vmxnet3",
];

/// Network cards, storage controllers and BMCs of servers.
const SERVERS: [&str; 40] = [
    "aacraid",
    "arcmsr",
    "atlantic",
    "be2net",
    "bnx2x",
    "bnxt_en",
    "cdc_ether",
    "cxgb4",
    "ehci_pci",
    "ena",
    "hid_generic",
    "hpsa",
    "hpwdt",
    "hv_netvsc",
    "hv_storvsc",
    "i40e",
    "ice",
    "igc",
    "ipmi_ssif",
    "ixgbe",
    "ixgbevf",
    "megaraid_sas",
    "mlx4_en",
    "mlx5_core",
    "mpi3mr",
    "mpt3sas",
    "nvme_tcp",
    "qed",
    "qede",
    "r8169",
    "sfc",
    "smartpqi",
    "tg3",
    "uas",
    "usb_storage",
    "usbhid",
    "vmd",
    "xfs",
    "xhci_hcd",
    "xhci_pci",
];

const INDEX_FILES: [&str; 3] = [
    "modules.builtin",
    "modules.builtin.modinfo",
    "modules.order",
];

pub(super) fn recipe() -> String {
    format!("{COMMON:?} {SERVERS:?}")
}

impl Modules {
    /// Names of the modules.
    pub(super) fn names(self) -> Vec<&'static str> {
        match self {
            Self::Full => [&COMMON[..], &SERVERS[..]].concat(),
            Self::Lab => COMMON.to_vec(),
        }
    }
}

/// Adds modules, what they need, and a depmod index of exactly them.
pub(crate) fn add(
    a: &mut Archive,
    root: &Path,
    kernel: &str,
    wanted: impl AsRef<[&'static str]>,
) -> Result<()> {
    let dir = root.join("lib/modules").join(kernel);
    if !dir.join("modules.dep").exists() {
        depmod(root, root, kernel)?;
    }
    let files = closure(&dir, wanted.as_ref())?;
    let staging = tempfile::tempdir()?;
    let index = staging.path().join("lib/modules").join(kernel);
    for file in &files {
        let to = index.join(file);
        fs::create_dir_all(to.parent().context("a module without a directory")?)?;
        fs::copy(dir.join(file), &to)?;
    }
    for file in INDEX_FILES {
        fs::copy(dir.join(file), index.join(file))?;
    }
    depmod(root, staging.path(), kernel)?;
    add_tree(a, &index, &format!("usr/lib/modules/{kernel}"))
}

/// Paths below the kernel's directory of the modules named and of all that they need.
fn closure(dir: &Path, wanted: &[&str]) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(dir.join("modules.dep"))?;
    let deps: BTreeMap<&str, Vec<&str>> = text
        .lines()
        .filter_map(|l| l.split_once(':'))
        .map(|(file, rest)| (file, rest.split_whitespace().collect()))
        .collect();
    let by_name: BTreeMap<String, &str> = deps.keys().map(|f| (module_name(f), *f)).collect();
    let builtin = fs::read_to_string(dir.join("modules.builtin"))?;
    let builtin: BTreeSet<String> = builtin.lines().map(module_name).collect();
    let mut out = BTreeSet::new();
    let mut absent = Vec::new();
    for name in wanted {
        let name = name.replace('-', "_");
        match by_name.get(&name) {
            Some(file) => {
                out.insert((*file).to_string());
                out.extend(deps[file].iter().map(ToString::to_string));
            }
            None if builtin.contains(&name) => {}
            None => absent.push(name),
        }
    }
    ensure!(
        absent.is_empty(),
        "modules that this kernel does not have: {absent:?}"
    );
    Ok(out)
}

/// `kernel/fs/ext4/ext4.ko` → `ext4`.
fn module_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split(".ko").next().unwrap_or(file).replace('-', "_")
}

/// depmod of the package tree on the package tree's own libraries: the host may have neither.
fn depmod(tree: &Path, base: &Path, kernel: &str) -> Result<()> {
    let libraries: Vec<String> = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"]
        .iter()
        .map(|d| tree.join(d).display().to_string())
        .collect();
    run(
        Command::new(tree.join("lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"))
            .args(["--argv0", "depmod", "--library-path", &libraries.join(":")])
            .arg(tree.join("bin/kmod"))
            .arg("-b")
            .arg(base)
            .arg(kernel),
    )
}

fn add_tree(a: &mut Archive, dir: &Path, at: &str) -> Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir)?
        .map(|e| Ok(e?.path()))
        .collect::<Result<_>>()?;
    entries.sort();
    for path in entries {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let to = format!("{at}/{name}");
        if path.is_dir() {
            a.insert(&to, Node::Dir { mode: 0o755 });
            add_tree(a, &path, &to)?;
        } else {
            a.file(&to, 0o644, fs::read(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_disjoint() {
        let names: Vec<String> = COMMON.iter().map(|n| n.to_lowercase()).collect();
        assert!(names.is_sorted() && SERVERS.is_sorted());
        assert!(COMMON.iter().all(|m| !SERVERS.contains(m)));
    }

    #[test]
    fn names_lose_path_and_suffix() {
        assert_eq!(
            module_name("kernel/crypto/crc32c-generic.ko.xz"),
            "crc32c_generic"
        );
    }
}
