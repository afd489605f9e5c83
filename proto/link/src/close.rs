//! Reasons to close a session, as QUIC application error codes.

use std::time::Duration;

use quinn::{Connection, VarInt};

use crate::limits::BUSY_MAX;

/// The reason why a session was closed, as a QUIC application error code. The numbers are part of
/// the protocol. 3 was used by servers that were full and told no wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum CloseReason {
    Done = 0,
    Expired = 1,
    Revoked = 2,
    Identity = 4,
    Stopping = 5,
    Replaced = 6,
    Elsewhere = 7,
    Failed = 8,
}

impl CloseReason {
    pub(crate) fn close(self, connection: &Connection) {
        connection.close(VarInt::from_u32(self as u32), self.reason().as_bytes());
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Expired => "the certificate has expired",
            Self::Revoked => "the identity is revoked",
            Self::Identity => "the certificate's identity is not accepted here",
            Self::Stopping => "control stops",
            Self::Replaced => "replaced by a newer session",
            Self::Elsewhere => "another control node serves sessions now",
            Self::Failed => "control failed to serve the session",
        }
    }
}

/// Offset of the codes of a busy server: a code above it is this offset plus the wait in
/// milliseconds. QUIC's CONNECTION_CLOSE has no other machine-readable field.
const BUSY_CODE: u64 = 0x1_0000;

/// Closes a connection and tells its caller to come back after `wait`.
pub(crate) fn close_busy(connection: &Connection, wait: Duration) {
    let ms = u32::try_from(wait.as_millis()).unwrap_or(u32::MAX);
    let code = VarInt::from_u64(BUSY_CODE + u64::from(ms)).unwrap_or(VarInt::MAX);
    let reason = format!("control is busy: retry in {ms} ms");
    connection.close(code, reason.as_bytes());
}

/// The wait that a busy server told, at most [`BUSY_MAX`]. `None` means the code is another reason.
pub(crate) fn busy_wait(code: u64) -> Option<Duration> {
    let ms = code.checked_sub(BUSY_CODE)?;
    // The bound keeps a faulty server from sending its agents away for weeks.
    Some(Duration::from_millis(ms).min(BUSY_MAX))
}
