use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::AsRawFd;

use nix::cmsg_space;
use nix::libc::in_pktinfo;
use nix::net::if_::if_indextoname;
use nix::sys::socket::sockopt::Ipv4PacketInfo;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// The socket towards the boot server. It knows the interface of each datagram: an address alone
/// does not keep a machine out, which may send with the boot server's at its own port.
#[derive(Debug)]
pub(super) struct ServerSocket {
    inner: UdpSocket,
}

/// A datagram that came in.
#[derive(Debug)]
pub(super) struct Arrived {
    /// Bytes of the buffer that it fills.
    pub(super) length: usize,
    /// Its sender, as it claims.
    pub(super) from: SocketAddr,
    /// The interface that it came in at. `None` if that is gone already.
    pub(super) interface: Option<String>,
}

impl ServerSocket {
    /// Binds to an own address; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// No interface has the address, or another process has the port.
    pub(super) async fn bind(address: SocketAddrV4) -> io::Result<Self> {
        let inner = UdpSocket::bind(address).await?;
        setsockopt(&inner, Ipv4PacketInfo, &true)?;
        Ok(Self { inner })
    }

    /// Sends to the boot server.
    ///
    /// # Errors
    /// There is no route, or an earlier datagram was refused.
    pub(super) async fn send_to(&self, message: &[u8], server: SocketAddr) -> io::Result<usize> {
        self.inner.send_to(message, server).await
    }

    /// Receives the next datagram into the buffer.
    ///
    /// # Errors
    /// An earlier datagram was refused (ICMP); the socket stays usable.
    pub(super) async fn recv(&self, buffer: &mut [u8]) -> io::Result<Arrived> {
        let receive = || receive_now(&self.inner, buffer);
        self.inner.async_io(Interest::READABLE, receive).await
    }
}

fn receive_now(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Arrived> {
    let mut parts = [IoSliceMut::new(buffer)];
    let mut control = cmsg_space!(in_pktinfo);
    let flags = MsgFlags::empty();
    let message = recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let index = message.cmsgs()?.find_map(|part| match part {
        ControlMessageOwned::Ipv4PacketInfo(info) => u32::try_from(info.ipi_ifindex).ok(),
        _ => None,
    });
    let name = index.and_then(|index| if_indextoname(index).ok());
    let from = message.address.map(|from| (from.ip(), from.port()).into());
    Ok(Arrived {
        length: message.bytes,
        from: from.ok_or(io::ErrorKind::InvalidData)?,
        interface: name.and_then(|name| name.into_string().ok()),
    })
}

/// `true` if an answer of the boot server may come in at the interface: at none of the ports of
/// machines and firewalls. Such a sender would speak for the boot server.
pub(super) fn is_trusted(interface: Option<&str>, fronts: &BTreeSet<String>) -> bool {
    interface.is_some_and(|interface| !fronts.contains(interface))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::process::Command;
    use std::time::Duration;

    use proto_types::MacAddr;
    use proto_wire_dhcp::ServerFrame;
    use proto_wire_lldp::mac_of;
    use tokio::time::timeout;

    use super::super::port_socket::PortSocket;
    use super::*;

    const LEAF: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 11);
    const SERVER: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 5);

    fn ip(arguments: &str) {
        let ran = Command::new("ip").args(arguments.split(' ')).output();
        assert!(ran.unwrap().status.success(), "ip {arguments}");
    }

    /// A datagram from the boot server, as the firewall at the other end of `swp5` forges it.
    fn forged() -> Vec<u8> {
        let frame = ServerFrame {
            source_mac: MacAddr([2, 0, 0, 0, 0, 5]),
            target_mac: MacAddr(mac_of("swp5").unwrap()),
            source: SERVER,
            target: LEAF,
        };
        let mut bytes = frame.encode(b"answer").unwrap();
        // From port 67 to port 67, without a checksum.
        bytes[36..38].copy_from_slice(&67_u16.to_be_bytes());
        bytes[40..42].fill(0);
        bytes
    }

    async fn receives_forged() {
        let socket = ServerSocket::bind(SocketAddrV4::new(LEAF, 67))
            .await
            .unwrap();
        let firewall = PortSocket::open("xswp5").unwrap();
        let mut buffer = [0; 64];
        // The other end may not have its carrier yet.
        let arrived = loop {
            firewall.send(&forged()).await.unwrap();
            let pause = Duration::from_millis(100);
            if let Ok(arrived) = timeout(pause, socket.recv(&mut buffer)).await {
                break arrived.unwrap();
            }
        };
        assert_eq!(&buffer[..arrived.length], b"answer");
        assert_eq!(arrived.from, (SERVER, 67).into(), "as from the boot server");
        assert_eq!(arrived.interface.as_deref(), Some("swp5"));
    }

    /// The kernel accepts the datagram: the address of the management interface is the switch's on
    /// every interface.
    #[test]
    fn the_port_of_a_forged_answer_is_known() {
        if !nix::unistd::geteuid().is_root() {
            println!("not run: network namespaces need root");
            return;
        }
        let run = || {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
            for command in [
                "link set lo up",
                "link add eth0 type veth peer name xeth0",
                "addr add 10.90.0.11/24 dev eth0",
                "link set eth0 up",
                "link add swp5 type veth peer name xswp5",
                "link set swp5 up",
                "link set xswp5 up",
            ] {
                ip(command);
            }
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            let patience = Duration::from_secs(20);
            let received = runtime.block_on(async { timeout(patience, receives_forged()).await });
            received.expect("the datagram arrives");
        };
        std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    }

    #[test]
    fn answers_come_in_at_no_port_of_machines() {
        let fronts: BTreeSet<String> = ["swp1", "swp5"].map(str::to_owned).into();
        for (interface, is_taken) in [
            (Some("eth0"), true),
            (Some("swp49"), true),
            (Some("lo"), true),
            (Some("swp5"), false),
            (None, false),
        ] {
            assert_eq!(is_trusted(interface, &fronts), is_taken, "{interface:?}");
        }
    }
}
