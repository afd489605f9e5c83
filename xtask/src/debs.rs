//! Debian packages as build inputs: fetched with apt, unpacked without being installed.
//!
//! Needs a Debian host with apt's package lists, nothing else: no chroot, no debootstrap, no root.
//! A set of packages is named by the SHA-256 over names, versions and digests of its closure, so
//! an unchanged set costs one `apt-cache` call.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// Unpacked package sets kept per name; older ones are removed.
const TREES_KEPT_MAX: usize = 2;

/// An unpacked set of packages.
#[derive(Debug, Clone)]
pub(crate) struct DebTree {
    /// SHA-256 over the closure, hex.
    pub(crate) key: String,
    /// Where the packages' files lie, as in `/`.
    pub(crate) root: PathBuf,
    /// Number of packages.
    pub(crate) packages: usize,
    /// The packages, sorted by name.
    pub(crate) list: Vec<PackedDeb>,
    /// Whether the tree was there already.
    pub(crate) cached: bool,
}

/// A package of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackedDeb {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Hex; empty if apt knows another digest only.
    pub(crate) sha256: String,
}

/// One line of `apt-get download --print-uris`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Deb {
    file: String,
    size: u64,
    digest: String,
}

/// The cache of everything that is built from packages: `$XDG_CACHE_HOME/metalmesh`.
pub(crate) fn cache_dir() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(base.join("metalmesh"))
}

/// Hex SHA-256 of some bytes.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

/// Fetches `packages` with the libraries they depend on, and unpacks them.
pub(crate) fn fetch(name: &str, packages: &[&str]) -> Result<DebTree> {
    with_fresh_lists(|| try_fetch(name, packages))
}

/// Package lists may be missing or older than the archive: they are refreshed once, when what
/// needs them fails.
fn with_fresh_lists<T>(work: impl Fn() -> Result<T>) -> Result<T> {
    work().or_else(|first| {
        eprintln!("    refreshing the package lists");
        match run(Command::new("apt-get").args(["update", "-q"])) {
            Ok(()) => work(),
            Err(_) => Err(first),
        }
    })
}

fn try_fetch(name: &str, packages: &[&str]) -> Result<DebTree> {
    let closure = library_closure(packages)?;
    let debs = resolve(&closure)?;
    let text: Vec<String> = debs
        .iter()
        .map(|d| format!("{} {}", d.file, d.digest))
        .collect();
    let key = sha256_hex(text.join("\n").as_bytes());
    let cache = cache_dir()?;
    let trees = cache.join("trees");
    let root = trees.join(format!("{name}-{}", &key[..16]));
    let tree = |cached| DebTree {
        key: key.clone(),
        root: root.clone(),
        packages: debs.len(),
        list: debs.iter().filter_map(packed).collect(),
        cached,
    };
    if root.join(".complete").exists() {
        return Ok(tree(true));
    }
    let pool = cache.join("debs");
    fs::create_dir_all(&pool)?;
    download(&pool, &debs)?;
    unpack(&pool, &debs, &root)?;
    prune(&trees, name, &root)?;
    Ok(tree(false))
}

/// Candidate versions of packages, without their dependencies: a cheap cache key.
pub(crate) fn candidates(packages: &[&str]) -> Result<String> {
    let list: BTreeSet<String> = packages.iter().map(ToString::to_string).collect();
    let debs = with_fresh_lists(|| resolve(&list))?;
    Ok(debs
        .iter()
        .map(|d| format!("{} {}\n", d.file, d.digest))
        .collect())
}

/// The package that a meta package such as `linux-image-amd64` stands for.
pub(crate) fn first_dependency(package: &str, prefix: &str) -> Result<String> {
    with_fresh_lists(|| {
        let text = run_text(Command::new("apt-cache").args(["depends", package]))?;
        text.lines()
            .filter_map(|l| l.trim().strip_prefix("Depends: "))
            .find(|d| d.starts_with(prefix))
            .map(ToString::to_string)
            .with_context(|| format!("{package} depends on no {prefix}*"))
    })
}

/// `packages` and every library below them. Programs and scripts that they depend on are left
/// out: what the initramfs runs is named, not inherited.
fn library_closure(packages: &[&str]) -> Result<BTreeSet<String>> {
    let mut cmd = Command::new("apt-cache");
    cmd.args(["depends", "--recurse"]);
    for kind in [
        "recommends",
        "suggests",
        "conflicts",
        "breaks",
        "replaces",
        "enhances",
    ] {
        cmd.arg(format!("--no-{kind}"));
    }
    let text = run_text(cmd.args(packages))?;
    let mut names: BTreeSet<String> = text
        .lines()
        .filter(|l| l.starts_with("lib") || l.starts_with("zlib1g") || *l == "gcc-12-base")
        .filter(|l| !l.contains(':') && !l.ends_with("-dev") && !l.ends_with("-perl"))
        .map(ToString::to_string)
        .collect();
    names.extend(packages.iter().map(ToString::to_string));
    Ok(names)
}

