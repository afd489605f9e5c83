//! The hidden command that runs `check` of a new program without rights.

use std::convert::Infallible;
use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use clap::Args;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::{set_no_new_privs, set_pdeathsig};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, chdir, fexecve, geteuid, setgid, setgroups, setuid};

use crate::update::PROBE_COMMAND;

/// The user and the group without rights, of every distribution.
const NOBODY: u32 = 65_534;
/// Its arguments: the configuration comes by standard input.
const ARGUMENTS: [&CStr; 6] = [
    c"metalmesh-firewall",
    c"check",
    c"--file-only",
    c"--output",
    c"json",
    c"/dev/stdin",
];

/// Limits of the new program. To check a configuration needs a small part of each.
const LIMITS: [(Resource, u64); 4] = [
    (Resource::RLIMIT_AS, 4 << 30),
    (Resource::RLIMIT_CPU, 60),
    (Resource::RLIMIT_FSIZE, 64 << 20),
    (Resource::RLIMIT_NPROC, 256),
];

#[derive(Debug, Args)]
pub(super) struct ProbeProgramArgs {
    /// The new program.
    program: PathBuf,
    /// This process is the one that becomes the program.
    #[arg(long)]
    confined: bool,
}

/// Runs the new program; returns its exit code. All processes that it starts end with it.
///
/// # Errors
/// It cannot be opened or run.
pub(super) fn probe_program(args: &ProbeProgramArgs) -> Result<ExitCode> {
    if args.confined {
        match become_program(args)? {}
    }
    if geteuid().is_root() {
        // The next process is the first one of a namespace: the kernel ends all others there with it.
        possible(unshare(CloneFlags::CLONE_NEWPID)).context("cannot confine the program")?;
    }
    let ended = Command::new("/proc/self/exe")
        .args([PROBE_COMMAND, "--confined"])
        .arg(&args.program)
        .env_clear()
        .status()
        .context("cannot run a process for the program")?;
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Becomes the new program.
fn become_program(args: &ProbeProgramArgs) -> Result<Infallible> {
    let path = args.program.display();
    // Opened before the rights are given up: its directory is closed to others. It stays open in the
    // new program, because an interpreter of a script opens it again.
    let program = open(&args.program, OFlag::O_RDONLY, Mode::empty())
        .with_context(|| format!("cannot open {path}"))?;
    if geteuid().is_root() {
        give_up_rights().context("cannot give up the rights of root")?;
    }
    set_no_new_privs().context("cannot give up privileges")?;
    // After the change of the user, which takes it back.
    set_pdeathsig(Signal::SIGKILL).context("cannot end with the agent")?;
    for (resource, limit) in LIMITS {
        setrlimit(resource, limit, limit).context("cannot limit the program")?;
    }
    chdir(Path::new("/")).context("cannot leave the directory")?;
    let no_environment: [&CStr; 0] = [];
    fexecve(program, &ARGUMENTS, &no_environment).with_context(|| format!("cannot run {path}"))
}

/// A step for which this process may lack the right.
fn possible(result: nix::Result<()>) -> nix::Result<()> {
    match result {
        Err(Errno::EPERM) => Ok(()),
        other => other,
    }
}

/// Becomes nobody, without a network. Without the rights for one of them, such as in a container, the
/// new program keeps what this process has: it will run with that anyway.
fn give_up_rights() -> nix::Result<()> {
    possible(unshare(CloneFlags::CLONE_NEWNET))?;
    possible(setgroups(&[]))?;
    possible(setgid(Gid::from_raw(NOBODY)))?;
    possible(setuid(Uid::from_raw(NOBODY)))
}
