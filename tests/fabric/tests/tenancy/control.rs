//! `metalmeshd`, and the management network over which agents and machines reach it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use control_client::{Client, ClientSettings};
use proto_public::api::v2::VersionServiceGetRequest;

use super::daemons::ip;
use super::wait::found;

/// Address of control, for API and mesh.
pub(crate) const ADDRESS: &str = "10.99.0.1:4443";
/// The bridge of the management network, with control's address.
const BRIDGE: &str = "mgmt";
const PROGRAM: &str = "/usr/bin/metalmeshd";

/// A control node. Process, data and network go away with the value.
pub(crate) struct Control {
    dir: tempfile::TempDir,
    child: Option<Child>,
}

impl Control {
    pub(crate) async fn start() -> Self {
        ip(&format!("link add {BRIDGE} type bridge"));
        ip(&format!("addr add 10.99.0.1/24 dev {BRIDGE}"));
        ip(&format!("link set {BRIDGE} up"));
        let dir = tempfile::tempdir().unwrap();
        let config = "[api]\ncalls_per_minute = 0\n";
        fs::write(dir.path().join("metalmeshd.toml"), config).unwrap();
        let mut control = Self { dir, child: None };
        control.begin().await;
        control
    }

    /// Starts the program, and waits until it answers.
    pub(crate) async fn begin(&mut self) {
        let log = File::options().create(true).append(true).open(self.log());
        let log = log.unwrap();
        let child = Command::new(PROGRAM)
            .arg("--config")
            .arg(self.place("metalmeshd.toml"))
            .arg("--data-dir")
            .arg(self.place("data"))
            .args(["--api-listen", ADDRESS, "--mesh-listen", ADDRESS])
            .arg("--token-file")
            .arg(self.place("admin-token"))
            .env("METALMESH_LOG", "warn,openraft=error")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.child = Some(child.unwrap());
        let answers = found(async || {
            let client = self.admin()?;
            let request = VersionServiceGetRequest {};
            client.version().get(request).await.ok().map(drop)
        });
        if answers.await.is_none() {
            self.show();
            panic!("metalmeshd does not answer");
        }
    }

    /// kill -9.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }

    /// A client with the first administrator's token.
    pub(crate) fn admin(&self) -> Option<Client> {
        let token = fs::read_to_string(self.place("admin-token")).ok()?;
        let settings = ClientSettings::new(format!("http://{ADDRESS}")).with_token(token.trim());
        Client::new(&settings).ok()
    }

    /// A place for files of the site.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Prints the end of the log, for a failure.
    pub(crate) fn show(&self) {
        show_log("metalmeshd", &self.log());
    }

    fn log(&self) -> PathBuf {
        self.place("metalmeshd.log")
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.kill();
        ip(&format!("link del {BRIDGE}"));
    }
}

/// Connects a namespace to the management network.
pub(crate) fn connect(namespace: &str, number: u8) {
    ip(&format!(
        "link add mg{number} type veth peer name mgmt netns {namespace}"
    ));
    ip(&format!("link set mg{number} master {BRIDGE} up"));
    ip(&format!(
        "-n {namespace} addr add 10.99.0.{number}/24 dev mgmt"
    ));
    ip(&format!("-n {namespace} link set mgmt up"));
}

/// Prints the last lines of a log.
pub(crate) fn show_log(name: &str, log: &Path) {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines[lines.len().saturating_sub(60)..] {
        println!("{name}: {line}");
    }
}
