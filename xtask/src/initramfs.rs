//! The initramfs that machines boot into, from Debian packages and our programs.
//!
//! Two cpio archives one after the other, each compressed by itself: the *base* (kernel modules,
//! tools, libraries), cached by the versions of its packages, and *hammer*, small and always
//! fresh, with the agent that it installs into firewalls. A changed hammer costs less than a second.
//! Modules keep Debian's signatures, so that the kernel takes them under Secure Boot.

pub(crate) mod contents;
pub(crate) mod cpio;
pub(crate) mod elf;
pub(crate) mod modules;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::debs::{self, DebTree};
use cpio::Archive;

/// zstd: 3 is what CI and the lab use; a release may spend minutes on 19 to save a fifth.
pub(crate) const LEVEL_DEFAULT: i32 = 3;
/// What the project promises, bytes.
pub(crate) const INITRD_SIZE_MAX: u64 = 120 << 20;
pub(crate) const HAMMER_SIZE_MAX: u64 = 15 << 20;
pub(crate) const FIREWALL_SIZE_MAX: u64 = 15 << 20;
const TARGET: &str = "x86_64-unknown-linux-gnu";

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Where vmlinuz, initramfs.cpio.zst, metalmesh-hammer and metalmesh-firewall go
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// A metalmesh-hammer that is built already; else cargo builds the static one that is shipped
    #[arg(long, value_name = "FILE")]
    pub(crate) hammer: Option<PathBuf>,
    /// A metalmesh-firewall that is built already; else cargo builds the static one that is shipped
    #[arg(long, value_name = "FILE")]
    pub(crate) firewall: Option<PathBuf>,
    /// Public keys of releases that firewalls are to trust, one a line: those of `metalmesh release keygen`
    #[arg(long, value_name = "FILE")]
    pub(crate) release_keys: Option<PathBuf>,
    /// Which kernel modules: "full" for real hardware, "lab" for virtual machines
    #[arg(long, value_enum, default_value_t = Modules::Full)]
    pub(crate) modules: Modules,
    /// zstd level
    #[arg(long, default_value_t = LEVEL_DEFAULT)]
    pub(crate) level: i32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Modules {
    Full,
    Lab,
}

/// What was built.
#[derive(Debug, Clone)]
pub(crate) struct Artifacts {
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: PathBuf,
    pub(crate) hammer: PathBuf,
    pub(crate) firewall: PathBuf,
    /// As `uname -r` says.
    pub(crate) kernel_version: String,
    /// Debian packages that kernel, modules and tools come from.
    pub(crate) packages: Vec<debs::PackedDeb>,
}

/// A program of ours in the initramfs: its crate and its name.
#[derive(Debug, Clone, Copy)]
struct Program {
    package: &'static str,
    name: &'static str,
    /// Bytes.
    size_max: u64,
}

const HAMMER: Program = Program {
    package: "agents-hammer",
    name: "metalmesh-hammer",
    size_max: HAMMER_SIZE_MAX,
};
const FIREWALL: Program = Program {
    package: "agents-firewall",
    name: "metalmesh-firewall",
    size_max: FIREWALL_SIZE_MAX,
};

/// Everything of an initramfs but our programs.
#[derive(Debug)]
pub(crate) struct Prepared {
    started: Instant,
    tree: DebTree,
    base: Vec<u8>,
    kernel_version: String,
}

/// The packages of the initramfs, unpacked, with the kernel among them.
#[derive(Debug)]
pub(crate) struct Packages {
    pub(crate) tree: DebTree,
    /// As `uname -r` says.
    pub(crate) kernel_version: String,
}

/// Fetches kernel and tools.
pub(crate) fn fetch_packages() -> Result<Packages> {
    let image = debs::first_dependency("linux-image-amd64", "linux-image-")?;
    let kernel_version = image.trim_start_matches("linux-image-").to_string();
    let packages: Vec<&str> = contents::PACKAGES
        .iter()
        .copied()
        .chain([image.as_str()])
        .collect();
    let tree = debs::fetch("initramfs", &packages)?;
    Ok(Packages {
        tree,
        kernel_version,
    })
}

/// Fetches packages and packs the base, or takes both from the cache.
pub(crate) fn prepare(modules: Modules, level: i32) -> Result<Prepared> {
    let started = Instant::now();
    let Packages {
        tree,
        kernel_version,
    } = fetch_packages()?;
    step(
        started,
        &format!("{} packages{}", tree.packages, cached(tree.cached)),
    );

    let (base, was_cached) = base_layer(&tree, &kernel_version, modules, level)?;
    step(
        started,
        &format!("base {}{}", mib(base.len()), cached(was_cached)),
    );
    Ok(Prepared {
        started,
        tree,
        base,
        kernel_version,
    })
}

/// Builds kernel and initramfs into `options.out`, as little as is needed.
pub(crate) fn build(options: &Options) -> Result<Artifacts> {
    finish(prepare(options.modules, options.level)?, options)
}

