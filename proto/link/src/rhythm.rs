//! A guess whether the next datagram comes at once.

use std::time::{Duration, Instant};

/// Longest pause between datagrams that is polled through. Sleeping and waking costs both ends more
/// than a small call does.
pub(crate) const BUSY_POLL_MAX: Duration = Duration::from_micros(100);
/// Added to the lateness for each longer pause; each shorter pause subtracts 1. A thread polls
/// busily while at least four datagrams in five come in time.
const LATE_PENALTY: u8 = 4;
/// Upper bound of the lateness. At it, a thread does not poll busily.
const LATENESS_MAX: u8 = 8;

/// Measures how fast datagrams come to a socket.
#[derive(Debug)]
pub(crate) struct ArrivalRhythm {
    /// Begin of the current pause. `None` means there is none.
    since: Option<Instant>,
    /// Lateness of the last datagrams. Starts at [`LATENESS_MAX`].
    lateness: u8,
}

impl Default for ArrivalRhythm {
    fn default() -> Self {
        Self {
            since: None,
            lateness: LATENESS_MAX,
        }
    }
}

impl ArrivalRhythm {
    /// Takes note that the queue is empty.
    pub(crate) fn paused(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// End of the busy poll. `None` means that polling does not pay.
    pub(crate) fn busy_poll_until(&self) -> Option<Instant> {
        let since = self.since.filter(|_| self.lateness < LATENESS_MAX)?;
        Some(since + BUSY_POLL_MAX)
    }

    /// Takes note of an arrival.
    pub(crate) fn came(&mut self, now: Instant) {
        let Some(since) = self.since.take() else {
            return;
        };
        self.lateness = if now.duration_since(since) < BUSY_POLL_MAX {
            self.lateness.saturating_sub(1)
        } else {
            (self.lateness + LATE_PENALTY).min(LATENESS_MAX)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_micros(20);
    const LONG: Duration = Duration::from_millis(20);

    /// Datagrams after these pauses; whether a thread polls busily for the next.
    fn busy_polls(rhythm: &mut ArrivalRhythm, now: &mut Instant, pauses: &[Duration]) -> bool {
        for pause in pauses {
            rhythm.paused(*now);
            // Looked at again in between, as quinn does.
            rhythm.paused(*now + *pause / 2);
            *now += *pause;
            rhythm.came(*now);
        }
        rhythm.paused(*now);
        let until = rhythm.busy_poll_until();
        assert!(
            until.is_none_or(|until| until == *now + BUSY_POLL_MAX),
            "{until:?}"
        );
        until.is_some()
    }

    #[test]
    fn a_thread_polls_busily_where_most_datagrams_come_at_once() {
        let (mut rhythm, mut now) = (ArrivalRhythm::default(), Instant::now());
        for (pauses, expected) in [
            (vec![], false),
            (vec![LONG; 5], false),
            (vec![SHORT], true),
            // One that was late is forgiven after some that were not.
            (vec![SHORT; 20], true),
            (vec![LONG], true),
            (vec![LONG], false),
            (vec![SHORT; 20], true),
            ([LONG, SHORT, SHORT, SHORT, SHORT].repeat(9), true),
            ([SHORT, LONG, SHORT, LONG, LONG].repeat(9), false),
        ] {
            assert_eq!(
                busy_polls(&mut rhythm, &mut now, &pauses),
                expected,
                "{pauses:?}"
            );
        }
    }

    #[test]
    fn nobody_polls_busily_once_something_is_there() {
        let (mut rhythm, mut now) = (ArrivalRhythm::default(), Instant::now());
        assert!(busy_polls(&mut rhythm, &mut now, &[SHORT; 9]));
        rhythm.came(now);
        assert_eq!(rhythm.busy_poll_until(), None);
    }
}
