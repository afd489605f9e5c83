use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram as StdDatagram;

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{LinkAddr, bind};
use rustix::net::{AddressFamily, SocketFlags, SocketType, eth, socket_with};
use tokio::net::UnixDatagram;

use crate::frame::{FRAME_MAX, Mac};

/// Sends and receives whole LLDP frames on one interface. Needs `CAP_NET_RAW`.
#[derive(Debug)]
pub struct Socket {
    /// A packet socket. tokio has no type for this family, and a `UnixDatagram` is the only safe way
    /// to register its descriptor: `recv` and `send` are the plain system calls.
    inner: UnixDatagram,
}

impl Socket {
    /// Opens a socket on an interface; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// The interface does not exist, or `CAP_NET_RAW` is missing.
    pub fn open(interface: &str) -> io::Result<Self> {
        let address = link_address(interface)?;
        let fd = socket_with(
            AddressFamily::PACKET,
            SocketType::RAW,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            Some(eth::LLDP),
        )?;
        // The address carries no protocol, so the kernel keeps the one of the socket.
        bind(fd.as_raw_fd(), &address)?;
        Ok(Self {
            inner: UnixDatagram::from_std(StdDatagram::from(fd))?,
        })
    }

    /// Receives the next frame of a neighbour.
    ///
    /// # Errors
    /// The interface is gone, or went down since the last call.
    pub async fn recv(&self) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; FRAME_MAX];
        let read = self.inner.recv(&mut buffer).await?;
        buffer.truncate(read);
        Ok(buffer)
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub async fn send(&self, frame: &[u8]) -> io::Result<()> {
        self.inner.send(frame).await.map(|_| ())
    }
}

/// The MAC address of an interface.
///
/// # Errors
/// The interface does not exist, or has no MAC address.
pub fn mac_of(interface: &str) -> io::Result<Mac> {
    link_address(interface)?
        .addr()
        .ok_or_else(|| no_interface(interface))
}

fn link_address(interface: &str) -> io::Result<LinkAddr> {
    getifaddrs()?
        .filter(|a| a.interface_name == interface)
        .find_map(|a| a.address.and_then(|s| s.as_link_addr().copied()))
        .ok_or_else(|| no_interface(interface))
}

fn no_interface(interface: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no interface {interface}"))
}
