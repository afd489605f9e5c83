//! Hosts at the ports of a leaf, as namespaces.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;

use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, send, socket,
};

/// EtherType for experiments (IEEE 802.3): no protocol of the kernel sends it.
const PROBE: [u8; 2] = [0x88, 0xb5];

fn run(program: &str, arguments: &str) {
    let arguments: Vec<_> = arguments.split(' ').collect();
    let status = Command::new(program).args(&arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}

/// A namespace that goes away with the value.
pub(crate) struct Namespace(pub(crate) String);

impl Namespace {
    pub(crate) fn new(test: &str, name: &str) -> Self {
        let name = format!("mmp{}-{test}-{name}", std::process::id());
        run("ip", &format!("netns add {name}"));
        Self(name)
    }

    pub(crate) fn ip(&self, arguments: &str) {
        run("ip", &format!("-n {} {arguments}", self.0));
    }

    /// Runs a future on a thread of its own inside the namespace.
    pub(crate) fn inside<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce() -> T + Send + 'static,
    ) -> T {
        let path = format!("/run/netns/{}", self.0);
        let enter = move || {
            let file = std::fs::File::open(path).unwrap();
            nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(work())
        };
        std::thread::spawn(enter).join().unwrap()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        run("ip", &format!("netns del {}", self.0));
    }
}

/// A host that sends and hears probes.
pub(crate) struct Host {
    pub(crate) name: &'static str,
    pub(crate) mac: [u8; 6],
    _namespace: Namespace,
    socket: OwnedFd,
}

impl Host {
    pub(crate) fn new(
        test: &str,
        name: &'static str,
        leaf: &Namespace,
        port: &str,
        mac: [u8; 6],
    ) -> Self {
        let namespace = Namespace::new(test, name);
        leaf.ip(&format!(
            "link add {port} type veth peer name eth0 netns {}",
            namespace.0
        ));
        let text = mac.map(|byte| format!("{byte:02x}")).join(":");
        namespace.ip(&format!("link set eth0 address {text} up"));
        let socket = namespace.inside(async || {
            let socket = socket(
                AddressFamily::Packet,
                SockType::Raw,
                SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC,
                SockProtocol::EthAll,
            );
            let socket = socket.unwrap();
            bind(socket.as_raw_fd(), &link_address("eth0")).unwrap();
            socket
        });
        Self {
            name,
            mac,
            _namespace: namespace,
            socket,
        }
    }

    pub(crate) fn send(&self, to: [u8; 6], from: [u8; 6], mark: u32) {
        let mut frame = [&to[..], &from, &PROBE, &mark.to_be_bytes()].concat();
        frame.resize(60, 0);
        send(self.socket.as_raw_fd(), &frame, MsgFlags::empty()).unwrap();
    }

    /// The marks of the probes that others sent and that came in since the last call.
    pub(crate) fn heard(&self, own: &BTreeSet<u32>) -> BTreeSet<u32> {
        let mut marks = BTreeSet::new();
        let mut frame = [0; 2048];
        while let Ok(length) = recv(self.socket.as_raw_fd(), &mut frame, MsgFlags::empty()) {
            if length >= 18 && frame[12..14] == PROBE {
                marks.insert(u32::from_be_bytes(frame[14..18].try_into().unwrap()));
            }
        }
        marks.difference(own).copied().collect()
    }
}

fn link_address(interface: &str) -> LinkAddr {
    let found = nix::ifaddrs::getifaddrs()
        .unwrap()
        .filter(|entry| entry.interface_name == interface)
        .find_map(|entry| entry.address.and_then(|a| a.as_link_addr().copied()));
    found.unwrap()
}
