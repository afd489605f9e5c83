use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram as StdDatagram;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{LinkAddr, bind};
use socket2::{Domain, Protocol, SockFilter, Socket, Type};
use tokio::net::UnixDatagram;

/// Longest frame that is received, bytes. A longer one is cut, and dropped as not whole.
const FRAME_MAX: usize = 2048;
/// Every protocol. A port of a bridge shows others only to sockets of this one.
const ETH_P_ALL: u16 = 3;
/// Where the kernel's own data begin in a filter (`SKF_AD_OFF`).
const KERNEL: u32 = 0xffff_f000;

// Operations of the filter, from linux/filter.h.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_AT_X: u16 = 0x48;
const LOAD_X_HEADER: u16 = 0xb1;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Passes unfragmented IPv4 UDP to port 67 that came in without a VLAN tag. Without it every frame
/// of a machine would be copied to the agent.
static FILTER: [SockFilter; 15] = [
    SockFilter::new(LOAD_WORD, 0, 0, KERNEL + 4),
    // Frames that the switch itself sends (PACKET_OUTGOING).
    SockFilter::new(JUMP_IF_EQUAL, 11, 0, 4),
    SockFilter::new(LOAD_WORD, 0, 0, KERNEL + 48),
    SockFilter::new(JUMP_IF_EQUAL, 0, 9, 0),
    SockFilter::new(LOAD_HALF, 0, 0, 12),
    SockFilter::new(JUMP_IF_EQUAL, 0, 7, 0x0800),
    SockFilter::new(LOAD_BYTE, 0, 0, 23),
    SockFilter::new(JUMP_IF_EQUAL, 0, 5, 17),
    SockFilter::new(LOAD_HALF, 0, 0, 20),
    SockFilter::new(JUMP_IF_SET, 3, 0, 0x3fff),
    SockFilter::new(LOAD_X_HEADER, 0, 0, 14),
    SockFilter::new(LOAD_HALF_AT_X, 0, 0, 16),
    SockFilter::new(JUMP_IF_EQUAL, 1, 0, 67),
    SockFilter::new(RETURN, 0, 0, 0),
    SockFilter::new(RETURN, 0, 0, 0xffff),
];

/// Receives the DHCP requests that come in at one port, and sends frames out of it. Needs
/// `CAP_NET_RAW`.
#[derive(Debug)]
pub(crate) struct PortSocket {
    /// A packet socket: tokio has no type for this family.
    inner: UnixDatagram,
}

impl PortSocket {
    /// Opens a socket on a port; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The port does not exist, or `CAP_NET_RAW` is missing.
    pub(crate) fn open(port: &str) -> io::Result<Self> {
        let protocol = Protocol::from(i32::from(ETH_P_ALL.to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol))?;
        socket.set_nonblocking(true)?;
        socket.attach_filter(&FILTER)?;
        bind(socket.as_raw_fd(), &link_address(port)?)?;
        let inner = StdDatagram::from(OwnedFd::from(socket));
        // Until it was bound the socket heard every port: such a frame would name the wrong one.
        let mut frame = [0; FRAME_MAX];
        while inner.recv(&mut frame).is_ok() {}
        Ok(Self {
            inner: UnixDatagram::from_std(inner)?,
        })
    }

    /// Receives the next request.
    ///
    /// # Errors
    /// The port is gone, or went down since the last call.
    pub(crate) async fn recv(&self) -> io::Result<Vec<u8>> {
        let mut frame = vec![0; FRAME_MAX];
        let length = self.inner.recv(&mut frame).await?;
        frame.truncate(length);
        Ok(frame)
    }

    /// Sends one frame. It goes to the cable, not into the segment.
    ///
    /// # Errors
    /// The port is down or gone.
    pub(crate) async fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.inner.send(frame).await.map(|_| ())
    }
}

fn link_address(interface: &str) -> io::Result<LinkAddr> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no port {interface}"));
    getifaddrs()?
        .filter(|entry| entry.interface_name == interface)
        .find_map(|entry| entry.address.and_then(|a| a.as_link_addr().copied()))
        .ok_or_else(missing)
}
