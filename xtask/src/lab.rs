//! `./dev lab`: builds what the virtual data centre runs, then hands over to `tests/lab`.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use tests_lab::helper::Helper;
use tests_lab::{Artefacts, Options, Program};

use crate::debs::{self, cache_dir};
use crate::{initramfs, osimage};

#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    #[command(subcommand)]
    command: Option<LabCommand>,
    #[command(flatten)]
    options: RunArgs,
}

#[derive(Debug, Clone, Args)]
struct RunArgs {
    /// Machines: odd ones boot by BIOS and have IPMI, even ones by UEFI and have Redfish
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=8))]
    machines: u8,
    /// One machine and the main job only
    #[arg(long)]
    short: bool,
    /// Leave everything running when a step fails
    #[arg(long)]
    keep: bool,
    /// Run fault drills instead of the main job: names and commas, "all", or "list"
    #[arg(long, value_name = "NAME")]
    drill: Option<String>,
    /// Use the programs and images that are built already
    #[arg(long)]
    no_build: bool,
}

#[derive(Debug, Subcommand)]
enum LabCommand {
    /// Build the data centre, do the main job, take everything away (the default)
    Run(RunArgs),
    /// Build the data centre and leave it running
    Up(RunArgs),
    /// Take away what is up, every trace of it
    Down,
    /// What runs
    Status,
    /// A shell as the lab's admin, or as its tenant
    Shell {
        /// Who: admin, tenant-a or tenant-b
        #[arg(default_value = "admin")]
        who: String,
    },
    /// Print the environment of a lab that is up, for `eval`
    Env,
    #[command(flatten)]
    Helper(Helper),
}

pub(crate) fn run(root: &Path, args: &LabArgs) -> Result<()> {
    if !tests_lab::is_root() {
        return become_root(root, args);
    }
    match args.command.as_ref() {
        None => start(root, &args.options, false),
        Some(LabCommand::Run(options)) => start(root, options, false),
        Some(LabCommand::Up(options)) => start(root, options, true),
        Some(LabCommand::Down) => tests_lab::down(),
        Some(LabCommand::Status) => tests_lab::status(),
        Some(LabCommand::Shell { who }) => tests_lab::shell(who),
        Some(LabCommand::Env) => tests_lab::environment(),
        Some(LabCommand::Helper(helper)) => helper.run(),
    }
}

/// The same command once more by sudo. What has to be built is built before, as who one is.
fn become_root(root: &Path, args: &LabArgs) -> Result<()> {
    let mut command = Command::new("sudo");
    command.arg("env");
    for name in [
        "HOME",
        "XDG_CACHE_HOME",
        "CARGO_TARGET_DIR",
        "PATH",
        "SHELL",
        "TERM",
    ] {
        if let Ok(value) = std::env::var(name) {
            command.arg(format!("{name}={value}"));
        }
    }
    // Asked before the build, which may put a new program in the place of this one.
    command
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1));
    let options = match &args.command {
        None => Some(&args.options),
        Some(LabCommand::Run(options) | LabCommand::Up(options)) => Some(options),
        Some(_) => None,
    };
    if let Some(options) = options {
        build(root, options.no_build)?;
        if !options.no_build {
            command.arg("--no-build");
        }
    }
    Err(command.exec()).context("the lab makes network namespaces: run it as root")
}

fn start(root: &Path, args: &RunArgs, up: bool) -> Result<()> {
    if args.drill.as_deref() == Some("list") {
        tests_lab::list_drills();
        return Ok(());
    }
    // Asked before the build, which may put a new program in the place of this one.
    let program = std::env::current_exe()?;
    let artefacts = build(root, args.no_build)?;
    let options = Options {
        machines: if args.short { 1 } else { args.machines.into() },
        keep: args.keep,
        up,
        drill: args.drill.clone(),
    };
    tests_lab::run(&program, &options, &artefacts)
}

/// Every program of ours that runs in the lab: package, binary.
const PROGRAMS: [(Program, &str, &str); 5] = [
    (Program::Control, "control-server", "metalmeshd"),
    (Program::Cli, "control-ctl", "metalmesh"),
    (Program::Core, "agents-core", "metalmesh-core"),
    (Program::Bmc, "bmc-agent", "metalmesh-bmc"),
    (Program::Pixie, "pixie-server", "metalmesh-pixie"),
];

/// What machines boot into and what is installed on them, each a directory.
#[derive(Debug)]
pub(crate) struct Machines {
    pub(crate) boot: PathBuf,
    pub(crate) image: PathBuf,
}

