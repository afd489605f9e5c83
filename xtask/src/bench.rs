//! `./dev bench`: builds what measures, fetches what it is compared with, and hands over.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Subcommand};

use crate::debs;

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The store beside etcd: three nodes of each on this machine; see --help
    #[command(disable_help_flag = true)]
    Store {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// One decision about who may call what, without and with site policies; see --help
    #[command(disable_help_flag = true)]
    Authz {
        /// Given to the bench as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

pub(crate) fn run(root: &Path, args: &BenchArgs) -> Result<()> {
    let mut handed: Vec<OsString> = Vec::new();
    match &args.what {
        What::Store { args } => {
            handed.extend(["store".into(), "--etcd".into(), etcd()?.into()]);
            handed.extend_from_slice(args);
        }
        What::Authz { args } => {
            handed.push("authz".into());
            handed.extend_from_slice(args);
        }
    }
    let mut build = Command::new(env!("CARGO"));
    build
        .args(["build", "--quiet", "--release", "--package", "tests-perf"])
        .current_dir(root);
    if !build.status().context("cannot run cargo build")?.success() {
        bail!("the bench does not build");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = target.join("release").join("bench-store");
    // Signals and the exit code are the bench's own.
    let mut bench = Command::new(&program);
    bench.args(handed);
    Err(bench.exec()).with_context(|| format!("cannot run {}", program.display()))
}

/// Debian's etcd, unpacked and not installed: the package would start a server of its own.
fn etcd() -> Result<PathBuf> {
    let tree = debs::fetch("etcd", &["etcd-server"])?;
    let program = tree.root.join("usr/bin/etcd");
    ensure!(
        program.exists(),
        "the package etcd-server has no {}",
        program.display()
    );
    Ok(program)
}
