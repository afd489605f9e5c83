//! `./dev ansible`: the checks of the Ansible collection, with each ansible-core that it is for.
//!
//! Everything that they need is installed from PyPI into environments of their own, by pinned lists.
//! A check that cannot run here is printed as skipped with its reason.
//! `./dev ansible lab` is the playbook on real hosts ([`site`]).

mod checks;
mod python;
mod server;
mod site;
mod tree;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use self::checks::{CheckJob, CheckOutcome};
use self::site::AnsibleCommand;

#[derive(Debug, Args)]
pub(crate) struct AnsibleArgs {
    #[command(subcommand)]
    command: Option<AnsibleCommand>,
    /// Only with this ansible-core; repeatable
    #[arg(long, value_enum, ignore_case = true)]
    core: Vec<CoreVersion>,
    /// Only this check; repeatable
    #[arg(long, value_enum, ignore_case = true)]
    only: Vec<AnsibleCheck>,
    /// Only this integration target; repeatable
    #[arg(long = "target")]
    targets: Vec<String>,
    /// The server of integration targets [default: the debug build]
    #[arg(long, value_name = "FILE")]
    metalmeshd: Option<PathBuf>,
}

/// A version of ansible-core that the collection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CoreVersion {
    /// Debian 13 has it.
    #[value(name = "2.19")]
    V19,
    /// The newest one.
    #[value(name = "2.21")]
    V21,
}

/// A check of the collection, in the order in which they run: the quick ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnsibleCheck {
    /// Unit tests, with pytest
    Units,
    /// ansible-lint, profile production
    Lint,
    /// antsibull-docs and antsibull-changelog
    Docs,
    /// Build the collection's archive and install it offline
    Build,
    /// ansible-test sanity
    Sanity,
    /// Integration targets against a metalmeshd of their own
    Integration,
}

impl AnsibleCheck {
    /// `true` if the check says something else with another ansible-core. The others run with the newest
    /// one alone.
    fn depends_on_core(self) -> bool {
        matches!(self, Self::Units | Self::Sanity | Self::Integration)
    }
}

pub(crate) fn run(root: &Path, args: &AnsibleArgs) -> Result<()> {
    match &args.command {
        Some(AnsibleCommand::Lab(lab)) => site::run(root, lab),
        None => run_checks(root, args),
    }
}

fn run_checks(root: &Path, args: &AnsibleArgs) -> Result<()> {
    let tree = tree::assemble(root)?;
    let mut rows = Vec::new();
    for core in chosen(&args.core) {
        let checks = chosen(&args.only);
        let checks = checks
            .into_iter()
            .filter(|check| core == CoreVersion::V21 || check.depends_on_core());
        let environment = python::environment(root, core)?;
        for check in checks {
            let outcome = match &environment {
                None => CheckOutcome::Skipped(python::missing(core)),
                Some(environment) => {
                    eprintln!("== ansible-core {}: {}", name(&core), name(&check));
                    let job = CheckJob {
                        root,
                        tree: &tree,
                        environment,
                        targets: &args.targets,
                        metalmeshd: args.metalmeshd.as_deref(),
                    };
                    job.run(check)?
                }
            };
            rows.push((core, check, outcome));
        }
    }
    for (core, check, outcome) in &rows {
        println!("ansible-core {} {:<12} {outcome}", name(core), name(check));
    }
    let failed = rows
        .iter()
        .any(|(_, _, outcome)| *outcome == CheckOutcome::Failed);
    if failed {
        bail!("checks of the Ansible collection failed");
    }
    Ok(())
}

/// What the caller named; everything without a name.
fn chosen<T: ValueEnum>(given: &[T]) -> Vec<T> {
    match given {
        [] => T::value_variants().to_vec(),
        given => given.to_vec(),
    }
}

/// The name of a value on the command line.
fn name<T: ValueEnum>(value: &T) -> String {
    let known = value.to_possible_value();
    known.map_or_else(String::new, |known| known.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_named_is_everything() {
        assert_eq!(chosen::<CoreVersion>(&[]).len(), 2);
        assert_eq!(chosen(&[CoreVersion::V19]), [CoreVersion::V19]);
        assert_eq!(name(&CoreVersion::V21), "2.21");
        assert_eq!(name(&AnsibleCheck::Integration), "integration");
    }
}
