//! Raw sockets on the ports of hosts.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};

use super::daemons::ip;
use super::frames::PROBE;
use super::hosts::inside;

/// A namespace with one port, `eth0`, and a raw socket on it. It goes away with the value.
pub(crate) struct Tap {
    pub(crate) name: String,
    socket: OwnedFd,
    pub(crate) mac: [u8; 6],
    /// MAC address of the other end.
    pub(crate) switch_mac: [u8; 6],
}

impl Tap {
    /// A host at a port, which is made in the namespace of the switch.
    pub(crate) fn new(short: &str, switch: &str, port: &str) -> Self {
        let name = format!("mmg{}-{short}", std::process::id());
        ip(&format!("netns add {name}"));
        ip(&format!(
            "-n {switch} link add {port} type veth peer name eth0 netns {name}"
        ));
        ip(&format!("-n {name} link set eth0 up"));
        let (socket, mac) = inside(&name, async || {
            let socket = socket(
                AddressFamily::Packet,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                SockProtocol::EthAll,
            );
            let socket = socket.unwrap();
            let address = link_address("eth0");
            bind(socket.as_raw_fd(), &address).unwrap();
            (socket, address.addr().unwrap())
        });
        let of_port = port.to_owned();
        let switch_mac = inside(switch, async move || link_address(&of_port).addr().unwrap());
        Self {
            name,
            socket,
            mac,
            switch_mac,
        }
    }

    /// Waits while the device is busy with what was sent before.
    pub(crate) fn send(&self, frame: &[u8]) {
        send(self.socket.as_raw_fd(), frame, MsgFlags::empty()).unwrap();
    }

    /// The frames that came in since the last call, as many as the socket keeps.
    pub(crate) fn frames(&self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut frame = [0; 2048];
        while let Ok(length) = recv(self.socket.as_raw_fd(), &mut frame, MsgFlags::MSG_DONTWAIT) {
            frames.push(frame[..length].to_vec());
        }
        frames
    }

    /// The marks of the probes that came in since the last call.
    pub(crate) fn heard(&self) -> BTreeSet<u32> {
        let mut marks = BTreeSet::new();
        for frame in self.frames() {
            let probes = frame.windows(6).filter(|window| window[..2] == PROBE);
            marks.extend(probes.map(|w| u32::from_be_bytes([w[2], w[3], w[4], w[5]])));
        }
        marks
    }

    /// Number of frames that have come in, also of those that the socket has dropped.
    pub(crate) fn received(&self) -> u64 {
        let shown = std::process::Command::new("ip")
            .args(["netns", "exec", &self.name, "cat"])
            .arg("/sys/class/net/eth0/statistics/rx_packets")
            .output()
            .unwrap();
        String::from_utf8(shown.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        ip(&format!("netns del {}", self.name));
    }
}

fn link_address(interface: &str) -> LinkAddr {
    let found = nix::ifaddrs::getifaddrs()
        .unwrap()
        .filter(|entry| entry.interface_name == interface)
        .find_map(|entry| entry.address.and_then(|a| a.as_link_addr().copied()));
    found.unwrap()
}
