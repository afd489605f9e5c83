//! The automation behind `./dev`: checks, tests, the lab and the images it boots.
//!
//! Each subcommand is a module; this file only tells them apart.

#![expect(clippy::print_stdout, reason = "a program that talks to its user")]

mod ansible;
mod bench;
mod check;
mod debs;
mod fabric;
mod fleet;
mod fuzz;
mod initramfs;
mod kube;
mod lab;
mod measure;
mod osimage;
mod package;
mod shown;
mod sim;
mod sizes;
mod test;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(
    name = "./dev",
    about = "Build, check, test and run metalmesh.",
    bin_name = "./dev",
    after_help = "Run by ./dev itself:\n  \
        control  Run one control node on loopback: metalmeshd --dev\n  \
        cli      Run the command line: metalmesh"
)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Check format, lints and structure; writes nothing
    Check(check::Options),
    /// Mend what a tool can mend: format, simple lints, the list of invariants
    Fix,
    /// Count what breaks the rules about names and shapes, crate by crate
    Measure(measure::Options),
    /// A small real data centre on this machine, end to end
    Lab(lab::LabArgs),
    /// Run every test, the lab in its short form included
    Test(test::TestArgs),
    /// Tests of switches in an emulated machine: VRFs, EVPN and BGP with FRR; vms: in one each
    Fabric(fabric::FabricArgs),
    /// Check the Ansible collection: lint, documentation, sanity, unit and integration tests
    Ansible(ansible::AnsibleArgs),
    /// Measure: the store beside etcd
    Bench(bench::BenchArgs),
    /// Rehearse a whole data centre: real control and agents, simulated hardware; see --help
    #[command(disable_help_flag = true)]
    Fleet(fleet::FleetArgs),
    /// Give every decoder random input for a while
    Fuzz(fuzz::FuzzArgs),
    /// Run simulated clusters with faults; a failure names the seed that repeats it
    Sim(sim::SimArgs),
    /// Build the kernel and initramfs that machines boot into
    Initramfs(initramfs::Options),
    /// Build the Debian image that the lab installs
    Osimage(osimage::Options),
    /// Make Debian packages, a repository, container images and bills of materials
    Package(package::PackageArgs),
    /// Build the release binaries and print their sizes against their bounds
    Sizes,
}

fn main() -> ExitCode {
    let root = root();
    let result = match Args::parse().task {
        Task::Check(options) => check::run(&root, &options),
        Task::Fix => check::fix(&root),
        Task::Measure(options) => measure::run(&root, &options),
        Task::Test(args) => test::run(&root, &args),
        Task::Fabric(args) => fabric::run(&root, &args),
        Task::Ansible(args) => ansible::run(&root, &args),
        Task::Bench(args) => bench::run(&root, &args),
        Task::Fleet(args) => fleet::run(&root, &args),
        Task::Fuzz(args) => fuzz::run(&root, &args),
        Task::Sim(args) => sim::run(&root, &args),
        Task::Lab(args) => lab::run(&root, &args),
        Task::Initramfs(options) => initramfs::run(&options),
        Task::Osimage(options) => osimage::run(&options),
        Task::Package(args) => package::run(&root, &args),
        Task::Sizes => sizes::run(&root),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Cargo, as the caller has it. `env!("CARGO")` would name the file behind rustup's proxy, and
/// without the proxy a crate's own `rust-toolchain` file chooses the compiler of that crate.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The root of the checkout that this was built from.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
