//! Sockets that clients send their queries to.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::sockopt::{BindToDevice, Ipv6V6Only, ReuseAddr};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, listen, setsockopt, socket,
};

use crate::rule::{NameResolver, NetworkKind, RuleSet};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 64;

/// An address of this host, and the device that packets for it must come in by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListenPlace {
    pub(super) address: IpAddr,
    /// `None` for an address of the loopback interface.
    device: Option<String>,
}

/// Sockets of one address.
#[derive(Debug)]
pub(super) struct ListenSockets {
    pub(super) udp: UdpSocket,
    pub(super) tcp: TcpListener,
}

/// The addresses that the proxy should listen on and that this host has now.
pub(super) fn places(resolver: &NameResolver, rules: &RuleSet) -> BTreeSet<ListenPlace> {
    let private: BTreeSet<&String> = rules
        .networks
        .iter()
        .filter(|network| network.kind == NetworkKind::Private)
        .flat_map(|network| &network.interfaces)
        .collect();
    let Ok(all) = getifaddrs() else {
        return BTreeSet::new();
    };
    let mut found = BTreeSet::new();
    for own in all {
        let Some(address) = own.address.as_ref().and_then(ip_address) else {
            continue;
        };
        let is_wanted = if resolver.listen.is_empty() {
            private.contains(&own.interface_name) && !is_link_local(address)
        } else {
            resolver.listen.contains(&address)
        };
        if is_wanted {
            let device = (own.interface_name != "lo").then(|| device_of(&own.interface_name));
            found.insert(ListenPlace { address, device });
        }
    }
    found
}

/// The addresses of this host, and the broadcast addresses of its interfaces.
pub(super) fn own_addresses() -> BTreeSet<IpAddr> {
    let all = getifaddrs().into_iter().flatten();
    all.flat_map(|own| [own.address, own.broadcast])
        .filter_map(|address| address.as_ref().and_then(ip_address))
        .collect()
}

fn ip_address(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|own| own.ip().into());
    v4.or_else(|| address.as_sockaddr_in6().map(|own| own.ip().into()))
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// The VRF of an interface, or the interface itself.
fn device_of(interface: &str) -> String {
    let master = Path::new("/sys/class/net").join(interface).join("master");
    let name = std::fs::read_link(master)
        .ok()
        .and_then(|target| target.file_name().map(OsString::from))
        .and_then(|name| name.into_string().ok());
    let is_vrf = |name: &String| {
        let about = Path::new("/sys/class/net").join(name).join("uevent");
        std::fs::read_to_string(about).is_ok_and(|text| text.contains("DEVTYPE=vrf"))
    };
    name.filter(is_vrf).unwrap_or_else(|| interface.to_owned())
}

impl ListenPlace {
    /// Opens both sockets. An address of a VRF can only be bound by a socket of the VRF.
    pub(super) fn open(&self, port: u16) -> io::Result<ListenSockets> {
        let udp = self.bind(SockType::Datagram, port)?;
        let tcp = self.bind(SockType::Stream, port)?;
        listen(&tcp, Backlog::new(BACKLOG)?)?;
        Ok(ListenSockets {
            udp: udp.into(),
            tcp: tcp.into(),
        })
    }

    fn bind(&self, kind: SockType, port: u16) -> io::Result<OwnedFd> {
        let family = if self.address.is_ipv4() {
            AddressFamily::Inet
        } else {
            AddressFamily::Inet6
        };
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let fd = socket(family, kind, flags, None)?;
        if kind == SockType::Stream {
            setsockopt(&fd, ReuseAddr, &true)?;
        }
        if family == AddressFamily::Inet6 {
            setsockopt(&fd, Ipv6V6Only, &true)?;
        }
        if let Some(device) = &self.device {
            setsockopt(&fd, BindToDevice, &OsString::from(device))?;
        }
        let address = SockaddrStorage::from(SocketAddr::new(self.address, port));
        bind(fd.as_raw_fd(), &address)?;
        Ok(fd)
    }
}
