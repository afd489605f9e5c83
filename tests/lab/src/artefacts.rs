use std::collections::BTreeMap;
use std::path::PathBuf;

/// Programs of ours that run in a lab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    Control,
    Cli,
    Core,
    Bmc,
    Pixie,
}

/// What was built for a lab.
#[derive(Clone, Debug)]
pub struct Artefacts {
    pub programs: BTreeMap<Program, PathBuf>,
    /// What machines boot from the network.
    pub kernel: PathBuf,
    pub initrd: PathBuf,
    /// What is installed, a tar archive compressed by zstd.
    pub image: PathBuf,
    /// "sha256:<hex>" of it.
    pub image_digest: String,
    /// What outlives labs.
    pub cache: PathBuf,
}

impl Artefacts {
    /// Path of a program; empty when it was not built, which fails at its start.
    #[must_use]
    pub fn program(&self, program: Program) -> PathBuf {
        self.programs.get(&program).cloned().unwrap_or_default()
    }
}

/// What a user asked for.
#[derive(Clone, Debug)]
pub struct Options {
    pub machines: usize,
    /// Leave the lab running when a step fails.
    pub keep: bool,
    /// Leave the lab running when it is built.
    pub up: bool,
    /// Only this fault drill.
    pub drill: Option<String>,
}
