//! The agent's program as its service manager runs it.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use tokio::process::{Child, Command};
use tokio::task::JoinSet;

/// Starts the installed program again whenever it ends. It ends with this value.
pub(crate) struct Supervised {
    codes: Arc<Mutex<Vec<Option<i32>>>>,
    running: Arc<Mutex<Option<u32>>>,
    _tasks: JoinSet<()>,
}

impl Supervised {
    pub(crate) fn start(program: &'static str, config: &Path, state: &Path) -> Self {
        let codes = Arc::<Mutex<Vec<_>>>::default();
        let running = Arc::<Mutex<Option<u32>>>::default();
        let mut tasks = JoinSet::new();
        let (config, state) = (config.to_owned(), state.to_owned());
        let (ended, started) = (Arc::clone(&codes), Arc::clone(&running));
        tasks.spawn(async move {
            loop {
                let mut child = start(program, &config, &state);
                *started.lock().unwrap() = child.id();
                let status = child.wait().await.unwrap();
                ended.lock().unwrap().push(status.code());
            }
        });
        Self {
            codes,
            running,
            _tasks: tasks,
        }
    }

    /// Exit codes so far.
    pub(crate) fn codes(&self) -> Vec<Option<i32>> {
        self.codes.lock().unwrap().clone()
    }

    /// File of the program that runs.
    pub(crate) fn program(&self) -> PathBuf {
        let id = self.running.lock().unwrap().unwrap();
        std::fs::read_link(format!("/proc/{id}/exe")).unwrap()
    }
}

fn start(program: &str, config: &Path, state: &Path) -> Child {
    Command::new(program)
        .args(["run", "--config"])
        .arg(config)
        .arg("--state-dir")
        .arg(state)
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}
