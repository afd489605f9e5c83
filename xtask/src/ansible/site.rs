//! `./dev ansible lab`: the playbook on real hosts, from empty ones to a machine that phones home.
//!
//! In a lab of `tests/lab` hosts stand in the places of programs: three control nodes, the host of a
//! partition and a leaf. Each is a Debian with systemd in namespaces of its own, which Ansible reaches by
//! SSH, and whose packages come from an apt repository in the same network. The machine is QEMU behind a
//! simulated BMC, and boots the installer of the package.

mod base;
mod controller;
mod host;
mod load;
mod machine;
mod packages;
mod place;
mod recap;
mod rollout;
mod runs;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use tests_lab::state::Record;

use self::place::SitePlace;
use super::name;
use crate::lab;

/// Tasks of `./dev ansible` beside the checks.
#[derive(Debug, Subcommand)]
pub(super) enum AnsibleCommand {
    /// The playbook on real hosts: install, run again, predict, rebuild, upgrade; a machine phones home
    Lab(SiteArgs),
}

#[derive(Debug, Args)]
pub(super) struct SiteArgs {
    /// Packages that are installed [default: target/packages/deb]
    #[arg(long, value_name = "DIR")]
    debs: Option<PathBuf>,
    /// Packages of an earlier version, which the site has first: their metalmeshd tells another version or
    /// feature level. Without them nothing is upgraded
    #[arg(long, value_name = "DIR")]
    previous: Option<PathBuf>,
    /// Leave everything running when a step fails
    #[arg(long)]
    keep: bool,
    /// Only this step after the first run, which all need; repeatable
    #[arg(long, value_enum)]
    only: Vec<SiteStep>,
}

/// The proofs, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SiteStep {
    /// The playbook on empty hosts
    First,
    /// Run again it changes nothing
    Again,
    /// `--check --diff` says what a run will change
    Check,
    /// A control host is destroyed and made again
    Rebuild,
    /// From the previous packages to the new ones, while somebody writes
    Upgrade,
    /// A machine boots, is installed and phones home
    Machine,
}

impl SiteStep {
    /// Title in the table of times.
    fn title(self) -> &'static str {
        match self {
            Self::First => "the playbook on empty hosts",
            Self::Again => "the playbook again: no change",
            Self::Check => "--check --diff predicts the changes",
            Self::Rebuild => "a control host destroyed and made again",
            Self::Upgrade => "upgrade under load",
            Self::Machine => "a machine phones home",
        }
    }
}

pub(super) fn run(root: &Path, args: &SiteArgs) -> Result<()> {
    if !tests_lab::is_root() {
        bail!("the lab makes network namespaces: run it as root");
    }
    let debs = args.debs.clone();
    let debs = debs.unwrap_or_else(|| lab::target_dir(root).join("packages/deb"));
    let prepared = place::prepare(root, &debs, args.previous.as_deref())?;
    let program = std::env::current_exe()?;
    tests_lab::in_lab(&program, args.keep, |record, time| {
        let log = record.dir().join("log");
        let mut site = time.step("hosts, cables, repository", &log, || {
            SitePlace::build(root, record, time, prepared)
        })?;
        let result = steps(args)
            .into_iter()
            .try_for_each(|step| carry_out(step, &mut site, record));
        if result.is_err() {
            site.keep_journals();
        }
        if result.is_ok() || !args.keep {
            site.power_off();
        }
        result
    })
}

/// The steps that the caller wants; each needs the first one.
fn steps(args: &SiteArgs) -> Vec<SiteStep> {
    let is_wanted = |step: &SiteStep| {
        *step == SiteStep::First || args.only.is_empty() || args.only.contains(step)
    };
    let all = SiteStep::value_variants().iter().copied();
    all.filter(is_wanted).collect()
}

fn carry_out(step: SiteStep, site: &mut SitePlace, record: &Record) -> Result<()> {
    let time = site.time();
    if step == SiteStep::Upgrade && !site.has_previous() {
        time.note("SKIPPED upgrade: --previous names no packages to upgrade from");
        return Ok(());
    }
    let log = record.dir().join("log");
    let title = format!("{}: {}", name(&step), step.title());
    time.step(&title, &log, || match step {
        SiteStep::First => runs::first(site),
        SiteStep::Again => runs::again(site),
        SiteStep::Check => runs::check(site),
        SiteStep::Rebuild => runs::rebuild(site),
        SiteStep::Upgrade => rollout::upgrade(site),
        SiteStep::Machine => machine::phone_home(site),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_follows_the_first_run() {
        let args = |only: &[SiteStep]| SiteArgs {
            debs: None,
            previous: None,
            keep: false,
            only: only.to_vec(),
        };
        assert_eq!(steps(&args(&[])), SiteStep::value_variants());
        assert_eq!(
            steps(&args(&[SiteStep::Machine, SiteStep::Again])),
            [SiteStep::First, SiteStep::Again, SiteStep::Machine]
        );
    }
}
