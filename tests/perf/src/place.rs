//! What every bench takes: where its data lies, and what it prints.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use tempfile::TempDir;

/// What is printed at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// A table, then one line of JSON
    Table,
    /// The line of JSON alone
    Json,
}

/// A directory that goes with the bench: in `parent`, or in the build directory, which is on the
/// disk that is meant to be measured.
pub(crate) fn make(bench: &str, parent: Option<&Path>) -> Result<TempDir> {
    let parent = match parent {
        Some(parent) => parent.to_owned(),
        None => beside_the_program()?,
    };
    let mut place = tempfile::Builder::new();
    let place = place.prefix(&format!("bench-{bench}-")).tempdir_in(&parent);
    place.with_context(|| format!("cannot make a directory in {}", parent.display()))
}

fn beside_the_program() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().map(Path::to_owned);
    folder.context("the program is in no directory")
}
