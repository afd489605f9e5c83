//! Counters of handshakes, by outcome.

use std::sync::atomic::{AtomicU64, Ordering};

use strum::{IntoStaticStr, VariantArray};

/// The outcome of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Handshake {
    /// A session was opened.
    Done,
    /// TLS or QUIC failed, or the caller went away.
    Failed,
    /// It exceeded [`HANDSHAKE_TIME_MAX`](crate::limits::HANDSHAKE_TIME_MAX).
    Late,
    /// The certificate's identity is of another trust domain or revoked.
    Stranger,
    /// There are too many sessions, or the rate limit was reached.
    TooMany,
    /// Refused before it began: too many were in progress.
    Busy,
    /// The caller was asked to prove its address first (QUIC Retry).
    Retry,
}

impl Handshake {
    /// Name in metrics and command output.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[derive(Debug, Default)]
pub(crate) struct HandshakeCounts([AtomicU64; Handshake::VARIANTS.len()]);

impl HandshakeCounts {
    pub(crate) fn add(&self, how: Handshake) {
        if let Some(count) = self.0.get(how as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn counted(&self) -> Vec<(Handshake, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        Handshake::VARIANTS.iter().copied().zip(counts).collect()
    }
}
