//! Interfaces and neighbours of the kernel, and sockets bound to one interface.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use nix::ifaddrs::getifaddrs;
use proto_types::MacAddr;
use socket2::{Domain, Protocol, Socket, Type};

/// The Ethernet address of an interface.
pub(crate) fn mac(interface: &str) -> io::Result<MacAddr> {
    // One entry for each address of the interface. Only that of AF_PACKET has the Ethernet address.
    getifaddrs()?
        .filter(|entry| entry.interface_name == interface)
        .filter_map(|entry| entry.address)
        .find_map(|address| address.as_link_addr().and_then(|link| link.addr()))
        .map(MacAddr)
        .ok_or_else(|| io::Error::other(format!("no Ethernet interface {interface}")))
}

/// The index of an interface.
pub(crate) fn index(interface: &str) -> io::Result<u32> {
    Ok(nix::net::if_::if_nametoindex(interface)?)
}

/// Binds a UDP socket that receives and sends on one interface only, including broadcasts. On
/// loopback, which has no broadcasts, networks differ by address and all messages come over relays.
pub(crate) fn udp_on(interface: &str, address: SocketAddrV4) -> io::Result<tokio::net::UdpSocket> {
    let (address, port) = (*address.ip(), address.port());
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    let bind = if address.is_loopback() {
        address
    } else {
        // A socket bound to an address receives no broadcasts. Bound to any address it would take
        // the requests of all networks, so the interface is what separates them.
        socket.set_reuse_address(true)?;
        socket.set_broadcast(true)?;
        socket.bind_device(Some(interface.as_bytes()))?;
        Ipv4Addr::UNSPECIFIED
    };
    socket.bind(&SocketAddr::V4(SocketAddrV4::new(bind, port)).into())?;
    tokio::net::UdpSocket::from_std(socket.into())
}

/// The Ethernet address behind an IP address, by the kernel's neighbour table.
pub(crate) fn neighbour(address: Ipv4Addr, interface: &str) -> Option<MacAddr> {
    // `/proc/net` shows the network namespace of the process's main thread. Tests run each world's
    // threads in a namespace of their own.
    let table = std::fs::read_to_string("/proc/thread-self/net/arp").ok()?;
    find_neighbour(&table, address, interface)
}

/// Finds an entry. Columns: address, hardware type, flags (2: complete), Ethernet address, mask,
/// device.
fn find_neighbour(table: &str, address: Ipv4Addr, interface: &str) -> Option<MacAddr> {
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [ip, _, flags, mac, _, device] = columns.as_slice() else {
            return None;
        };
        // An incomplete entry shows an Ethernet address of zeros.
        let complete = u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok()? & 2 != 0;
        (complete && *device == interface && ip.parse() == Ok(address))
            .then(|| mac.parse().ok())
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_count_when_complete_and_on_the_interface() {
        let table = "IP address  HW type Flags HW address Mask Device\n\
             10.0.0.9  0x1 0x2 52:54:00:00:00:09 * br0\n\
             10.0.0.8  0x1 0x0 00:00:00:00:00:00 * br0\n\
             10.0.0.7  0x1 0x2 52:54:00:00:00:07 * br1\n";
        let find = |n| find_neighbour(table, Ipv4Addr::new(10, 0, 0, n), "br0");
        assert_eq!(find(9), Some(MacAddr([0x52, 0x54, 0, 0, 0, 9])));
        assert_eq!(find(8), None);
        assert_eq!(find(7), None);
    }
}
