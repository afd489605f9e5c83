//! Reads the kernel's packet log.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::net::if_::if_indextoname;
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    setsockopt, socket,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::log::{DropEvent, DropLog};
use super::report::PacketReport;
use crate::model::{REPORT_GROUP, REPORT_LEN};
use crate::netlink::Attribute;

/// Subsystem of the packet log among those of netfilter.
const SUBSYSTEM: u16 = 4;
const PACKET: u16 = SUBSYSTEM << 8;
const CONFIG: u16 = SUBSYSTEM << 8 | 1;
const NETLINK_ERROR: u16 = 2;
/// Lengths of netlink's header and of netfilter's after it, bytes.
const HEADER_LEN: usize = 16;
const HEADERS_LEN: usize = HEADER_LEN + 4;
/// Bytes of messages that the kernel may hold for us. The rules report few packets a second.
const RECEIVE_BUFFER: usize = 1024 * 1024;
/// Largest datagram, bytes: the kernel collects no more than this.
const DATAGRAM_LEN_MAX: usize = 64 * 1024;
/// Pause after an error, so that one that stays does not keep the processor busy.
const ERROR_PAUSE: Duration = Duration::from_secs(1);

/// A socket that receives what [`crate::model::Expression::Report`] sends.
#[derive(Debug)]
pub struct DropReader {
    socket: AsyncFd<OwnedFd>,
    sequence: Option<u32>,
}

impl DropReader {
    /// Joins the group, in the network namespace of this thread. One process may have it.
    ///
    /// # Errors
    /// Another process has it, or the kernel has no packet log.
    pub fn open() -> io::Result<Self> {
        let fd = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
            SockProtocol::NetlinkNetFilter,
        )?;
        bind(fd.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        setsockopt(&fd, RcvBufForce, &RECEIVE_BUFFER)?;
        // Join; packets with their headers; numbers, at once, and not only when many have collected.
        let mut mode = REPORT_LEN.to_be_bytes().to_vec();
        mode.extend([2, 0]);
        request(&fd, &[Attribute::Value(1, vec![1])])?;
        request(&fd, &[Attribute::Value(2, mode)])?;
        request(
            &fd,
            &[
                Attribute::Value(5, 1_u32.to_be_bytes().to_vec()),
                Attribute::Value(6, 1_u16.to_be_bytes().to_vec()),
            ],
        )?;
        #[expect(
            deprecated,
            reason = "an owned descriptor stays open as long as it is registered; the other way is unsafe"
        )]
        let socket = AsyncFd::with_interest(fd, Interest::READABLE)?;
        Ok(Self {
            socket,
            sequence: None,
        })
    }

    /// Adds every packet to the log until it is stopped.
    pub async fn run(mut self, log: &DropLog, stop: CancellationToken) {
        let mut buffer = vec![0; DATAGRAM_LEN_MAX];
        loop {
            let read = |fd: &OwnedFd| {
                recv(fd.as_raw_fd(), &mut buffer, MsgFlags::empty()).map_err(io::Error::from)
            };
            let received = tokio::select! {
                () = stop.cancelled() => return,
                received = self.socket.async_io(Interest::READABLE, read) => received,
            };
            match received {
                Ok(len) => self.take(buffer.get(..len).unwrap_or_default(), log),
                // The kernel had to drop messages; the numbers of the next ones say how many.
                Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {}
                Err(error) => {
                    warn!(%error, "the kernel's packet log cannot be read");
                    tokio::time::sleep(ERROR_PAUSE).await;
                }
            }
        }
    }

    fn take(&mut self, datagram: &[u8], log: &DropLog) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(0));
        for message in messages(datagram).filter(|message| message.kind == PACKET) {
            let name = |index| if_indextoname(index).ok()?.into_string().ok();
            let Some(report) = PacketReport::decode(message.attributes, now_ms, name) else {
                continue;
            };
            if let Some(lost) = self.lost(report.sequence) {
                log.add(DropEvent::Lost { lost });
            }
            log.add(DropEvent::Packet(report.record));
        }
    }

    /// Messages between the last one and this one.
    fn lost(&mut self, sequence: Option<u32>) -> Option<u64> {
        let current = sequence?;
        let last = self.sequence.replace(current)?;
        let lost = current.wrapping_sub(last).wrapping_sub(1);
        (lost > 0).then_some(u64::from(lost))
    }
}

/// A message in a datagram of the kernel.
#[derive(Debug)]
struct KernelMessage<'a> {
    kind: u16,
    attributes: &'a [u8],
}

fn messages(mut datagram: &[u8]) -> impl Iterator<Item = KernelMessage<'_>> {
    std::iter::from_fn(move || {
        let header = datagram.first_chunk::<HEADER_LEN>()?;
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
        let len = usize::try_from(len).ok()?;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let content = datagram.get(HEADER_LEN..len)?;
        datagram = datagram.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(KernelMessage {
            kind,
            attributes: content.get(4..).unwrap_or_default(),
        })
    })
}

/// Sends a request about the group, and waits for the kernel's acknowledgement, which it has sent
/// when the request returns.
fn request(fd: &OwnedFd, attributes: &[Attribute]) -> io::Result<()> {
    let mut bytes = vec![0; HEADERS_LEN];
    for attribute in attributes {
        attribute.encode(&mut bytes);
    }
    let len = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    bytes[0..4].copy_from_slice(&len.to_ne_bytes());
    bytes[4..6].copy_from_slice(&CONFIG.to_ne_bytes());
    // Request, with an acknowledgement.
    bytes[6..8].copy_from_slice(&5_u16.to_ne_bytes());
    bytes[18..20].copy_from_slice(&REPORT_GROUP.to_be_bytes());
    send(fd.as_raw_fd(), &bytes, MsgFlags::empty())?;
    let mut answer = [0; 4096];
    loop {
        let len = recv(fd.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        let answer = answer.get(..len).unwrap_or_default();
        let kind = answer
            .get(4..6)
            .map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
        // Packets may come before the acknowledgement of a later request.
        if kind != Some(NETLINK_ERROR) {
            continue;
        }
        let code = answer.get(HEADER_LEN..HEADERS_LEN).unwrap_or_default();
        let code = code.try_into().map(i32::from_ne_bytes).unwrap_or(-1);
        return match code {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        };
    }
}
