//! `./dev test`: every test of the workspace on this machine, and the lab beside them.
//!
//! Tests that boot machines need what machines boot and install: it is made first, and named to
//! them by environment variables, without which they say that they are skipped. The lab waits for
//! emulated machines most of its time, so it runs while the tests do, with the same programs. The
//! short tests of the fabric of switches run after both.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::debs;
use crate::fabric;
use crate::kube;
use crate::lab;
use crate::shown::Shown;

/// The main job on one machine, then the faults that only a whole data centre shows: what can go
/// wrong on a machine alone is driven by the tests of hammer, more quickly.
const LAB: [&str; 5] = [
    "lab",
    "--short",
    "--no-build",
    "--drill",
    "main-job,tutorial,unknown-partition,cut-short,bmc-silent,control-killed,tickets",
];

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Leave out the lab, the fabric and what boots machines
    #[arg(long)]
    no_lab: bool,
    /// Build a kube-apiserver, once, for the tests that need one; without it they run if it was
    /// built before
    #[arg(long)]
    kube: bool,
    /// Passed on to cargo test, after `--`
    #[arg(last = true)]
    cargo: Vec<String>,
}

pub(crate) fn run(root: &Path, args: &TestArgs) -> Result<()> {
    let started = Instant::now();
    let seconds = || started.elapsed().as_secs();
    let kube = kube::programs(root, args.kube)?;
    let kube = kube.as_deref();
    if args.no_lab {
        eprintln!("machines, lab, fabric: skipped, --no-lab was given");
        cargo_test(root, &args.cargo, kube, None)?;
        eprintln!("tests: {} s", seconds());
        return Ok(());
    }
    let machines = lab::boot_and_image()?;
    // Asked before the build, which may put a new program in the place of this one.
    let program = std::env::current_exe()?;
    build(root)?;
    eprintln!("built: {} s", seconds());
    let lab = Lab::start(root, &program)?;
    let tests = cargo_test(root, &args.cargo, kube, Some(&machines));
    eprintln!("tests: {} s", seconds());
    let lab = lab.finish();
    eprintln!("tests and lab: {} s", seconds());
    let fabric = fabric::run_short(root);
    eprintln!("tests, lab and fabric: {} s", seconds());
    tests.and(lab).and(fabric)
}

/// Everything is built before anything runs, programs and tests in one go: apart, cargo would
/// build some of what they have in common twice.
fn build(root: &Path) -> Result<()> {
    let status = crate::cargo()
        .args(["build", "--workspace", "--all-targets"])
        .current_dir(root)
        .status()
        .context("cannot run cargo build")?;
    if !status.success() {
        bail!("the workspace does not build");
    }
    Ok(())
}

/// The program that tests of mixed clusters run beside this one's.
pub(crate) fn build_next_level(root: &Path, profile: &[&str]) -> Result<()> {
    let status = crate::cargo()
        .args(["build", "--workspace", "--bin", "metalmeshd-next"])
        .args(profile)
        .args(["--features", "control-server/next-level"])
        .current_dir(root)
        .status()
        .context("cannot run cargo build")?;
    if !status.success() {
        bail!("metalmeshd of the next feature level does not build");
    }
    Ok(())
}

/// NetworkManager, unpacked for the test of what hammer writes for it. Installed it would take over the
/// network of this machine. `None` if apt does not have it: the test is then skipped.
fn net_tools() -> Option<PathBuf> {
    match debs::fetch("net-tools", &["network-manager"]) {
        Ok(tree) => Some(tree.root),
        Err(error) => {
            eprintln!("network-manager: skipped, {error:#}");
            None
        }
    }
}

fn cargo_test(
    root: &Path,
    args: &[String],
    kube: Option<&Path>,
    machines: Option<&lab::Machines>,
) -> Result<()> {
    build_next_level(root, &[])?;
    let tools = net_tools();
    let mut shown = Shown::default();
    let mut command = crate::cargo();
    command
        .args(["test", "--workspace", "--no-fail-fast"])
        .args(args)
        .args((!args.iter().any(|arg| arg == "--")).then_some("--"))
        .arg("--show-output")
        .current_dir(root)
        .stdout(Stdio::piped());
    if let Some(kube) = kube {
        command.env("METALMESH_KUBE_DIR", kube);
    }
    if let Some(tools) = &tools {
        command.env("METALMESH_NET_TOOLS", tools);
    }
    if let Some(machines) = machines {
        command
            .env("METALMESH_BOOT_DIR", &machines.boot)
            .env("METALMESH_IMAGE_DIR", &machines.image);
    }
    let mut process = command.spawn().context("cannot run cargo test")?;
    let lines = process.stdout.take().context("cargo test has no output")?;
    for line in BufReader::new(lines).lines().map_while(Result::ok) {
        if let Some(line) = shown.line(&line) {
            println!("{line}");
        }
    }
    let status = process.wait().context("cannot wait for cargo test")?;
    eprintln!("left out: {}", shown.skipped.len());
    for skipped in &shown.skipped {
        eprintln!("  {skipped}");
    }
    if !status.success() {
        bail!("tests failed");
    }
    Ok(())
}

/// The lab beside the tests; each of its lines is marked.
struct Lab {
    process: Child,
    output: JoinHandle<()>,
}

impl Lab {
    fn start(root: &Path, program: &Path) -> Result<Self> {
        let mut process = Command::new(program)
            .args(LAB)
            .current_dir(root)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run the lab")?;
        let lines = process.stdout.take().context("the lab has no output")?;
        let output = std::thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                eprintln!("lab | {line}");
            }
        });
        Ok(Self { process, output })
    }

    fn finish(mut self) -> Result<()> {
        let status = self.process.wait().context("cannot wait for the lab")?;
        // Its last lines are still on their way; a reader that panicked has told so itself.
        self.output.join().ok();
        if !status.success() {
            bail!("the lab failed");
        }
        Ok(())
    }
}
