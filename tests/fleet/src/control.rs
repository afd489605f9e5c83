//! The control node: a real `metalmeshd`, as a process of its own.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use control_client::{Client, ClientSettings};
use proto_public::api::v2::VersionServiceGetRequest;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use crate::procfs;

/// How long a start may take.
const START: Duration = Duration::from_secs(60);
/// How long the end of a killed process is waited for.
const END: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// Bytes of its log that an error repeats.
const TAIL: usize = 2000;

/// Time and memory that all its lives together took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_s: f64,
    pub(crate) rss_mib: f64,
    pub(crate) rss_peak_mib: f64,
}

/// A control node and its data; both are gone when it is dropped.
#[derive(Debug)]
pub(crate) struct Control {
    program: PathBuf,
    dir: TempDir,
    api: String,
    pub(crate) mesh: String,
    child: Option<Child>,
    /// What earlier lives took.
    before: Usage,
}

impl Control {
    /// Starts a new one.
    ///
    /// The kernel kills it when the thread that started it ends: only the main thread may start it.
    pub(crate) async fn start(program: Option<PathBuf>, otlp: Option<&str>) -> Result<Self> {
        let program = program.map_or_else(beside, Ok)?;
        ensure!(
            program.exists(),
            "{} is not there: build it with cargo build --package control-server, or name it with \
             --metalmeshd",
            program.display()
        );
        let api = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mesh = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut control = Self {
            program,
            dir: tempfile::Builder::new()
                .prefix("metalmesh-fleet-")
                .tempdir()?,
            api: api.to_string(),
            mesh: mesh.to_string(),
            child: None,
            before: Usage::default(),
        };
        let traces = otlp.map(|url| format!("[traces]\nurl = {url:?}\n"));
        fs::write(control.config(), traces.unwrap_or_default())?;
        control.again().await?;
        Ok(control)
    }

    /// Starts it on the data that is there, and waits until it answers.
    pub(crate) async fn again(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&self.program)
            .arg("--config")
            .arg(self.config())
            .arg("--data-dir")
            .arg(self.dir.path().join("data"))
            .args(["--api-listen", &self.api, "--mesh-listen", &self.mesh])
            .arg("--token-file")
            .arg(self.token_file())
            .env("METALMESH_LOG", "warn,openraft=error")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("cannot run setpriv (package util-linux)")?;
        self.child = Some(child);
        let end = Instant::now() + START;
        while !self.answers().await {
            self.check()?;
            ensure!(
                Instant::now() < end,
                "metalmeshd does not answer; its log ends: {}",
                self.tail()
            );
            sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    async fn answers(&self) -> bool {
        let Ok(client) = self.admin() else {
            return false;
        };
        client
            .version()
            .get(VersionServiceGetRequest {})
            .await
            .is_ok()
    }

    /// kill -9.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.before = self.usage()?;
        if let Some(mut child) = self.child.take() {
            child.kill().await?;
        }
        Ok(())
    }

    /// Ends it in order.
    pub(crate) async fn end(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        let pid = child.id().context("metalmeshd ended already")?;
        let asked = Command::new("kill").arg(pid.to_string()).status().await?;
        ensure!(asked.success(), "cannot end metalmeshd");
        let ended = tokio::time::timeout(START, child.wait()).await;
        ended.context("metalmeshd does not end")??;
        Ok(())
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.child.is_none()
    }

    /// Fails when it has ended without being killed.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.as_mut().map(Child::try_wait) {
            Some(Ok(Some(status))) => bail!("metalmeshd ended ({status}): {}", self.tail()),
            _ => Ok(()),
        }
    }

    /// What it took so far.
    pub(crate) fn usage(&self) -> Result<Usage> {
        let Some(pid) = self.child.as_ref().and_then(Child::id) else {
            return Ok(self.before);
        };
        let [now, peak] = procfs::rss_mib(pid)?;
        Ok(Usage {
            cpu_s: self.before.cpu_s + procfs::cpu_s(pid)?,
            rss_mib: now,
            rss_peak_mib: self.before.rss_peak_mib.max(peak),
        })
    }

    /// A client with the first administrator's token.
    pub(crate) fn admin(&self) -> Result<Client> {
        let token = fs::read_to_string(self.token_file()).context("no admin token yet")?;
        self.client(token.trim())
    }

    pub(crate) fn client(&self, token: &str) -> Result<Client> {
        let settings = ClientSettings::new(format!("http://{}", self.api)).with_token(token);
        Ok(Client::new(&settings)?)
    }

    /// Where agents keep their state.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn log(&self) -> PathBuf {
        self.place("metalmeshd.log")
    }

    fn config(&self) -> PathBuf {
        self.place("metalmeshd.toml")
    }

    fn token_file(&self) -> PathBuf {
        self.place("admin-token")
    }

    /// The last that it logged.
    fn tail(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let start = log.len().saturating_sub(TAIL);
        String::from_utf8_lossy(log.get(start..).unwrap_or_default()).into_owned()
    }
}

impl Drop for Control {
    /// Waits for its end, as its files are about to be removed.
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        let end = Instant::now() + END;
        if child.start_kill().is_ok() {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < end {
                std::thread::sleep(LOOK_AGAIN);
            }
        }
    }
}

/// Where cargo puts the program when it is built with this one, which may be a test.
fn beside() -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let dir = this.parent().context("this program is nowhere")?;
    let built = dir
        .parent()
        .filter(|_| dir.ends_with("deps"))
        .unwrap_or(dir);
    Ok(built.join("metalmeshd"))
}
