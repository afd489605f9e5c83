//! A running metalmeshd.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use control_client::{Client, ClientSettings, ServerContexts};

use crate::wall_clock::WallClock;

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two looks at a condition, which leaves the processors to the one that is waited for.
pub(crate) const POLL: Duration = Duration::from_millis(10);

/// The program.
pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_metalmeshd")
}

/// The process, killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) api: String,
    /// Where Ironic's API is, if it is served.
    pub(crate) ironic: Option<String>,
    pub(crate) started_in: Duration,
    config: PathBuf,
    log: PathBuf,
}

impl Daemon {
    /// Starts on free ports of loopback with the data in `dir`.
    pub(crate) fn start(dir: &Path) -> Self {
        Self::start_at(dir, "127.0.0.1:0", &[])
    }

    /// The same with the API at an address, and more flags.
    pub(crate) fn start_at(dir: &Path, api: &str, flags: &[&str]) -> Self {
        let data = dir.join("data");
        let data = ["--data-dir", data.to_str().unwrap()];
        Self::launch(dir, api, &[&data, flags].concat(), &[])
    }

    /// The same on free ports, by a clock that the test moves.
    pub(crate) fn start_by(clock: &WallClock, dir: &Path) -> Self {
        Self::launch(dir, "127.0.0.1:0", &[], &clock.environment())
    }

    /// The same with a temporary data directory, as `--dev` makes it when none is named.
    pub(crate) fn start_temporary(dir: &Path) -> Self {
        Self::launch(dir, "127.0.0.1:0", &[], &[])
    }

    /// Starts it with a context file and a log in `dir`.
    fn launch(dir: &Path, api: &str, flags: &[&str], variables: &[(&str, &Path)]) -> Self {
        let config = dir.join("config.yaml");
        let log = dir.join("metalmeshd.log");
        let began = Instant::now();
        let mut child = Command::new(program())
            .arg("--dev")
            .args(["--api-listen", api, "--mesh-listen", "127.0.0.1:0"])
            .args(flags)
            .arg("--context-file")
            .arg(&config)
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let ready = stdout
            .lines()
            .map_while(Result::ok)
            .find(|line| line.starts_with("ready "));
        let ready = ready.expect("metalmeshd ended before it was ready");
        let address = |part: &str| {
            let mut parts = ready.split(' ');
            let found = parts.find_map(|found| found.strip_prefix(part)?.strip_prefix('='));
            found.map(|address| format!("http://{address}"))
        };
        Self {
            child,
            api: address("api").unwrap(),
            ironic: address("ironic"),
            started_in: began.elapsed(),
            config,
            log,
        }
    }

    /// What it logged since this start.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// The context file with the admin token.
    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    pub(crate) fn admin_token(&self) -> String {
        let contexts = ServerContexts::load(&self.config).unwrap();
        let context = contexts.current().unwrap();
        context.api_token.as_ref().unwrap().expose().to_owned()
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&ClientSettings::new(&self.api).with_token(self.admin_token())).unwrap()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &pid])
                .status()
                .unwrap()
                .success()
        );
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "metalmeshd does not stop");
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
