//! A Debian in a directory, for packages to be installed into.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use crate::debs::{self, cache_dir, run_text, sha256_hex};
use crate::osimage::SUITE;

/// Debian packages that ours depend on, and what the units' check needs: dpkg alone installs ours.
const DEPENDENCIES: [&str; 12] = [
    "ca-certificates",
    "dbus",
    "init-system-helpers",
    "iproute2",
    "ipxe",
    "kmod",
    "libgcc-s1",
    "libstdc++6",
    "man-db",
    "nftables",
    "systemd",
    "systemd-sysv",
];

/// The directory with its mounts.
#[derive(Debug)]
pub(super) struct Debian {
    root: TempDir,
}

impl Debian {
    /// A fresh one with what our packages depend on. `None` where none can be made.
    pub(super) fn unpack() -> Result<Option<Self>> {
        let is_possible =
            tests_lab::is_root() && Command::new("mmdebstrap").arg("--version").output().is_ok();
        if !is_possible {
            return Ok(None);
        }
        let archive = archive()?;
        let root = tempfile::Builder::new()
            .prefix("metalmesh-chroot-")
            .tempdir()?;
        let mut tar = Command::new("tar");
        tar.arg("--extract")
            .arg("--numeric-owner")
            .arg("--file")
            .arg(archive);
        tar.arg("--exclude=./dev/*")
            .arg("--directory")
            .arg(root.path());
        debs::run(&mut tar)?;
        let debian = Self { root };
        debian.mount()?;
        Ok(Some(debian))
    }

    /// Mounts what scripts and systemd's tools need. The devices are on a file system of their own, and
    /// never the host's: what removes the directory must not reach those.
    fn mount(&self) -> Result<()> {
        let dev = self.path().join("dev");
        debs::run(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", "mode=755", "dev"])
                .arg(&dev),
        )?;
        let proc = self.path().join("proc");
        debs::run(
            Command::new("mount")
                .args(["-t", "proc", "proc"])
                .arg(&proc),
        )?;
        for (name, minor) in [("null", "3"), ("zero", "5"), ("urandom", "9")] {
            let mut mknod = Command::new("mknod");
            mknod.args(["-m", "666"]).arg(dev.join(name));
            debs::run(mknod.args(["c", "1", minor]))?;
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        self.root.path()
    }

    /// Installs a package, whose file is removed from the system again.
    pub(super) fn install(&self, deb: &Path) -> Result<()> {
        let name = deb.file_name().context("a package has no name")?;
        let inside = self.path().join("tmp").join(name);
        if inside != deb {
            fs::copy(deb, &inside)?;
        }
        let path = Path::new("/tmp").join(name);
        let installed = self.run(&["dpkg", "--install", &path.display().to_string()]);
        fs::remove_file(&inside)?;
        installed.map(drop)
    }

    /// Runs a command in it; returns what it prints.
    pub(super) fn run(&self, command: &[&str]) -> Result<String> {
        let mut chroot = Command::new("chroot");
        chroot
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .env("LC_ALL", "C")
            .arg(self.path())
            .args(command);
        run_text(&mut chroot)
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        for place in ["dev", "proc"] {
            // It is not mounted if the mount before it failed.
            let place = self.path().join(place);
            Command::new("umount").arg(place).output().ok();
        }
    }
}

/// The archive of that Debian, out of the cache or made.
fn archive() -> Result<PathBuf> {
    let versions = debs::candidates(&DEPENDENCIES)?;
    let key = sha256_hex(format!("{SUITE} {versions}").as_bytes());
    let cache = cache_dir()?.join("package-check");
    let path = cache.join(format!("debian-{}.tar", &key[..16]));
    if path.exists() {
        return Ok(path);
    }
    if cache.exists() {
        fs::remove_dir_all(&cache)?;
    }
    fs::create_dir_all(&cache)?;
    println!("  building Debian 12 for the check (a minute or two)");
    let part = cache.join("part.tar");
    let mut mmdebstrap = Command::new("mmdebstrap");
    mmdebstrap
        .args(["--quiet", "--variant=minbase", "--mode=root"])
        .arg(format!("--include={}", DEPENDENCIES.join(",")))
        .arg(r#"--aptopt=APT::Install-Recommends "false""#)
        .arg("--dpkgopt=force-unsafe-io")
        .arg(SUITE)
        .arg(&part);
    debs::run(&mut mmdebstrap).context("mmdebstrap could not build Debian")?;
    fs::rename(&part, &path)?;
    Ok(path)
}
