//! The hidden command that runs `check` of a new program without rights.
//!
//! It is three processes, each of which ends with the one before. The second is the first one of a
//! namespace of processes: the kernel ends all others there with it. The third becomes the program, as
//! another user, so that the program cannot reach the second.

use std::convert::Infallible;
use std::ffi::CStr;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use clap::Args;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, chdir, fexecve, geteuid, setgid, setgroups, setuid};

use crate::probe::PROBE_COMMAND;
use crate::process::{end_with, own_id};

/// The user and the group without rights, of every distribution.
const NOBODY: u32 = 65_534;
/// Limits of the new program. To check a configuration needs a small part of each.
const LIMITS: [(Resource, u64); 4] = [
    (Resource::RLIMIT_AS, 4 << 30),
    (Resource::RLIMIT_CPU, 60),
    (Resource::RLIMIT_FSIZE, 16 << 20),
    (Resource::RLIMIT_NPROC, 256),
];
/// Places that every user of a host may write into. The new program sees small ones of its own there.
const SHARED_PLACES: [&str; 5] = ["/dev/shm", "/dev/mqueue", "/tmp", "/var/tmp", "/run/lock"];
/// Limits of each of its own places: what is kept there is memory of the host.
const OWN_PLACE: &str = "size=16m,nr_inodes=1k,mode=1777";

/// The part of the work that a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ProbePart {
    /// Begins a namespace of processes.
    Begin,
    /// Is its first process.
    Guard,
    /// Becomes the program.
    Become,
}

/// Arguments of the hidden command [`PROBE_COMMAND`].
#[derive(Clone, Debug, Args)]
pub struct ProbeProgramArgs {
    /// The new program.
    program: PathBuf,
    /// Process that started this one, which ends with it.
    #[arg(long, value_name = "ID")]
    parent: String,
    /// Part of the work that this process does.
    #[arg(long, value_enum, default_value = "begin")]
    part: ProbePart,
}

/// Runs the new program with these arguments, of which the first one is its name; returns its exit code.
/// The configuration comes by standard input. All processes that it starts end with it, and with the one
/// that runs it.
///
/// # Errors
/// It cannot be opened or run.
pub fn probe_program(args: &ProbeProgramArgs, arguments: &[&CStr]) -> Result<ExitCode> {
    match args.part {
        ProbePart::Begin => begin(args),
        ProbePart::Guard => guard(args),
        ProbePart::Become => match become_program(args, arguments)? {},
    }
}

fn begin(args: &ProbeProgramArgs) -> Result<ExitCode> {
    end_with(&args.parent).context("cannot end with the agent")?;
    if geteuid().is_root() {
        possible(unshare(CloneFlags::CLONE_NEWPID)).context("cannot confine the program")?;
    }
    run_part("guard", &args.program)
}

/// The first process of the namespace.
fn guard(args: &ProbeProgramArgs) -> Result<ExitCode> {
    // Before anything else: from here on nothing outlives the agent.
    end_with(&args.parent).context("cannot end with the agent")?;
    // Opened before its place may be covered. The next process opens it again by the descriptor, which
    // it inherits.
    let program = open_program(&args.program)?;
    if geteuid().is_root() {
        cover_shared_places().context("cannot cover the places that all users share")?;
    }
    let descriptor = format!("/proc/self/fd/{}", program.as_raw_fd());
    run_part("become", Path::new(&descriptor))
}

/// Runs a part in a process of its own; returns its exit code.
fn run_part(part: &str, program: &Path) -> Result<ExitCode> {
    let own = own_id().context("cannot read /proc")?;
    let ended = Command::new("/proc/self/exe")
        .args([PROBE_COMMAND, "--parent", &own, "--part", part])
        .arg(program)
        .env_clear()
        .status()
        .context("cannot run a process for the program")?;
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Becomes the new program.
fn become_program(args: &ProbeProgramArgs, arguments: &[&CStr]) -> Result<Infallible> {
    // Opened before the rights are given up: its directory is closed to others. It stays open in the
    // new program, because an interpreter of a script opens it again.
    let program = open_program(&args.program)?;
    if geteuid().is_root() {
        give_up_rights().context("cannot give up the rights of root")?;
    }
    set_no_new_privs().context("cannot give up privileges")?;
    // After the change of the user, which takes it back. The program may take it back as well.
    end_with(&args.parent).context("cannot end with the agent")?;
    for (resource, limit) in LIMITS {
        setrlimit(resource, limit, limit).context("cannot limit the program")?;
    }
    chdir(Path::new("/")).context("cannot leave the directory")?;
    let no_environment: [&CStr; 0] = [];
    fexecve(program, arguments, &no_environment)
        .with_context(|| format!("cannot run {}", args.program.display()))
}

/// Opens the program. Processes that this one starts inherit the descriptor.
fn open_program(path: &Path) -> Result<std::os::fd::OwnedFd> {
    open(path, OFlag::O_RDONLY, Mode::empty())
        .with_context(|| format!("cannot open {}", path.display()))
}

/// A step for which this process may lack the right.
fn possible(result: nix::Result<()>) -> nix::Result<()> {
    match result {
        Err(Errno::EPERM | Errno::EACCES) => Ok(()),
        other => other,
    }
}

/// Puts empty places over those that the program could leave something in. They end with the namespace.
/// Without the rights for that, such as in a container, they stay as they are.
fn cover_shared_places() -> nix::Result<()> {
    let none: Option<&str> = None;
    let own = unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC);
    // Without this the host would get the mounts as well.
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    match own.and_then(|()| mount(none, "/", none, private, none)) {
        Err(Errno::EPERM | Errno::EACCES) => return Ok(()),
        other => other?,
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let kind = Some("tmpfs");
    for place in SHARED_PLACES {
        match mount(kind, place, kind, flags, Some(OWN_PLACE)) {
            // Not every host has each of them.
            Err(Errno::ENOENT) => {}
            mounted => possible(mounted)?,
        }
    }
    Ok(())
}

/// Becomes nobody, without a network. Without the rights for one of them, such as in a container, the
/// new program keeps what this process has: it will run with that anyway.
fn give_up_rights() -> nix::Result<()> {
    possible(unshare(CloneFlags::CLONE_NEWNET))?;
    possible(setgroups(&[]))?;
    possible(setgid(Gid::from_raw(NOBODY)))?;
    possible(setuid(Uid::from_raw(NOBODY)))
}
