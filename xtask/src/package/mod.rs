//! `./dev package`: what is released, as Debian packages, an apt repository, container images and bills of
//! materials.
//!
//! Invariants:
//! - a package depends on the commit alone: neither the time, the directory nor the machine's user
//!   changes a byte (`--verify` builds twice);
//! - packages enable and start no service: configuration comes first;
//! - no secret is an argument of a program.

mod arch;
mod check;
mod contents;
mod deb;
mod graph;
mod layer;
mod licences;
mod oci;
mod programs;
mod recipe;
mod release;
pub(crate) mod repository;
mod sbom;
mod scripts;
pub(crate) mod signing;
mod table;
mod tree;
mod verify;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use self::arch::Arch;
use self::contents::Inputs;
use self::deb::{Deb, DebFolders};
use self::graph::CrateGraph;
use self::programs::{BuildDirs, Programs};
use self::recipe::RECIPES;
use self::release::Release;
use self::signing::Signing;
use crate::initramfs::{self, Artifacts, Modules};
use crate::lab;

/// zstd level of the initramfs: it is made once and loaded by every machine.
const INITRD_LEVEL: i32 = 19;

#[derive(Debug, Clone, Args)]
pub(crate) struct PackageArgs {
    /// Where packages, repository, images and bills of materials go [default: target/packages]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Processors; one that cannot be built for here is skipped with the reason
    #[arg(
        long = "arch",
        value_enum,
        ignore_case = true,
        value_delimiter = ',',
        default_values = ["amd64", "arm64"]
    )]
    archs: Vec<Arch>,
    /// File with the OpenPGP key that signs the repository, as `gpg --export-secret-keys` writes it; it
    /// has no passphrase. Without it the repository is not signed
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
    /// Days from the signature on for which hosts take the repository; it has to be signed again before
    #[arg(long, value_name = "DAYS", requires = "sign_key", default_value_t = signing::VALID_DAYS,
        value_parser = clap::value_parser!(u32).range(1..=3650))]
    valid_days: u32,
    /// Time of the signature, as date(1) reads it
    #[arg(
        long,
        value_name = "TIME",
        requires = "sign_key",
        default_value = "now"
    )]
    date: String,
    /// Sign this repository, which was made before, again; builds nothing
    #[arg(
        long,
        value_name = "DIR",
        requires = "sign_key",
        conflicts_with_all = ["out", "archs", "release_keys", "verify", "check", "no_build"]
    )]
    renew: Option<PathBuf>,
    /// Public keys of releases that firewalls are to trust, one a line: those of `metalmesh release keygen`
    #[arg(long, value_name = "FILE")]
    release_keys: Option<PathBuf>,
    /// Build the commit twice, in two directories, and compare what comes out
    #[arg(long, conflicts_with_all = ["check", "no_build"])]
    verify: bool,
    /// Check the packages: lintian, sandboxes, sizes; installation, upgrade and purge in a chroot; the
    /// units in an emulated machine
    #[arg(long)]
    check: bool,
    /// Check the packages that were made before
    #[arg(long, requires = "check")]
    no_build: bool,
}

pub(crate) fn run(root: &Path, args: &PackageArgs) -> Result<()> {
    // First: a wrong time is not found after hours of builds.
    let signing = signing_of(args)?;
    if let (Some(repository), Some(signing)) = (&args.renew, &signing) {
        repository::renew(repository, signing)?;
        println!("{}: signed until {}", repository.display(), signing.end()?);
        return Ok(());
    }
    let target = lab::target_dir(root);
    let out = args.out.clone().unwrap_or_else(|| target.join("packages"));
    let release = Release::of(root)?;
    if args.verify {
        return verify::run(root, &target.join("package-verify"), &release, args);
    }
    if !args.no_build {
        let dirs = BuildDirs {
            root: root.to_path_buf(),
            target: target.join("package-build"),
        };
        let debs = make(&dirs, &release, &out, args)?;
        let repository = out.join("repository");
        repository::write(&repository, &release, &debs, signing.as_ref())?;
        match &signing {
            Some(signing) => println!("the repository is signed until {}", signing.end()?),
            None => println!("the repository is not signed: --sign-key names no key"),
        }
        table::print(root, &debs)?;
        println!("in {}", out.display());
    }
    if args.check {
        check::run(root, &out.join("deb"))?;
    }
    Ok(())
}