/// What apt would download, sorted by file name.
fn resolve(names: &BTreeSet<String>) -> Result<Vec<Deb>> {
    let text = run_text(
        Command::new("apt-get")
            .args(["download", "--print-uris", "-q"])
            .args(names),
    )
    .context("apt knows not every package; `apt-get update` may help")?;
    let mut debs: Vec<Deb> = text.lines().filter_map(parse_uri_line).collect();
    debs.sort();
    ensure!(
        debs.len() == names.len(),
        "apt resolved {} of {} packages; `apt-get update` may help",
        debs.len(),
        names.len()
    );
    Ok(debs)
}

/// `'http://…/x.deb' x.deb 221100 SHA256:…`
fn parse_uri_line(line: &str) -> Option<Deb> {
    let mut words = line.split_whitespace();
    words.next().filter(|w| w.starts_with('\''))?;
    let file = words.next()?.to_string();
    let size = words.next()?.parse().ok()?;
    let digest = words.next()?.to_string();
    Some(Deb { file, size, digest })
}

/// Downloads what is not in the pool yet; checks every file that is new.
fn download(pool: &Path, debs: &[Deb]) -> Result<()> {
    let have = |d: &Deb| fs::metadata(pool.join(&d.file)).is_ok_and(|m| m.len() == d.size);
    let missing: Vec<&Deb> = debs.iter().filter(|d| !have(d)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mib = missing.iter().map(|d| d.size).sum::<u64>() >> 20;
    eprintln!("    downloading {} packages, {mib} MiB", missing.len());
    let specs: Vec<String> = missing
        .iter()
        .filter_map(|d| name_and_version(&d.file))
        .collect();
    run(Command::new("apt-get")
        .args(["download", "-q"])
        .args(&specs)
        .current_dir(pool))?;
    for deb in missing {
        let bytes = fs::read(pool.join(&deb.file)).with_context(|| deb.file.clone())?;
        if let Some(want) = deb.digest.strip_prefix("SHA256:") {
            ensure!(sha256_hex(&bytes) == want, "{}: wrong digest", deb.file);
        }
    }
    Ok(())
}

/// `grub-pc-bin_2.06-13+deb12u2_amd64.deb` → `grub-pc-bin=2.06-13+deb12u2`.
fn name_and_version(file: &str) -> Option<String> {
    let mut parts = file.split('_');
    let name = parts.next()?;
    let version = parts.next()?.replace("%3a", ":");
    Some(format!("{name}={version}"))
}

fn packed(deb: &Deb) -> Option<PackedDeb> {
    let spec = name_and_version(&deb.file)?;
    let (name, version) = spec.split_once('=')?;
    let sha256 = deb.digest.strip_prefix("SHA256:").unwrap_or_default();
    Some(PackedDeb {
        name: name.to_owned(),
        version: version.to_owned(),
        sha256: sha256.to_owned(),
    })
}

fn unpack(pool: &Path, debs: &[Deb], root: &Path) -> Result<()> {
    let part = root.with_extension("part");
    if part.exists() {
        fs::remove_dir_all(&part)?;
    }
    fs::create_dir_all(&part)?;
    for deb in debs {
        run(Command::new("dpkg-deb")
            .arg("-x")
            .arg(pool.join(&deb.file))
            .arg(&part))?;
    }
    fs::write(part.join(".complete"), b"")?;
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    fs::rename(&part, root)?;
    Ok(())
}

/// Removes the oldest trees of the same name.
fn prune(trees: &Path, name: &str, keep: &Path) -> Result<()> {
    let mut old = Vec::new();
    for entry in fs::read_dir(trees)? {
        let entry = entry?;
        let is_sibling = entry
            .file_name()
            .to_string_lossy()
            .starts_with(&format!("{name}-"));
        if is_sibling && entry.path() != keep {
            old.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    old.sort();
    let excess = (old.len() + 1).saturating_sub(TREES_KEPT_MAX);
    for (_, path) in old.into_iter().take(excess) {
        fs::remove_dir_all(path)?;
    }
    Ok(())
}

/// Runs a command; its output goes into the error when it fails.
pub(crate) fn run(cmd: &mut Command) -> Result<()> {
    run_text(cmd).map(drop)
}

/// Runs a command and gives its standard output.
pub(crate) fn run_text(cmd: &mut Command) -> Result<String> {
    let program = cmd.get_program().to_string_lossy().into_owned();
    let out = cmd
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !out.status.success() {
        let stderr = String::from_utf8_lossy(&out.stderr);
        bail!("{program} failed ({}): {}", out.status, stderr.trim());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uri_lines_are_parsed() {
        let line = "'http://h/pool/g/gdisk_1.0.9-2.1_amd64.deb' gdisk_1.0.9-2.1_amd64.deb 221100 SHA256:8a";
        let deb = parse_uri_line(line).unwrap();
        assert_eq!(
            (deb.file.as_str(), deb.size),
            ("gdisk_1.0.9-2.1_amd64.deb", 221_100)
        );
        assert_eq!(parse_uri_line("Reading package lists..."), None);
    }

    #[test]
    fn epochs_are_unescaped() {
        let file = "busybox-static_1%3a1.35.0-4_amd64.deb";
        assert_eq!(name_and_version(file).unwrap(), "busybox-static=1:1.35.0-4");
    }
}
