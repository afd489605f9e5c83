//! The only message that control sends unasked: a request to renew the certificate with a new key.
//!
//! A notice is a unidirectional stream of five bytes: the version, then the time over which all
//! notified agents spread their renewals, in milliseconds, big-endian.

use std::time::Duration;

use quinn::Connection;
use tracing::debug;

use crate::frame;

/// Length of a notice, bytes.
pub const NOTICE_LEN: usize = 5;

/// The last notice received on a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// Number of notices received so far.
    pub count: u64,
    /// Time over which to spread the renewal.
    pub spread: Duration,
}

impl Notice {
    pub(crate) fn next(self, spread: Duration) -> Self {
        Self {
            count: self.count.wrapping_add(1),
            spread,
        }
    }
}

/// Encodes a notice. A spread above `u32::MAX` milliseconds becomes `u32::MAX`.
pub fn encode(spread: Duration) -> [u8; NOTICE_LEN] {
    let ms = u32::try_from(spread.as_millis()).unwrap_or(u32::MAX);
    let [a, b, c, d] = ms.to_be_bytes();
    [frame::VERSION, a, b, c, d]
}

/// Decodes a notice. `None` means that the bytes are not a notice of this version.
pub fn decode(bytes: &[u8]) -> Option<Duration> {
    let [frame::VERSION, ms @ ..] = bytes else {
        return None;
    };
    let ms = u32::from_be_bytes(ms.try_into().ok()?);
    Some(Duration::from_millis(u64::from(ms)))
}

pub(crate) async fn send(connection: &Connection, spread: Duration) {
    let sent = async {
        let mut stream = connection.open_uni().await?;
        stream.write_all(&encode(spread)).await?;
        stream.finish().map_err(quinn::WriteError::from)
    };
    if let Err(e) = sent.await {
        debug!(error = %e, "notice not sent; the next session sends it again");
    }
}

/// Receives the next notice. Never returns once the session has ended.
pub(crate) async fn receive(connection: Connection) -> Duration {
    loop {
        let Ok(mut stream) = connection.accept_uni().await else {
            // The supervisor sees the end of the session by itself. Returning here would make its
            // `select!` spin.
            return std::future::pending().await;
        };
        if let Ok(bytes) = stream.read_to_end(NOTICE_LEN).await
            && let Some(spread) = decode(&bytes)
        {
            return spread;
        }
        // A later server may use further unidirectional streams; they must not end the session.
        debug!("ignored a stream that is not a notice");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_read_back_and_nothing_else_does() {
        for spread in [Duration::ZERO, Duration::from_secs(30)] {
            assert_eq!(decode(&encode(spread)), Some(spread));
        }
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[frame::VERSION, 0, 0, 0]), None);
        assert_eq!(decode(&[frame::VERSION, 0, 0, 0, 0, 0]), None);
        assert_eq!(decode(&[frame::VERSION + 1, 0, 0, 0, 0]), None);
    }
}
