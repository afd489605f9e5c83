//! UDP sockets that many sessions share.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use tracing::warn;

use crate::limits::{RECEIVE_BUFFER_LEN, RECEIVE_BUFFER_LEN_MIN};

/// Binds a socket with a receive buffer for many sessions that send at the same moment. The kernel
/// drops packets that do not fit, and each lost packet costs its session a retransmission timeout.
pub(crate) fn bind_shared(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    let wanted = RECEIVE_BUFFER_LEN;
    // SO_RCVBUFFORCE needs CAP_NET_ADMIN; SO_RCVBUF without it is cut to `net.core.rmem_max`.
    if setsockopt(&socket, sockopt::RcvBufForce, &wanted).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &wanted)?;
    }
    // Linux doubles the requested size for its own bookkeeping and returns the double (socket(7)).
    let got = getsockopt(&socket, sockopt::RcvBuf)? / 2;
    if got < RECEIVE_BUFFER_LEN_MIN {
        warn!(
            %address, got, wanted,
            "small receive buffer: packets are lost when many agents send at once; \
             run: sysctl -w net.core.rmem_max={wanted}"
        );
    }
    Ok(socket)
}
