//! What a lab has made on this machine, written down before it is made.
//!
//! The file is the whole truth for taking a lab away again: also after the process that built it
//! was killed, from another process, days later.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::{cgroup, netns};

/// Where labs live. Short, because the paths of sockets below it have at most 107 bytes.
const LABS: &str = "/var/tmp/metalmesh-lab";
const STATE: &str = "state.json";
/// How long processes have to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// One process, so that a reused pid is not mistaken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    pub name: String,
    pub pid: i32,
    /// Ticks since boot, field 22 of /proc/<pid>/stat.
    pub start: u64,
}

impl ProcessId {
    /// The process of that pid now.
    ///
    /// # Errors
    /// There is none.
    pub fn of(name: &str, pid: i32) -> Result<Self> {
        let start = start_of(pid).with_context(|| format!("no process {pid}"))?;
        Ok(Self {
            name: name.to_owned(),
            pid,
            start,
        })
    }

    /// Whether it runs; a zombie does not.
    #[must_use]
    pub fn alive(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        if self.alive() {
            // It may end between the two lines: then there is nothing to signal.
            kill(Pid::from_raw(self.pid), signal).ok();
        }
    }
}

fn start_of(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets; what follows the last bracket is plain.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    fields.get(19)?.parse().ok()
}

/// What stands in the state file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct State {
    pub id: String,
    /// What starts as a chassis, or answers for one: `<program> lab chassis …`.
    pub program: PathBuf,
    /// The process that builds or runs the lab; a lab that was left up has none.
    pub owner: Option<ProcessId>,
    pub namespaces: Vec<String>,
    /// Of hosts with an init system of their own.
    #[serde(default)]
    pub control_groups: Vec<PathBuf>,
    pub processes: Vec<ProcessId>,
    /// What a user needs to use it, printed by `lab env`.
    pub environment: Vec<(String, String)>,
    /// How many machines there are, and how they are emulated.
    pub machines: usize,
    pub accelerator: String,
}

/// A lab's directory and its state file. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Record {
    dir: PathBuf,
    state: Arc<Mutex<State>>,
}

impl Record {
    /// A new lab with a fresh id, owned by this process. `program` understands what
    /// [`crate::helper`] does.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn create(program: &Path) -> Result<Self> {
        let owner = ProcessId::of("lab", i32::try_from(std::process::id())?)?;
        fs::create_dir_all(LABS)?;
        for _ in 0..16 {
            let id = hex::encode(rand::random::<[u8; 2]>());
            let dir = Path::new(LABS).join(&id);
            match fs::DirBuilder::new().mode(0o700).create(&dir) {
                Ok(()) => {
                    let program = program.to_owned();
                    let state = State {
                        id,
                        program,
                        owner: Some(owner),
                        ..State::default()
                    };
                    let record = Self {
                        dir,
                        state: Arc::new(Mutex::new(state)),
                    };
                    record.update(|_| ())?;
                    return Ok(record);
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).context(format!("cannot make {}", dir.display())),
            }
        }
        bail!("no free lab id below {LABS}")
    }

    /// Every lab on this machine, oldest first.
    ///
    /// # Errors
    /// The directory of labs cannot be read.
    pub fn all() -> Result<Vec<Self>> {
        let Ok(entries) = fs::read_dir(LABS) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for entry in entries {
            let dir = entry?.path();
            if let Ok(record) = Self::load(&dir) {
                let made = fs::metadata(&dir)?.created().ok();
                found.push((made, record));
            }
        }
        found.sort_by_key(|(made, _)| *made);
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    fn load(dir: &Path) -> Result<Self> {
        let state: State = serde_json::from_slice(&fs::read(dir.join(STATE))?)?;
        Ok(Self {
            dir: dir.to_owned(),
            state: Arc::new(Mutex::new(state)),
        })
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A file of the lab; its directory is made.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn path(&self, relative: &str) -> Result<PathBuf> {
        let path = self.dir.join(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        Ok(path)
    }

    /// Where a component logs to.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn log(&self, component: &str) -> Result<PathBuf> {
        self.path(&format!("log/{component}.log"))
    }

    #[must_use]
    pub fn state(&self) -> State {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and writes it to disk before it returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn update(&self, change: impl FnOnce(&mut State)) -> Result<()> {
        let mut state = self.lock();
        change(&mut state);
        let fresh = self.dir.join("state.json.new");
        write_private(&fresh, &serde_json::to_vec_pretty(&*state)?)?;
        fs::rename(&fresh, self.dir.join(STATE)).context("cannot write the lab's state")
    }

    /// Whether the process that ran the lab is gone without having taken it away.
    #[must_use]
    pub fn orphaned(&self) -> bool {
        self.lock()
            .owner
            .as_ref()
            .is_some_and(|owner| !owner.alive())
    }

    /// Ends every process and removes every namespace and control group; the directory with the logs stays.
    ///
    /// # Errors
    /// Something could not be removed; the rest is.
    pub fn take_down(&self) -> Result<()> {
        let state = self.state();
        end(&state.processes);
        let mut left = Vec::new();
        for namespace in state.namespaces.iter().rev() {
            // QEMU, ipmi_sim's helpers, a user's shell: whatever still lives in there.
            end(&netns::processes(namespace));
            if let Err(error) = netns::delete(namespace) {
                left.push(format!("{error:#}"));
            }
        }
        for group in state.control_groups.iter().rev() {
            if let Err(error) = cgroup::delete(group) {
                left.push(format!("{error:#}"));
            }
        }
        if !left.is_empty() {
            bail!("left behind: {}", left.join("; "));
        }
        self.update(|s| {
            s.processes.clear();
            s.namespaces.clear();
            s.control_groups.clear();
            s.owner = None;
        })
    }

    /// Removes the directory too.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn erase(&self) -> Result<()> {
        fs::remove_dir_all(&self.dir)
            .with_context(|| format!("cannot remove {}", self.dir.display()))?;
        // Only when no other lab is in it.
        drop(fs::remove_dir(LABS));
        Ok(())
    }

    /// Removes all but the logs, and the state with it: a lab that failed is no lab any more.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn keep_logs_only(&self) -> Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.file_name() == "log" {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Asks processes to end, the last started first, and kills what does not.
fn end(processes: &[ProcessId]) {
    for process in processes.iter().rev() {
        process.signal(Signal::SIGTERM);
        // A stopped process cannot end.
        process.signal(Signal::SIGCONT);
    }
    let until = Instant::now() + GRACE;
    while processes.iter().any(ProcessId::alive) {
        reap();
        if Instant::now() > until {
            for process in processes.iter().filter(|p| p.alive()) {
                eprintln!("{} does not end, killed", process.name);
                process.signal(Signal::SIGKILL);
            }
            // Nothing outlives SIGKILL for long, unless it hangs in the kernel.
            if Instant::now() > until + GRACE {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    reap();
}

/// Takes the exit of children that ended.
fn reap() {
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            break;
        }
    }
}

/// Writes a file that only its owner can read.
///
/// # Errors
/// It cannot be written.
pub fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(content)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_pid_and_start() {
        let me = ProcessId::of("me", i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(me.alive());
        assert!(
            !ProcessId {
                start: me.start + 1,
                ..me
            }
            .alive()
        );
        assert!(ProcessId::of("none", i32::MAX).is_err());
    }
}
