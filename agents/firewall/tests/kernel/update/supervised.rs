//! The agent as its service manager runs it.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agents_update::UpdateStatus;

use crate::namespace::POLL;
use crate::site::Site;

pub(crate) const DEADLINE: Duration = Duration::from_secs(180);
/// Bytes of a seal before the content of a state file.
const SEAL_LEN: usize = 40;

/// The agent of a site, in its files.
#[derive(Clone)]
pub(crate) struct AgentHome {
    namespace: String,
    folder: PathBuf,
}

impl AgentHome {
    pub(crate) fn new(site: &Site, folder: &Path) -> Self {
        Self {
            namespace: site.router.0.clone(),
            folder: folder.to_owned(),
        }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Replaces the configuration as a whole.
    pub(crate) fn configure(&self, text: &str) {
        let new = self.folder.join("config.new");
        fs::write(&new, text).unwrap();
        fs::rename(&new, self.folder.join("config.yaml")).unwrap();
    }

    /// Starts the installed program once.
    pub(crate) fn start(&self) -> Child {
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.namespace])
            .arg(env!("CARGO_BIN_EXE_metalmesh-firewall"))
            .args(["run", "--no-rules-file", "--config"])
            .arg(self.folder.join("config.yaml"))
            .arg("--state-dir")
            .arg(self.state())
            .env("NOTIFY_SOCKET", self.notify())
            .stdout(Stdio::null());
        command.spawn().unwrap()
    }

    /// Runs a command about updates.
    pub(crate) fn update(&self, command: &str) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_metalmesh-firewall"))
            .args(["update", command, "--state-dir"])
            .arg(self.state())
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn notify(&self) -> PathBuf {
        self.folder.join("notify")
    }

    /// Hears when an agent is ready.
    pub(crate) fn listen(&self) -> UnixDatagram {
        let socket = UnixDatagram::bind(self.notify()).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        socket
    }

    /// The status that the agent has kept.
    pub(crate) fn status(&self) -> Option<UpdateStatus> {
        let bytes = fs::read(self.state().join("update-status.json")).ok()?;
        serde_json::from_slice(bytes.get(SEAL_LEN..)?).ok()
    }

    /// Waits for a status.
    pub(crate) fn await_status(&self, what: &str, is_it: impl Fn(&UpdateStatus) -> bool) {
        let until = Instant::now() + DEADLINE;
        loop {
            let status = self.status();
            if status.as_ref().is_some_and(&is_it) {
                return;
            }
            assert!(Instant::now() < until, "{what}: {status:?}");
            std::thread::sleep(POLL);
        }
    }

    /// Names of the programs in the state directory.
    pub(crate) fn programs(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.state().join("programs")) else {
            return Vec::new();
        };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }
}

/// The process that runs now, and the exit codes of those before it.
#[derive(Default)]
struct Processes {
    running: Option<Child>,
    codes: Vec<Option<i32>>,
    is_stopped: bool,
}

/// Starts the installed program again whenever it ends.
pub(crate) struct Supervised {
    processes: Arc<Mutex<Processes>>,
    thread: Option<JoinHandle<()>>,
}

impl Supervised {
    pub(crate) fn start(home: &AgentHome) -> Self {
        let processes = Arc::new(Mutex::new(Processes::default()));
        let (shared, home) = (Arc::clone(&processes), home.clone());
        let thread = std::thread::spawn(move || {
            loop {
                let mut processes = shared.lock().unwrap();
                if processes.is_stopped {
                    return;
                }
                match &mut processes.running {
                    None => processes.running = Some(home.start()),
                    Some(child) => {
                        if let Some(status) = child.try_wait().unwrap() {
                            processes.codes.push(status.code());
                            processes.running = None;
                        }
                    }
                }
                drop(processes);
                std::thread::park_timeout(Duration::from_millis(20));
            }
        });
        Self {
            processes,
            thread: Some(thread),
        }
    }

    /// Exit codes so far.
    pub(crate) fn codes(&self) -> Vec<Option<i32>> {
        self.processes.lock().unwrap().codes.clone()
    }

    /// File of the program that runs.
    pub(crate) fn program(&self) -> PathBuf {
        let processes = self.processes.lock().unwrap();
        let id = processes.running.as_ref().unwrap().id();
        fs::read_link(format!("/proc/{id}/exe")).unwrap()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let running = {
            let mut processes = self.processes.lock().unwrap();
            processes.is_stopped = true;
            processes.running.take()
        };
        if let Some(mut child) = running {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
