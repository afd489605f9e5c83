//! The published headscale as a process of its own on loopback, and nodes that come into it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::daemon::{PATIENCE, POLL};
use crate::go::Program;

const MODULE: &str = "github.com/juanfont/headscale";
const VERSION: &str = "v0.28.0";
const HEADSCALE: Program = Program {
    module: MODULE,
    version: VERSION,
    package: "github.com/juanfont/headscale/cmd/headscale",
    own: None,
};
/// With the libraries of Tailscale's that this headscale is built with.
const NODE: Program = Program {
    own: Some("vpn_node"),
    ..HEADSCALE
};

/// An address that nobody has.
pub(crate) fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// A headscale with its data in a directory.
pub(crate) struct Headscale {
    program: PathBuf,
    node: PathBuf,
    dir: PathBuf,
    address: String,
    child: Option<Child>,
}

impl Headscale {
    /// Started; none where it cannot be had.
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        let (program, node) = (HEADSCALE.or_skipped()?, NODE.or_skipped()?);
        let dir = dir.join("headscale");
        fs::create_dir_all(&dir).unwrap();
        let address = free_address();
        // It wants a relay, although none is used.
        let relay = "regions: {900: {regionid: 900, regioncode: test, regionname: test, nodes: \
                     [{name: 900a, regionid: 900, hostname: 127.0.0.1, derpport: 9}]}}\n";
        fs::write(dir.join("relay.yaml"), relay).unwrap();
        let at = |name: &str| dir.join(name).display().to_string();
        let config = format!(
            "server_url: http://{address}\nlisten_addr: {address}\nmetrics_listen_addr: ''\n\
             grpc_listen_addr: ''\nnoise: {{private_key_path: {}}}\n\
             prefixes: {{v4: 100.64.0.0/10, v6: 'fd7a:115c:a1e0::/48', allocation: sequential}}\n\
             derp: {{server: {{enabled: false}}, urls: [], paths: [{}], \
             auto_update_enabled: false}}\ndisable_check_updates: true\n\
             database: {{type: sqlite, sqlite: {{path: {}}}}}\n\
             dns: {{magic_dns: false, base_domain: vpn.test, override_local_dns: false}}\n\
             unix_socket: {}\nunix_socket_permission: '0700'\nlogtail: {{enabled: false}}\n\
             policy: {{mode: database}}\n",
            at("noise.key"),
            at("relay.yaml"),
            at("db.sqlite"),
            at("socket")
        );
        fs::write(dir.join("config.yaml"), config).unwrap();
        let mut headscale = Self {
            program,
            node,
            dir,
            address,
            child: None,
        };
        headscale.up();
        Some(headscale)
    }

    /// Starts it again, with what it had.
    pub(crate) fn up(&mut self) {
        let log = File::create(self.dir.join("log")).unwrap();
        let mut serve = self.command(&["serve"]);
        serve.stdout(Stdio::null()).stderr(log);
        self.child = Some(serve.spawn().unwrap());
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(&self.address).is_err() {
            let log = fs::read_to_string(self.dir.join("log")).unwrap();
            assert!(Instant::now() < until, "headscale does not start:\n{log}");
            std::thread::sleep(POLL);
        }
    }

    /// Ends it.
    pub(crate) fn down(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            let _gone = child.kill();
            let _reaped = child.wait();
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .arg("--config")
            .arg(self.dir.join("config.yaml"));
        command
    }

    fn told(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The part of metalmeshd's configuration, with a new key to the API or a given one.
    pub(crate) fn section(&self, key: Option<&str>) -> PathBuf {
        let made = || self.told(&["apikeys", "create"]);
        let key = key.map_or_else(made, str::to_owned);
        let file = self.dir.join("api.key");
        fs::write(&file, format!("{}\n", key.trim())).unwrap();
        let config = self.dir.join("metalmeshd.toml");
        let section = format!("[vpn]\nurl = {:?}\napi_key_file = {file:?}\n", self.url());
        fs::write(&config, section).unwrap();
        config
    }

    /// Names of the nodes, as its own command line tells them.
    pub(crate) fn nodes(&self) -> Vec<String> {
        let told = self.told(&["nodes", "list", "--output", "json"]);
        let nodes: Value = serde_json::from_str(&told).unwrap();
        let nodes = nodes.as_array().cloned().unwrap_or_default();
        let name = |node: &Value| node["given_name"].as_str().unwrap().to_owned();
        nodes.iter().map(name).collect()
    }

    /// A node comes in by a key, or is told why not.
    pub(crate) fn node(&self, name: &str, key: &str) -> Result<Node, String> {
        let mut child = Command::new(&self.node)
            .args([&self.url(), name])
            .env("AUTH_KEY", key)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stays = child.stdin.take();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = said.next().unwrap().unwrap();
        let node = Node { child, stays };
        if said == "in" { Ok(node) } else { Err(said) }
    }
}

impl Drop for Headscale {
    fn drop(&mut self) {
        self.down();
    }
}

/// A node that is there until it is dropped.
pub(crate) struct Node {
    child: Child,
    stays: Option<ChildStdin>,
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut stays) = self.stays.take() {
            // It may have ended already.
            let _told = stays.flush();
        }
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
