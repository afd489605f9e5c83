//! A leaf: a namespace with FRR, and `metalmesh-core` as a process of its own in it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use super::control::{connect, show_log};
use super::daemons::{Switch, ip};
use super::hosts::cable;

/// The agent sees FRR's sockets of its namespace where FRR has them by default.
const START: &str = "mount --bind /var/run/frr/$0 /var/run/frr && exec /usr/bin/metalmesh-core \
                     run --state-dir $1 --config $2 --ticket-file $3";

/// A leaf. Agent, daemons and namespace go away with the value.
pub(crate) struct Leaf {
    /// Number of the leaf, and last part of its addresses.
    pub(crate) number: u8,
    pub(crate) switch: Switch,
    agent: Option<Child>,
    dir: PathBuf,
}

impl Leaf {
    /// A leaf without agent, connected to the management network.
    pub(crate) async fn new(number: u8, dir: &Path) -> Self {
        let switch = Switch::start(&format!("t{number}"), &[]).await;
        connect(&switch.name, number);
        let dir = dir.join(format!("leaf{number}"));
        fs::create_dir(&dir).unwrap();
        let config = format!(
            "rack = \"rack-1\"\nmanagement_ip = \"10.99.0.{number}\"\nvtep = \"10.0.0.{number}\"\n\
             [bgp]\nasn = 42000000{number}\nspines = [\"swp31\"]\nunderlay = [\"10.0.0.0/24\"]\n"
        );
        fs::write(dir.join("core.toml"), config).unwrap();
        Self {
            number,
            switch,
            agent: None,
            dir,
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("leaf{}", self.number)
    }

    /// The agent's directory of keys and last-good state.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// File of the agent's join ticket.
    pub(crate) fn ticket(&self) -> PathBuf {
        self.dir.join("ticket")
    }

    /// Connects a port with a NIC of a machine.
    pub(crate) fn connect(&self, port: &str, namespace: &str, nic: &str) {
        cable(&self.switch, port, namespace, nic);
        self.switch.ip(&format!("link set {port} up"));
    }

    /// Starts the agent.
    pub(crate) fn begin(&mut self) {
        let log = File::options().create(true).append(true).open(self.log());
        let log = log.unwrap();
        let child = Command::new("ip")
            .args(["netns", "exec", &self.switch.name, "sh", "-c", START])
            .arg(&self.switch.name)
            .arg(self.state_dir())
            .arg(self.dir.join("core.toml"))
            .arg(self.ticket())
            .env("METALMESH_LOG", "info")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.agent = Some(child.unwrap());
    }

    /// kill -9. The switch keeps forwarding.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.agent.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }

    /// Loses agent, daemons and everything in the kernel, as a reboot does; the ports are there
    /// again. FRR starts without configuration.
    pub(crate) async fn lose_everything(&mut self) {
        self.kill();
        self.switch.crash();
        let name = self.switch.name.clone();
        for device in devices(&name) {
            if device.starts_with("mm") || device.starts_with("Vrf") {
                // A tunnel may have gone with its bridge.
                quiet(&name, &format!("link del {device}"));
            }
        }
        for command in [
            "addr flush dev lo scope global",
            "rule flush",
            "-6 rule flush",
            "rule add pref 0 table local",
            "-6 rule add pref 0 table local",
            "rule add pref 32766 table main",
            "-6 rule add pref 32766 table main",
        ] {
            quiet(&name, command);
        }
        self.switch.restart().await;
    }

    /// The VRF or bridge that a port is in; empty for none.
    pub(crate) fn master(&self, port: &str) -> String {
        let output = Command::new("ip")
            .args(["-n", &self.switch.name, "-o", "link", "show", port])
            .output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        let mut words = text.split_whitespace();
        words.find(|word| *word == "master");
        words.next().unwrap_or_default().to_owned()
    }

    /// Prints what the switch knows and the end of the agent's log, for a failure.
    pub(crate) fn show(&self) {
        for command in [
            "show bgp vrf all summary",
            "show ip route vrf all",
            "show evpn vni",
        ] {
            println!("{} {command}: {}", self.name(), self.switch.vtysh(command));
        }
        for arguments in ["-br link", "route show table all", "neigh"] {
            ip(&format!("-n {} {arguments}", self.switch.name));
        }
        self.switch.show_words();
        show_log(&self.name(), &self.log());
    }

    /// Prints what the agent logged in the seconds around a moment, for a failure.
    pub(crate) fn show_around(&self, at: SystemTime) {
        let seconds = at.duration_since(UNIX_EPOCH).unwrap().as_secs();
        let times: Vec<String> = (seconds - 3..seconds + 2)
            .map(|second| {
                let of_day = second % 86_400;
                let (hours, minutes) = (of_day / 3600, of_day / 60 % 60);
                format!("T{hours:02}:{minutes:02}:{:02}.", of_day % 60)
            })
            .collect();
        let text = fs::read_to_string(self.log()).unwrap_or_default();
        let is_near = |line: &&str| times.iter().any(|time| line.contains(time));
        println!("{} around {}:", self.name(), times[3]);
        for line in text.lines().filter(is_near) {
            println!("{}: {line}", self.name());
        }
    }

    fn log(&self) -> PathBuf {
        self.dir.join("core.log")
    }
}

/// Runs `ip` in a namespace, whether or not it succeeds.
fn quiet(namespace: &str, command: &str) {
    let mut ip = Command::new("ip");
    let ip = ip.args(["-n", namespace]).args(command.split(' '));
    ip.stderr(Stdio::null()).status().unwrap();
}

/// Names of all devices of a namespace.
fn devices(namespace: &str) -> Vec<String> {
    let output = Command::new("ip")
        .args(["-n", namespace, "-br", "link"])
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let names = text
        .lines()
        .filter_map(|line| line.split([' ', '@']).next());
    names.map(str::to_owned).collect()
}

impl Drop for Leaf {
    fn drop(&mut self) {
        self.kill();
    }
}
