//! The tree of files that every host of the lab starts from.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::debs::{self, cache_dir, sha256_hex};
use crate::osimage::SUITE;

/// For Ansible, for our packages, which depend on some, and FRR for the leaf: a lab reaches no archive of
/// Debian's.
const PACKAGES: [&str; 16] = [
    "ca-certificates",
    "dbus",
    "frr",
    "init-system-helpers",
    "iproute2",
    "ipxe",
    "kmod",
    "libgcc-s1",
    "libstdc++6",
    "nftables",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "systemd",
    "systemd-sysv",
];

/// Nothing of a host, no archive that cannot be reached, and no unit that works on the machine below.
const CUSTOMIZE_HOOK: &str = r#"
chroot "$1" systemctl mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer logrotate.timer getty.target sys-kernel-debug.mount sys-kernel-tracing.mount
chroot "$1" systemctl disable frr.service
: > "$1/etc/machine-id"
rm -f "$1"/etc/apt/sources.list "$1"/etc/apt/sources.list.d/* "$1"/etc/apt/apt.conf.d/99mmdebstrap
rm -f "$1"/etc/ssh/ssh_host_* "$1/etc/hostname" "$1/etc/resolv.conf"
"#;

/// The tree, out of the cache or made.
///
/// # Errors
/// Debian cannot be built.
pub(super) fn tree() -> Result<PathBuf> {
    let versions = debs::candidates(&PACKAGES)?;
    let key = sha256_hex(format!("{SUITE} {versions}{CUSTOMIZE_HOOK}").as_bytes());
    let cache = cache_dir()?.join("ansible-host");
    let tree = cache.join(&key[..16]);
    if tree.exists() {
        return Ok(tree);
    }
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    fs::create_dir_all(&cache)?;
    println!("building Debian 12 for the hosts, once (a minute or two)");
    let part = cache.join("part");
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap
        .args([
            "--quiet",
            "--variant=minbase",
            "--mode=root",
            "--format=directory",
        ])
        .arg(format!("--include={}", PACKAGES.join(",")))
        .arg(r#"--aptopt=APT::Install-Recommends "false""#)
        .arg("--dpkgopt=force-unsafe-io")
        .arg(format!("--customize-hook={CUSTOMIZE_HOOK}"))
        .arg(SUITE)
        .arg(&part);
    debs::run(&mut mmdebstrap).context("mmdebstrap could not build Debian")?;
    fs::rename(&part, &tree)?;
    Ok(tree)
}
