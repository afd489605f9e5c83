//! The one thing that control says without being asked: the bearer of this session is to get a
//! new certificate with a new key now.
//!
//! A notice is a stream of its own with five bytes: the version, then over how many milliseconds
//! all who are told at once spread, big-endian.

use std::time::Duration;

use quinn::Connection;
use tracing::debug;

use crate::frame;

/// Length of a notice, bytes.
pub const NOTICE_LEN: usize = 5;

/// What was heard last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// How many were heard so far.
    pub count: u64,
    /// Over how long a time to spread what is to be done.
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

/// As bytes.
pub fn encode(spread: Duration) -> [u8; NOTICE_LEN] {
    let ms = u32::try_from(spread.as_millis()).unwrap_or(u32::MAX);
    let [a, b, c, d] = ms.to_be_bytes();
    [frame::VERSION, a, b, c, d]
}

/// Back from bytes; nothing when they are no notice of this version.
pub fn decode(bytes: &[u8]) -> Option<Duration> {
    let [frame::VERSION, ms @ ..] = bytes else {
        return None;
    };
    let ms = u32::from_be_bytes(ms.try_into().ok()?);
    Some(Duration::from_millis(u64::from(ms)))
}

pub(crate) async fn send(connection: &Connection, spread: Duration) {
    let said = async {
        let mut stream = connection.open_uni().await?;
        stream.write_all(&encode(spread)).await?;
        stream.finish().map_err(quinn::WriteError::from)
    };
    if let Err(e) = said.await {
        debug!(error = %e, "notice not said; the next session says it again");
    }
}

/// The next notice; never returns on a session that ends or says something else.
pub(crate) async fn hear(connection: Connection) -> Duration {
    loop {
        let Ok(mut stream) = connection.accept_uni().await else {
            return std::future::pending().await;
        };
        if let Ok(bytes) = stream.read_to_end(NOTICE_LEN).await
            && let Some(spread) = decode(&bytes)
        {
            return spread;
        }
        debug!("something else than a notice was said");
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
