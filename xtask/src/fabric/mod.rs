//! `./dev fabric`: tests of switches, each program in an emulated machine of its own.
//!
//! Leaves, spines and machines are network namespaces inside one guest, whose kernel has what a
//! host's may lack: VRFs, VLAN filtering, bonds. The guest is Debian's kernel, FRR and iproute2 in
//! an initramfs; nothing of it touches the host, and no part of it needs root. The program `vms` has
//! a guest for each switch besides ([`vms`]).

pub(crate) mod guest;
mod image;
pub(crate) mod qemu;
mod vms;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use tests_lab::kvm;

use self::guest::Guest;
use self::qemu::Qemu;
use crate::debs;

/// Memory of the guest, MiB.
const MEMORY_MIB: u32 = 1024;

/// The test programs that run in the guest.
const PROGRAMS: [Program; 6] = [
    Program {
        test: "guest",
        daemons: &[],
        limit: Duration::from_secs(120),
        extent: Extent::Short,
    },
    Program {
        test: "leaf",
        daemons: &[],
        limit: Duration::from_secs(600),
        extent: Extent::Long,
    },
    Program {
        test: "packet_filter",
        daemons: &[],
        limit: Duration::from_secs(600),
        extent: Extent::Long,
    },
    Program {
        test: "matrix",
        daemons: &[],
        limit: Duration::from_secs(900),
        extent: Extent::Long,
    },
    Program {
        test: "tenancy",
        daemons: &[
            "metalmeshd",
            "metalmesh-core",
            "metalmesh",
            "metalmesh-firewall",
        ],
        limit: Duration::from_secs(4500),
        extent: Extent::Long,
    },
    Program {
        test: "vms",
        daemons: &["metalmeshd", "metalmesh-core"],
        limit: Duration::from_secs(2400),
        extent: Extent::Switches,
    },
];

#[derive(Debug, Args)]
pub(crate) struct FabricArgs {
    /// Run only the program of this name (guest, leaf, packet_filter, matrix, tenancy, vms), or the tests whose
    /// names contain this; vms has two leaves and a spine as machines of their own
    filter: Option<String>,
    /// Run vms too
    #[arg(long)]
    all: bool,
}

/// Guests and time that a program needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// A guest for seconds: `./dev test` runs it too.
    Short,
    /// A guest for minutes.
    Long,
    /// A guest for each switch, for many minutes; run only on request.
    Switches,
}

/// A test program of the table.
#[derive(Debug)]
struct Program {
    test: &'static str,
    /// Programs of ours that it starts, in the guest's `/usr/bin`.
    daemons: &'static [&'static str],
    /// Time limit on an idle machine.
    limit: Duration,
    extent: Extent,
}

/// Boots the guest once for every test program that has a test of the filter.
pub(crate) fn run(root: &Path, args: &FabricArgs) -> Result<()> {
    let filter = args.filter.as_deref().unwrap_or("");
    if PROGRAMS.iter().any(|program| program.test == filter) {
        return run_programs(root, "", |program| program.test == filter);
    }
    if args.all || !filter.is_empty() {
        return run_programs(root, filter, |_| true);
    }
    println!("SKIPPED fabric vms: ./dev fabric vms, or ./dev fabric --all, runs it");
    run_programs(root, "", |program| program.extent != Extent::Switches)
}

/// Runs the short programs alone.
pub(crate) fn run_short(root: &Path) -> Result<()> {
    let long = PROGRAMS.iter();
    let long = long.filter(|program| program.extent != Extent::Short);
    let long: Vec<&str> = long.map(|program| program.test).collect();
    println!(
        "SKIPPED fabric {}: ./dev fabric --all runs them",
        long.join(", ")
    );
    run_programs(root, "", |program| program.extent == Extent::Short)
}

fn run_programs(root: &Path, filter: &str, is_wanted: impl Fn(&Program) -> bool) -> Result<()> {
    if let Some(reason) = qemu::missing() {
        println!("SKIPPED fabric: {reason}");
        return Ok(());
    }
    let mut wanted = PROGRAMS.iter().filter(|program| is_wanted(program));
    let programs = build(root, wanted.any(|program| program.extent != Extent::Short))?;
    let mut chosen = Vec::new();
    let wanted = PROGRAMS.iter().zip(&programs);
    for (program, file) in wanted.filter(|(program, _)| is_wanted(program)) {
        if has_test(&file.test, filter)? {
            chosen.push((program, file));
        }
    }
    if chosen.is_empty() {
        bail!("no test of the fabric has {filter:?} in its name");
    }
    let base = image::prepare()?;
    let mut failed = Vec::new();
    for (program, file) in chosen {
        if let Err(error) = run_program(&base, program, file, filter) {
            println!("fabric | {}: {error:#}", program.test);
            failed.push(program.test);
        }
    }
    if !failed.is_empty() {
        bail!("failed in the fabric: {}", failed.join(", "));
    }
    Ok(())
}

