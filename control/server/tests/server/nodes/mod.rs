//! Nodes of a cluster as processes: one node here, the cluster and its writer beside it.

mod cluster;
mod writer;

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use control_client::{Client, ClientSettings};
use proto_identity::Key;

use crate::daemon::{PATIENCE, POLL, program};

pub(crate) use cluster::{Cluster, eventually};

pub(crate) const TENANT: &str = "metal-stack";

/// One node: its files, its ports, and the process while it runs.
pub(crate) struct Node {
    pub(crate) dir: PathBuf,
    pub(crate) api: String,
    /// Where agents call.
    pub(crate) mesh: String,
    /// What it runs; taken by the next start.
    pub(crate) program: PathBuf,
    pub(crate) child: Option<Child>,
    /// Lines of its stdout so far.
    said: Arc<Mutex<Vec<String>>>,
    reader: Option<JoinHandle<()>>,
}

pub(crate) fn free_tcp() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

pub(crate) fn free_udp() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

impl Node {
    /// Writes the configuration of a node in `dir`.
    pub(crate) fn new(dir: PathBuf, join: bool, more: &str) -> Self {
        let node = Self::alone(dir, more);
        node.give_peers(join);
        node
    }

    /// The same for a node that knows no peers.
    pub(crate) fn alone(dir: PathBuf, more: &str) -> Self {
        std::fs::create_dir_all(&dir).unwrap();
        let api = format!("127.0.0.1:{}", free_tcp());
        let mesh = format!("127.0.0.1:{}", free_udp());
        let config = format!(
            "data_dir = {:?}\n[api]\nlisten = \"{api}\"\n[mesh]\nlisten = \"{mesh}\"\n{more}\n",
            dir.join("data")
        );
        std::fs::write(dir.join("node.toml"), config).unwrap();
        Self::configured(dir, &api, &mesh)
    }

    /// A node whose configuration is `node.toml` in `dir` already, with these addresses.
    pub(crate) fn configured(dir: PathBuf, api: &str, mesh: &str) -> Self {
        Self {
            dir,
            api: format!("http://{api}"),
            mesh: mesh.to_owned(),
            program: program().into(),
            child: None,
            said: Arc::default(),
            reader: None,
        }
    }

    /// Adds `[peers]` to the configuration.
    pub(crate) fn give_peers(&self, join: bool) {
        let section = format!(
            "[peers]\nlisten = \"127.0.0.1:{}\"\njoin = {join}\n",
            free_udp()
        );
        let path = self.dir.join("node.toml");
        let config = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, config + &section).unwrap();
    }

    pub(crate) fn command(&self, subcommand: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(subcommand)
            .arg("--config")
            .arg(self.dir.join("node.toml"));
        command
    }

    pub(crate) fn init(&self) -> Output {
        let context = self.dir.join("context.yaml");
        let mut command = self.command(&["init"]);
        command.arg("--context-file").arg(context).output().unwrap()
    }

    pub(crate) fn start(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("log"))
            .unwrap();
        let mut child = self
            .command(&[])
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let said = Arc::new(Mutex::new(Vec::new()));
        self.said = said.clone();
        self.reader = Some(std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                said.lock().unwrap().push(line);
            }
        }));
        self.child = Some(child);
    }

    /// The rest of the first line that begins so.
    pub(crate) fn wait_said(&mut self, begin: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.said.lock().unwrap().clone();
            if let Some(rest) = said.iter().find_map(|line| line.strip_prefix(begin)) {
                return rest.to_owned();
            }
            let ended = self.child.as_mut().and_then(|c| c.try_wait().unwrap());
            let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(ended.is_none(), "the node ended: {ended:?}\n{log}");
            assert!(Instant::now() < until, "never said {begin:?}\n{log}");
            std::thread::sleep(POLL);
        }
    }

    /// The key of a node that waits to join.
    pub(crate) fn key(&mut self) -> String {
        let said = self.wait_said("waiting key=");
        said.split(' ').next().unwrap().to_owned()
    }

    /// The key by which it joined.
    pub(crate) fn fingerprint(&self) -> String {
        let pem = std::fs::read_to_string(self.dir.join("data/peer.key")).unwrap();
        Key::from_pem(&pem).unwrap().fingerprint()
    }

    pub(crate) fn give_ticket(&self, ticket: &str) {
        std::fs::write(self.dir.join("data/node.ticket"), ticket).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
    }

    pub(crate) fn client(&self, token: &str) -> Client {
        Client::new(&ClientSettings::new(&self.api).with_token(token.to_owned())).unwrap()
    }

    /// Waits until its log has `text`, in all its runs together so many times.
    pub(crate) fn wait_logged(&self, text: &str, times: usize) {
        let until = Instant::now() + PATIENCE;
        while self.log().matches(text).count() < times {
            assert!(
                Instant::now() < until,
                "never logged {text:?}\n{}",
                self.log()
            );
            std::thread::sleep(POLL);
        }
    }

    /// SIGTERM; whether it ended well.
    pub(crate) fn terminate(&mut self) -> bool {
        let pid = self.child.as_ref().unwrap().id().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status();
        assert!(told.unwrap().success());
        self.wait_ended()
    }

    /// Waits until it has ended by itself; whether it calls that a success.
    pub(crate) fn wait_ended(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            let ended = self.child.as_mut().and_then(|c| c.try_wait().unwrap());
            if let Some(status) = ended {
                self.kill();
                return status.success();
            }
            assert!(Instant::now() < until, "it goes on\n{}", self.log());
            std::thread::sleep(POLL);
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}
