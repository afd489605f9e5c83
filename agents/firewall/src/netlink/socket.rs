use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::sockopt::{RcvBufForce, ReceiveTimeout, SndBufForce};
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
    setsockopt, socket,
};
use nix::sys::time::{TimeVal, TimeValLike as _};

use super::error::NetlinkError;

/// Longest wait for an answer of the kernel, which answers while it is asked, seconds.
const ANSWER_SECONDS_MAX: i64 = 30;
/// Largest datagram of the kernel, bytes; its dumps are of at most 32 KiB.
const DATAGRAM_LEN_MAX: usize = 256 * 1024;
/// Bytes of answers that the kernel may hold for us.
const RECEIVE_BUFFER: usize = 8 * 1024 * 1024;
/// Largest transaction, bytes: four times what the most entries of all rules need.
const BATCH_LEN_MAX: usize = 256 * 1024 * 1024;
const NETLINK_ERROR: u16 = 2;
const NETLINK_DONE: u16 = 3;
/// Flag of a dump that a change interrupted.
const INTERRUPTED: u16 = 0x10;

/// A message of the kernel.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) kind: u16,
    pub(super) sequence: u32,
    /// `true` if rules changed during the dump that the message belongs to.
    pub(super) is_interrupted: bool,
    pub(super) payload: Vec<u8>,
}

/// A netlink socket to nftables in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
    /// Room for a datagram: a dump has hundreds of them.
    buffer: RefCell<Vec<u8>>,
}

impl Socket {
    pub(super) fn open() -> Result<Self, NetlinkError> {
        let open = || -> nix::Result<OwnedFd> {
            let fd = socket(
                AddressFamily::Netlink,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                SockProtocol::NetlinkNetFilter,
            )?;
            bind(fd.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
            setsockopt(&fd, RcvBufForce, &RECEIVE_BUFFER)?;
            setsockopt(&fd, ReceiveTimeout, &TimeVal::seconds(ANSWER_SECONDS_MAX))?;
            Ok(fd)
        };
        let fd = open().map_err(|e| NetlinkError::Open(e.into()))?;
        let buffer = RefCell::new(vec![0; DATAGRAM_LEN_MAX]);
        Ok(Self { fd, buffer })
    }

    /// Sends bytes as one datagram.
    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > BATCH_LEN_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // The kernel takes no datagram longer than the buffer, and a transaction is one datagram.
        setsockopt(&self.fd, SndBufForce, &(bytes.len() + 64 * 1024))?;
        let sent = send(self.fd.as_raw_fd(), bytes, MsgFlags::empty())?;
        if sent == bytes.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    /// The messages of the next datagram.
    pub(super) fn receive(&self) -> io::Result<Vec<Answer>> {
        let mut buffer = self.buffer.borrow_mut();
        let len = recv(self.fd.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        split(buffer.get(..len).unwrap_or_default())
    }
}

fn split(mut bytes: &[u8]) -> io::Result<Vec<Answer>> {
    let mut answers = Vec::new();
    while let Some(header) = bytes.first_chunk::<16>() {
        let long = |at: usize| {
            u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let short = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let length = usize::try_from(long(0)).map_err(io::Error::other)?;
        let Some(payload) = bytes.get(16..length) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        answers.push(Answer {
            kind: short(4),
            sequence: long(8),
            is_interrupted: short(6) & INTERRUPTED != 0,
            payload: payload.to_vec(),
        });
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(answers)
}

impl Answer {
    /// The error in an acknowledgement; `Ok(None)` for other messages.
    pub(super) fn result(&self) -> Option<io::Result<()>> {
        if self.kind != NETLINK_ERROR {
            return None;
        }
        let code = self
            .payload
            .first_chunk()
            .map(|code| i32::from_ne_bytes(*code));
        Some(match code {
            Some(0) => Ok(()),
            Some(code) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
            None => Err(io::ErrorKind::InvalidData.into()),
        })
    }

    /// `true` for the end of a dump.
    pub(super) fn is_end(&self) -> bool {
        self.kind == NETLINK_DONE
    }

    /// The attributes, after nftables' own header.
    pub(super) fn attributes(&self) -> &[u8] {
        self.payload.get(4..).unwrap_or_default()
    }
}
