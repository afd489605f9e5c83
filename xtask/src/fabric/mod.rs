//! `./dev fabric`: tests of switches, each program in an emulated machine of its own.
//!
//! Leaves, spines and machines are network namespaces inside one guest, whose kernel has what a
//! host's may lack: VRFs, VLAN filtering, bonds. The guest is Debian's kernel, FRR and iproute2 in
//! an initramfs; nothing of it touches the host, and no part of it needs root.

mod guest;
mod image;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Deserialize;
use tests_lab::kvm;

use self::guest::Guest;
use crate::debs;

/// The test programs that run in the guest.
const PROGRAMS: [Program; 5] = [
    Program {
        test: "guest",
        daemons: &[],
        limit: Duration::from_secs(120),
        is_short: true,
    },
    Program {
        test: "leaf",
        daemons: &[],
        limit: Duration::from_secs(600),
        is_short: false,
    },
    Program {
        test: "packet_filter",
        daemons: &[],
        limit: Duration::from_secs(600),
        is_short: false,
    },
    Program {
        test: "matrix",
        daemons: &[],
        limit: Duration::from_secs(900),
        is_short: false,
    },
    Program {
        test: "tenancy",
        daemons: &["metalmeshd", "metalmesh-core"],
        limit: Duration::from_secs(2400),
        is_short: false,
    },
];

#[derive(Debug, Args)]
pub(crate) struct FabricArgs {
    /// Run only tests whose names contain this
    filter: Option<String>,
}

/// A test program of the table.
#[derive(Debug)]
struct Program {
    test: &'static str,
    /// Programs of ours that it starts, in the guest's `/usr/bin`.
    daemons: &'static [&'static str],
    /// Time limit on an idle machine.
    limit: Duration,
    /// `true` if `./dev test` runs it too.
    is_short: bool,
}

/// Boots the guest once for every test program that has a test of the filter.
pub(crate) fn run(root: &Path, args: &FabricArgs) -> Result<()> {
    let filter = args.filter.as_deref().unwrap_or("");
    run_programs(root, filter, |_| true)
}

/// Runs the short programs alone.
pub(crate) fn run_short(root: &Path) -> Result<()> {
    let long = PROGRAMS.iter().filter(|program| !program.is_short);
    let long: Vec<&str> = long.map(|program| program.test).collect();
    println!("SKIPPED fabric {}: ./dev fabric runs them", long.join(", "));
    run_programs(root, "", |program| program.is_short)
}

fn run_programs(root: &Path, filter: &str, is_wanted: impl Fn(&Program) -> bool) -> Result<()> {
    if let Some(reason) = guest::missing() {
        println!("SKIPPED fabric: {reason}");
        return Ok(());
    }
    let programs = build(root)?;
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
    let guest = Guest {
        kernel: &base.kernel,
        initrd: &initrd,
        accelerator,
        dir: dir.path(),
        limit: program.limit,
    };
    let code = guest.run(|line| println!("fabric | {line}"))?;
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

/// Builds the programs of the table with the features of the whole workspace, which `./dev test`
/// builds too; their files in the order of the table.
fn build(root: &Path) -> Result<Vec<Built>> {
    let mut command = crate::cargo();
    command
        .args(["build", "--workspace"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stderr(Stdio::inherit());
    for program in &PROGRAMS {
        command.args(["--test", program.test]);
        for daemon in program.daemons {
            command.args(["--bin", daemon]);
        }
    }
    let output = command.output().context("cannot run cargo build")?;
    if !output.status.success() {
        bail!("the tests of the fabric do not build");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let built: Vec<Message> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
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

fn executable(built: &[Message], name: &str, kind: &str) -> Result<PathBuf> {
    let is_it = |message: &&Message| {
        let target = message.target.as_ref();
        target.is_some_and(|t| t.name == name && t.kind == [kind])
    };
    let mut found = built.iter().filter(is_it);
    let file = found.find_map(|message| message.executable.clone());
    file.with_context(|| format!("cargo built no {kind} {name}"))
}
