//! The operating system that the lab installs: Debian 12 as a zstd-compressed tar.
//!
//! Made by mmdebstrap as root, cached by its recipe and the versions of its packages. It holds
//! nothing of a machine: no host name, no machine id, no SSH host keys. What hammer writes into it
//! at installation is hammer's affair.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::debs;

/// Debian's name for the release of the image.
pub(crate) const SUITE: &str = "bookworm";

/// What the image has beside Debian's minimum.
const PACKAGES: [&str; 22] = [
    "ca-certificates",
    "chrony",
    "cloud-init",
    "dbus",
    "e2fsprogs",
    "ignition",
    "initramfs-tools",
    "iproute2",
    "iputils-ping",
    "kmod",
    "libpam-systemd",
    "linux-image-cloud-amd64",
    "lvm2",
    "mdadm",
    "netbase",
    "openssh-server",
    "procps",
    "sudo",
    "systemd-resolved",
    "systemd-sysv",
    "udev",
    "zstd",
];

/// Runs before the packages are unpacked: the initial RAM disk is then made once, not twice.
const SETUP_HOOK: &str = r#"
mkdir -p "$1/etc/initramfs-tools/conf.d"
echo COMPRESS=zstd > "$1/etc/initramfs-tools/conf.d/compress"
"#;

/// Runs when everything is installed. The masked units do work that a fresh machine does not
/// need at once, and that takes seconds where the CPU is emulated.
const CUSTOMIZE_HOOK: &str = r#"
chroot "$1" systemctl enable systemd-networkd systemd-resolved
chroot "$1" systemctl disable apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service
chroot "$1" passwd -l root
: > "$1/etc/machine-id"
rm -f "$1"/etc/ssh/ssh_host_* "$1/etc/hostname" "$1/etc/resolv.conf" "$1/var/lib/dbus/machine-id"
ln -s ../run/systemd/resolve/stub-resolv.conf "$1/etc/resolv.conf"
rm -rf "$1"/var/cache/apt/*.bin "$1"/var/cache/apt/archives/*.deb "$1"/var/lib/apt/lists/*
"#;

/// Documentation nobody reads on a server; licences stay.
const PATH_RULES: [&str; 5] = [
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
    "path-exclude=/usr/share/info/*",
];

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Where debian-12.tar.zst and its digest go
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// What was built.
#[derive(Debug, Clone)]
pub(crate) struct Artifacts {
    pub(crate) image: PathBuf,
    /// "sha256:<hex>" of the compressed file.
    pub(crate) digest: String,
}

/// Builds the image into `options.out`, or takes it from the cache.
pub(crate) fn build(options: &Options) -> Result<Artifacts> {
    let started = Instant::now();
    let versions = debs::candidates(&PACKAGES)?;
    let recipe = format!("{SUITE} {versions} {SETUP_HOOK} {CUSTOMIZE_HOOK} {PATH_RULES:?}");
    let key = debs::sha256_hex(recipe.as_bytes());
    let cache = debs::cache_dir()?.join("osimage");
    fs::create_dir_all(&cache)?;
    let cached = cache.join(format!("debian-12-{}.tar.zst", &key[..16]));
    let hit = cached.exists();
    if !hit {
        mmdebstrap(&cached)?;
        forget_others(&cache, &cached)?;
    }
    let artifacts = publish(&cached, &options.out)?;
    let seconds = started.elapsed().as_secs_f32();
    let size = fs::metadata(&artifacts.image)?.len() >> 20;
    let how = if hit { "cached" } else { "built" };
    eprintln!("  {seconds:6.1} s  Debian 12 image, {size} MiB, {how}");
    Ok(artifacts)
}

/// `cargo xtask osimage`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let built = build(options)?;
    eprintln!("{}\n{}", built.image.display(), built.digest);
    Ok(())
}

fn mmdebstrap(to: &Path) -> Result<()> {
    eprintln!("    building Debian 12 from packages (a minute or two)");
    let part = to.with_extension("part.tar.zst");
    // The programs are built meanwhile and take longer: they go first.
    let mut cmd = Command::new("nice");
    cmd.args([
        "-n",
        "10",
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        "--mode=auto",
    ])
    .arg(format!("--include={}", PACKAGES.join(",")))
    .arg(r#"--aptopt=Acquire::Languages "none""#)
    .arg(r#"--aptopt=APT::Install-Recommends "false""#)
    .arg(format!("--setup-hook={SETUP_HOOK}"))
    .arg(format!("--customize-hook={CUSTOMIZE_HOOK}"))
    .args(PATH_RULES.map(|r| format!("--dpkgopt={r}")))
    // A half-built image is thrown away: no file of it needs to outlive a power cut.
    .arg("--dpkgopt=force-unsafe-io")
    .arg(SUITE)
    .arg(&part);
    debs::run(&mut cmd).context("mmdebstrap could not build the image")?;
    fs::rename(&part, to)?;
    Ok(())
}

fn forget_others(cache: &Path, keep: &Path) -> Result<()> {
    for entry in fs::read_dir(cache)? {
        let path = entry?.path();
        if path != keep {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Links or copies the image out of the cache, with its digest beside it.
fn publish(cached: &Path, out: &Path) -> Result<Artifacts> {
    fs::create_dir_all(out)?;
    let sums = cached.with_extension("zst.sha256");
    if !sums.exists() {
        fs::write(&sums, debs::sha256_hex(&fs::read(cached)?))?;
    }
    let hex = fs::read_to_string(&sums)?;
    ensure!(hex.len() == 64, "{} is damaged; remove it", sums.display());
    let image = out.join("debian-12.tar.zst");
    if image.exists() {
        fs::remove_file(&image)?;
    }
    if fs::hard_link(cached, &image).is_err() {
        fs::copy(cached, &image)?;
    }
    fs::write(
        out.join("debian-12.tar.zst.sha256"),
        format!("{hex}  debian-12.tar.zst\n"),
    )?;
    Ok(Artifacts {
        image,
        digest: format!("sha256:{hex}"),
    })
}
