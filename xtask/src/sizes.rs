//! `./dev sizes`: what is released, against the sizes that it is promised to stay under.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::initramfs::{
    self, FIREWALL_SIZE_MAX, HAMMER_SIZE_MAX, INITRD_SIZE_MAX, LEVEL_DEFAULT, Modules,
};

const MIB: u64 = 1024 * 1024;

/// A binary, the crate that makes it, and the most that it may weigh in bytes.
const BOUNDS: &[(&str, &str, u64)] = &[
    ("metalmeshd", "control-server", 60 * MIB),
    ("metalmesh", "control-ctl", 60 * MIB),
    ("metalmesh-core", "agents-core", 15 * MIB),
    ("metalmesh-bmc", "bmc-agent", 15 * MIB),
    ("metalmesh-pixie", "pixie-server", 15 * MIB),
];

pub(crate) fn run(root: &Path) -> Result<()> {
    let mut build = crate::cargo();
    build.args(["build", "--release"]).current_dir(root);
    for (_, package, _) in BOUNDS {
        build.args(["--package", package]);
    }
    if !build.status().context("cannot run cargo build")?.success() {
        bail!("the release build failed");
    }
    let folder = target(root).join("release");
    let boot = initramfs::build(&initramfs::Options {
        out: target(root).join("initramfs"),
        hammer: None,
        firewall: None,
        release_keys: None,
        modules: Modules::Full,
        level: LEVEL_DEFAULT,
    })?;
    let mut rows: Vec<(&str, PathBuf, u64)> = BOUNDS
        .iter()
        .map(|(name, _, bound)| (*name, folder.join(name), *bound))
        .collect();
    rows.push(("metalmesh-hammer", boot.hammer, HAMMER_SIZE_MAX));
    rows.push(("metalmesh-firewall", boot.firewall, FIREWALL_SIZE_MAX));
    rows.push(("initramfs", boot.initrd, INITRD_SIZE_MAX));

    let mut heavy = Vec::new();
    println!("{:<18} {:>10} {:>10}", "what", "MiB", "at most");
    for (name, path, bound) in rows {
        let size = fs::metadata(&path)
            .with_context(|| format!("{}", path.display()))?
            .len();
        println!("{name:<18} {:>10.1} {:>10}", mib(size), bound / MIB);
        if size > bound {
            heavy.push(name);
        }
    }
    if !heavy.is_empty() {
        bail!("over their bound: {}", heavy.join(", "));
    }
    Ok(())
}

fn target(root: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

#[expect(clippy::cast_precision_loss, reason = "for people to read")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / MIB as f64
}