/// Builds what the lab's machines boot and install.
pub(crate) fn boot_and_image() -> Result<Machines> {
    let cache = cache_dir()?;
    initramfs::build(&boot_options(&cache, BootPrograms::default()))?;
    osimage::build(&image_options(&cache))?;
    Ok(Machines {
        boot: boot_dir(&cache),
        image: image_options(&cache).out,
    })
}

/// Builds the image that the lab's machines install.
pub(crate) fn image() -> Result<osimage::Artifacts> {
    osimage::build(&image_options(&cache_dir()?))
}

fn boot_dir(cache: &Path) -> PathBuf {
    cache.join("lab").join("boot")
}

fn image_options(cache: &Path) -> osimage::Options {
    osimage::Options {
        out: cache.join("lab").join("image"),
    }
}

/// Programs for the initramfs that are built already. `None` has the static one built.
#[derive(Default)]
struct BootPrograms {
    hammer: Option<PathBuf>,
    firewall: Option<PathBuf>,
}

fn boot_options(cache: &Path, programs: BootPrograms) -> initramfs::Options {
    initramfs::Options {
        out: boot_dir(cache),
        hammer: programs.hammer,
        firewall: programs.firewall,
        release_keys: None,
        modules: initramfs::Modules::Lab,
        level: initramfs::LEVEL_DEFAULT,
    }
}

/// Builds what the lab boots and runs. The image and the packages of the initramfs are made beside
/// the programs: they wait for downloads, and the last crates leave a processor idle.
fn build(root: &Path, built: bool) -> Result<Artefacts> {
    let cache = cache_dir()?;
    let base = boot_options(&cache, BootPrograms::default());
    let (image, prepared) = std::thread::scope(|scope| {
        let image = scope.spawn(|| osimage::build(&image_options(&cache)));
        let prepared = scope.spawn(|| initramfs::prepare(base.modules, base.level));
        let programs = build_programs(root, built);
        let image = image.join().map_err(std::panic::resume_unwind);
        let prepared = prepared.join().map_err(std::panic::resume_unwind);
        programs.and_then(|()| Ok((image??, prepared??)))
    })?;
    let target = target_dir(root);
    let program = |name: &str| {
        if built {
            return Ok(Some(boot_dir(&cache).join(name)).filter(|program| program.exists()));
        }
        let is_usable = of_the_images_release();
        let copy = is_usable.then(|| stripped(&target.join("debug").join(name)));
        copy.transpose()
    };
    let programs = BootPrograms {
        hammer: program("metalmesh-hammer")?,
        firewall: program("metalmesh-firewall")?,
    };
    let boot = initramfs::finish(prepared, &boot_options(&cache, programs))?;
    let programs = PROGRAMS
        .iter()
        .map(|(program, _, binary)| (*program, target.join("debug").join(binary)))
        .collect();
    Ok(Artefacts {
        programs,
        kernel: boot.kernel,
        initrd: boot.initrd,
        image: image.image,
        image_digest: image.digest,
        cache,
    })
}

/// `true` if a program that is linked with this machine's libraries runs in the image too, to which
/// hammer copies itself and the agent of firewalls. It comes out of the build of the programs at no
/// cost; the static one, which is shipped and which `./dev test` boots, takes minutes.
fn of_the_images_release() -> bool {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let codename = format!("VERSION_CODENAME={}", osimage::SUITE);
    release.lines().any(|line| line == codename)
}

/// A copy without what only debuggers read: machines load it over the network.
fn stripped(program: &Path) -> Result<PathBuf> {
    let copy = program.with_extension("stripped");
    let mut strip = Command::new("strip");
    debs::run(strip.arg("-o").arg(&copy).arg(program))?;
    Ok(copy)
}

fn build_programs(root: &Path, built: bool) -> Result<()> {
    if built {
        return Ok(());
    }
    let mut command = crate::cargo();
    command.current_dir(root).arg("build");
    // xtask too: the same selection as that of `./dev`, and so the same features.
    let programs = PROGRAMS.iter().map(|(_, package, _)| *package);
    for package in programs.chain(["agents-hammer", "agents-firewall", "xtask"]) {
        command.args(["--package", package]);
    }
    let status = command.status().context("cannot run cargo")?;
    if !status.success() {
        bail!("the programs do not build");
    }
    Ok(())
}

/// Cargo's target directory.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}
