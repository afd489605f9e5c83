//! A leaf: an emulated machine with FRR, the agent, and a disk for the agent's state.

use control_client::Client;
use proto_public::metalmesh::admin::v1::AgentKind;

use super::console::Console;
use super::daemons::ip;
use super::roles::join_ticket;
use super::wait::found;

/// The agent's files, on the leaf's disk.
const DISK: &str = "/var/lib/metalmesh";

/// A leaf.
pub(crate) struct Leaf {
    /// Last part of its addresses, and of its name.
    number: u8,
    pub(crate) console: Console,
}

impl Leaf {
    /// A leaf that boots.
    pub(crate) fn new(number: u8) -> Self {
        Self {
            number,
            console: Console::new(number),
        }
    }

    pub(crate) fn name(&self) -> String {
        format!("leaf{}", self.number)
    }

    /// Waits for the end of its first boot, and lets its agent join.
    pub(crate) async fn join(&self, client: &Client) {
        let command = format!("metalmesh-core key --state-dir {DISK}/core");
        let key = found(async || {
            let output = self.console.run(&command)?;
            let key = output.trim().to_owned();
            (key.len() == 64).then_some(key)
        });
        let Some(key) = key.await else {
            let said = self.console.run(&command);
            panic!("{} has no key: {said:?}", self.name());
        };
        let ticket = join_ticket(client, AgentKind::Core, &self.name(), key).await;
        let write = format!("umask 077; cd {DISK}; echo {ticket} >new; sync; mv new ticket; sync");
        self.console.run(&write).unwrap();
    }

    /// Connects a port with a NIC of a machine: the other end of its cable is there already.
    pub(crate) fn connect(&self, port: &str, namespace: &str, nic: &str) {
        let number = port.trim_start_matches("swp");
        let side = nic.trim_start_matches("eth");
        let device = format!("m{number}e{side}");
        ip(&format!("link set {device} netns {namespace} name {nic}"));
        ip(&format!("-n {namespace} link set {nic} up"));
    }

    /// The VRF or bridge that a port is in; empty for none, or while the leaf does not answer.
    pub(crate) fn master(&self, port: &str) -> String {
        let shown = self
            .console
            .run(&format!("/usr/bin/ip -o link show {port}"));
        let shown = shown.unwrap_or_default();
        let mut words = shown.split_whitespace();
        words.find(|word| *word == "master");
        words.next().unwrap_or_default().to_owned()
    }

    /// Seconds since the kernel's start; `None` while the leaf does not answer.
    pub(crate) fn uptime_s(&self) -> Option<f64> {
        let text = self.console.run("cat /proc/uptime")?;
        text.split(' ').next()?.parse().ok()
    }

    /// Prints what the switch knows and the end of the agent's log, for a failure.
    pub(crate) fn show(&self) {
        for command in [
            "vtysh -c 'show bgp vrf all summary'",
            "vtysh -c 'show ip route vrf all'",
            "vtysh -c 'show evpn vni'",
            "/usr/bin/ip -br link",
            "uptime; df /var/lib/metalmesh; ls -la /var/lib/metalmesh /var/lib/metalmesh/core",
            "dmesg | tail -5",
            "tail -60 /run/core.log",
        ] {
            let output = self.console.run(command).unwrap_or_default();
            println!("{} {command}: {output}", self.name());
        }
    }
}