fn run_program(base: &image::Base, program: &Program, built: &Built, filter: &str) -> Result<()> {
    let started = Instant::now();
    let dir = tempfile::tempdir()?;
    // Tests share the names of namespaces and two emulated processors: one at a time.
    let arguments = ["--nocapture", "--test-threads", "1", filter];
    let arguments: Vec<String> = arguments
        .iter()
        .filter(|argument| !argument.is_empty())
        .map(ToString::to_string)
        .collect();
    let initrd = image::write(base, built, &arguments, dir.path())?;
    let accelerator = kvm::probe(&base.kernel, dir.path(), &debs::cache_dir()?)?;
    println!("fabric | {}: boots by {}", program.test, accelerator.name());
    let print = |line: &str| println!("fabric | {line}");
    let code = if program.extent == Extent::Switches {
        let files = vms::Files {
            kernel: base.kernel.clone(),
            site: initrd,
            leaf: image::write_switch(base, &built.daemons[1..], dir.path(), "leaf")?,
            spine: image::write_switch(base, &[], dir.path(), "spine")?,
        };
        vms::run(&files, accelerator, dir.path(), program.limit, print)?
    } else {
        let qemu = Qemu {
            kernel: base.kernel.clone(),
            initrd,
            accelerator,
            memory_mib: MEMORY_MIB,
            cpus: 2,
            log: dir.path().join("serial.log"),
            append: String::new(),
            more: vec!["-no-reboot".into()],
        };
        let limit = program.limit;
        Guest { qemu, limit }.run(print)?
    };
    let seconds = started.elapsed().as_secs();
    println!("fabric | {}: {seconds} s, exit code {code}", program.test);
    if code != 0 {
        bail!("exit code {code}");
    }
    Ok(())
}

/// `true` if the filter leaves a test of the program.
fn has_test(file: &Path, filter: &str) -> Result<bool> {
    let mut list = Command::new(file);
    let list = debs::run_text(list.args(["--list", "--format", "terse"]))?;
    Ok(list
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .any(|name| name.contains(filter)))
}

/// The part of cargo's JSON messages that names an executable.
#[derive(Deserialize)]
struct Message {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// The files of a program of the table.
#[derive(Debug)]
struct Built {
    test: PathBuf,
    daemons: Vec<PathBuf>,
}

/// Builds the programs of the table; their files in the order of the table. Those that run for minutes
/// on an emulated processor are optimised.
fn build(root: &Path, is_optimised: bool) -> Result<Vec<Built>> {
    let named = |kind: &str, name: &str| [format!("--{kind}"), name.to_owned()];
    let tests = PROGRAMS.iter().flat_map(|p| named("test", p.test));
    let daemons = PROGRAMS.iter().flat_map(|p| p.daemons);
    let daemons = daemons.flat_map(|daemon| named("bin", daemon));
    let built = if is_optimised {
        // The daemons are those of `./dev bench`; tests beside them would give them other features.
        let mut built = build_named(root, &["--release", "--workspace"], daemons)?;
        let scope = [
            "--release",
            "--package",
            "tests-fabric",
            "--package",
            "agents-nos",
        ];
        built.extend(build_named(root, &scope, tests)?);
        built
    } else {
        // As `./dev test` builds them.
        build_named(root, &["--workspace"], tests.chain(daemons))?
    };
    let files = |program: &Program| {
        let daemons = program.daemons.iter();
        Ok(Built {
            test: executable(&built, program.test, "test")?,
            daemons: daemons
                .map(|daemon| executable(&built, daemon, "bin"))
                .collect::<Result<_>>()?,
        })
    };
    PROGRAMS.iter().map(files).collect()
}

/// The messages of cargo about a build of these.
fn build_named(
    root: &Path,
    scope: &[&str],
    names: impl IntoIterator<Item = String>,
) -> Result<Vec<Message>> {
    let mut command = crate::cargo();
    let output = command
        .arg("build")
        .args(scope)
        .args(names)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo build")?;
    if !output.status.success() {
        bail!("the tests of the fabric do not build");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

fn executable(built: &[Message], name: &str, kind: &str) -> Result<PathBuf> {
    let is_it = |message: &&Message| {
        let target = message.target.as_ref();
        target.is_some_and(|t| t.name == name && t.kind == [kind])
    };
    let mut found = built.iter().filter(is_it);
    let file = found.find_map(|message| message.executable.clone());
    file.with_context(|| format!("cargo built no {kind} {name}"))
}