/// Adds our programs to what was prepared with the same modules and level.
pub(crate) fn finish(prepared: Prepared, options: &Options) -> Result<Artifacts> {
    let Prepared {
        started,
        tree,
        base,
        kernel_version,
    } = prepared;
    fs::create_dir_all(&options.out)?;
    let hammer = program(HAMMER, options.hammer.as_deref(), &options.out)?;
    let firewall = program(FIREWALL, options.firewall.as_deref(), &options.out)?;
    let layer = program_layer(&hammer, &firewall, options)?;
    step(
        started,
        &format!(
            "hammer {}, firewall {}, packed {}",
            mib(size(&hammer)?),
            mib(size(&firewall)?),
            mib(layer.len())
        ),
    );

    let artifacts = Artifacts {
        kernel: options.out.join("vmlinuz"),
        initrd: options.out.join("initramfs.cpio.zst"),
        hammer,
        firewall,
        kernel_version,
        packages: tree.list.clone(),
    };
    let vmlinuz = tree
        .root
        .join(format!("boot/vmlinuz-{}", artifacts.kernel_version));
    write_if_changed(&artifacts.kernel, &fs::read(&vmlinuz)?)?;
    write_if_changed(&artifacts.initrd, &[base, layer].concat())?;
    check_size(&artifacts.initrd, INITRD_SIZE_MAX)?;
    step(
        started,
        &format!("initramfs {}", mib(size(&artifacts.initrd)?)),
    );
    Ok(artifacts)
}

/// `cargo xtask initramfs`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let built = build(options)?;
    for path in [&built.kernel, &built.initrd, &built.hammer, &built.firewall] {
        eprintln!("{:>10}  {}", mib(size(path)?), path.display());
    }
    Ok(())
}

fn base_layer(
    tree: &DebTree,
    kernel: &str,
    modules: Modules,
    level: i32,
) -> Result<(Vec<u8>, bool)> {
    let recipe = contents::recipe();
    let inputs = format!("{} {recipe} {kernel} {modules:?} {level}", tree.key);
    cached_layer(&inputs, level, || {
        let mut archive = contents::base(&tree.root)?;
        modules::add(&mut archive, &tree.root, kernel, modules.names())?;
        Ok(archive)
    })
}

/// A packed archive and `true` if it comes from the cache; else it is made. `inputs` is everything
/// that the archive depends on.
pub(crate) fn cached_layer(
    inputs: &str,
    level: i32,
    make: impl FnOnce() -> Result<Archive>,
) -> Result<(Vec<u8>, bool)> {
    let dir = debs::cache_dir()?.join("initramfs");
    let path = dir.join(format!(
        "base-{}.cpio.zst",
        &debs::sha256_hex(inputs.as_bytes())[..16]
    ));
    if path.exists() {
        return Ok((fs::read(path)?, true));
    }
    let bytes = pack(&make()?, level)?;
    fs::create_dir_all(&dir)?;
    for old in fs::read_dir(&dir)? {
        // Bases of other modules or levels are small and rare: keep a day's worth by age instead
        // of guessing which is wanted again.
        let old = old?;
        let age = old.metadata()?.modified()?.elapsed().unwrap_or_default();
        if age.as_secs() > 7 * 86_400 {
            fs::remove_file(old.path())?;
        }
    }
    let part = path.with_extension("part");
    fs::write(&part, &bytes)?;
    fs::rename(&part, &path)?;
    Ok((bytes, false))
}

fn program_layer(hammer: &Path, firewall: &Path, options: &Options) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.file("usr/bin/metalmesh-hammer", 0o755, fs::read(hammer)?);
    archive.link("init", "usr/bin/metalmesh-hammer");
    // Where hammer puts it in the systems of firewalls.
    let path = "usr/lib/metalmesh/metalmesh-firewall";
    archive.file(path, 0o755, fs::read(firewall)?);
    if let Some(keys) = &options.release_keys {
        let keys = fs::read(keys).with_context(|| keys.display().to_string())?;
        archive.file("usr/lib/metalmesh/release-keys", 0o644, keys);
    }
    pack(&archive, options.level)
}

/// cpio and zstd; padded so that another archive may follow.
pub(crate) fn pack(archive: &Archive, level: i32) -> Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), level)?;
    archive.write_to(&mut encoder)?;
    let mut bytes = encoder.finish()?;
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    Ok(bytes)
}

/// Puts a program into `out`: the one that is given, or the static one, built here.
fn program(program: Program, given: Option<&Path>, out: &Path) -> Result<PathBuf> {
    let path = out.join(program.name);
    if let Some(given) = given {
        copy_if_changed(given, &path)?;
        return Ok(path);
    }
    let status = crate::cargo()
        .args(["build", "--profile", "small", "--package", program.package])
        .args(["--bin", program.name, "--target", TARGET])
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        // As it is shipped: clippy, where it compiles the tests, leaves out optimisations.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .current_dir(crate::root())
        .status()?;
    ensure!(status.success(), "cargo could not build {}", program.name);
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| crate::root().join("target"), PathBuf::from);
    let built = target.join(TARGET).join("small").join(program.name);
    copy_if_changed(&built, &path)?;
    check_size(&path, program.size_max)?;
    Ok(path)
}

fn check_size(path: &Path, max: u64) -> Result<()> {
    let have = size(path)?;
    ensure!(
        have <= max,
        "{} has {have} bytes, over its bound of {max}",
        path.display()
    );
    Ok(())
}

fn copy_if_changed(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| from.display().to_string())?;
    write_if_changed(to, &bytes)?;
    fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    Ok(())
}

/// Leaves the file's time alone when nothing changed; never leaves half a file.
fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let part = path.with_extension("part");
    fs::write(&part, bytes)?;
    fs::rename(&part, path).with_context(|| path.display().to_string())
}

fn size(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path)
        .with_context(|| path.display().to_string())?
        .len())
}

pub(crate) fn mib(bytes: impl TryInto<u64>) -> String {
    let bytes = bytes.try_into().unwrap_or(u64::MAX);
    format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20)
}

pub(crate) fn cached(yes: bool) -> &'static str {
    if yes { " (cached)" } else { "" }
}

pub(crate) fn step(started: Instant, text: &str) {
    eprintln!("  {:6.1} s  {text}", started.elapsed().as_secs_f32());
}