/// How the repository is signed. `None` means not at all.
fn signing_of(args: &PackageArgs) -> Result<Option<Signing<'_>>> {
    let key = args.sign_key.as_deref();
    let signing = key.map(|key| Signing::new(key, &args.date, args.valid_days));
    signing.transpose()
}

/// Makes everything but the repository; returns the packages.
fn make(dirs: &BuildDirs, release: &Release, out: &Path, args: &PackageArgs) -> Result<Vec<Deb>> {
    // Programs of this machine write the documents of all.
    let mut archs: Vec<Arch> = args.archs.clone();
    archs.sort_by_key(|arch| !arch.is_native());
    archs.dedup();
    ensure!(
        archs.first().is_some_and(|arch| arch.is_native()),
        "--arch lacks the processor of this machine, whose programs write the manual pages of all"
    );
    for folder in ["deb", "sbom", "oci"] {
        let folder = out.join(folder);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
    }
    let mut debs = Vec::new();
    for arch in archs {
        match arch.obstacle()? {
            Some(reason) => println!("SKIPPED packages for {}: {reason}", arch.debian()),
            None => debs.extend(make_for(arch, dirs, release, out, args)?),
        }
    }
    Ok(debs)
}

/// Makes packages, images and bills for one processor.
fn make_for(
    arch: Arch,
    dirs: &BuildDirs,
    release: &Release,
    out: &Path,
    args: &PackageArgs,
) -> Result<Vec<Deb>> {
    let programs = programs::build(dirs, release, arch)?;
    let documents = dirs.target.join("documents");
    if arch.is_native() {
        programs::write_documents(&programs, &documents)?;
    }
    let boot = match arch.is_native() {
        true => Some(boot(dirs, &programs, args)?),
        false => None,
    };
    let graph = CrateGraph::load(&dirs.root, arch.target())?;
    let inputs = Inputs {
        root: &dirs.root,
        release,
        graph: &graph,
        documents,
        boot: boot.as_ref(),
    };
    let folders = DebFolders {
        scratch: &dirs.target.join("stage"),
        out: &out.join("deb"),
    };
    let mut debs = Vec::new();
    for recipe in &RECIPES {
        if !recipe.is_installed() && boot.is_none() {
            println!(
                "SKIPPED {} for {}: its initramfs is made of Debian's packages for this machine's \
                 processor",
                recipe.name,
                arch.debian()
            );
            continue;
        }
        let program = programs
            .get(recipe.program)
            .context("a program is missing")?;
        let tree = contents::tree(recipe, &inputs, program)?;
        let deb = deb::build(recipe, release, arch, &tree, folders)?;
        deb::check_size(recipe, &deb)?;
        debs.push(deb);
        let bundled = contents::bundled(recipe, &inputs);
        let bill = sbom::bill(recipe, release, &graph, bundled)?;
        let name = format!("{}_{}.cdx.json", recipe.name, arch.debian());
        fs::write(out.join("sbom").join(name), bill)?;
    }
    write_images(arch, release, &programs, &out.join("oci"))?;
    Ok(debs)
}

/// Kernel and initramfs, with the programs that were built.
fn boot(dirs: &BuildDirs, programs: &Programs, args: &PackageArgs) -> Result<Artifacts> {
    let program = |name: &str| programs.get(name).cloned();
    initramfs::build(&initramfs::Options {
        out: dirs.target.join("boot"),
        hammer: program("metalmesh-hammer"),
        firewall: program("metalmesh-firewall"),
        release_keys: args.release_keys.clone(),
        modules: Modules::Full,
        level: INITRD_LEVEL,
    })
}

fn write_images(arch: Arch, release: &Release, programs: &Programs, out: &Path) -> Result<()> {
    if !arch.is_native() {
        println!(
            "SKIPPED images for {}: their libraries are those of Debian's packages for this \
             machine's processor",
            arch.debian()
        );
        return Ok(());
    }
    let debian = oci::fetch()?;
    for recipe in RECIPES.iter().filter(|recipe| recipe.has_image()) {
        let program = programs
            .get(recipe.program)
            .context("a program is missing")?;
        let files = oci::ImageFiles {
            program,
            debian: &debian,
        };
        oci::write(recipe, release, arch, &files, out)?;
    }
    Ok(())
}
