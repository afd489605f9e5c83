//! UDP sockets that many sessions share.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use tracing::warn;

use crate::limits::{RECEIVE_BUFFER_LEN, RECEIVE_BUFFER_LEN_MIN};

/// Binds a socket with room for the packets that many sessions send at the same moment. What does
/// not fit is lost, and each lost packet costs its session a timeout.
pub(crate) fn bind_shared(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    let wanted = RECEIVE_BUFFER_LEN;
    // Beyond `net.core.rmem_max` only with CAP_NET_ADMIN; without, up to that.
    if setsockopt(&socket, sockopt::RcvBufForce, &wanted).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &wanted)?;
    }
    // Linux counts its own bookkeeping in: it shows twice what it was asked for (socket(7)).
    let got = getsockopt(&socket, sockopt::RcvBuf)? / 2;
    if got < RECEIVE_BUFFER_LEN_MIN {
        warn!(
            %address, got, wanted,
            "small receive buffer: packets are lost when many agents speak at once; \
             run: sysctl -w net.core.rmem_max={wanted}"
        );
    }
    Ok(socket)
}
