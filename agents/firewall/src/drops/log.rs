use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::broadcast;

use super::record::DropRecord;

/// Records that are kept for those who come later, and for a reader that is slow. A reader that is
/// slower loses the oldest ones, and is told how many.
const RECORDS_MAX: usize = 1024;

/// An event of the packet log.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum DropEvent {
    /// A packet.
    Packet(DropRecord),
    /// Packets whose records are lost.
    Lost {
        /// Number of them.
        lost: u64,
    },
}

/// The last reported packets, and those to come.
#[derive(Debug)]
pub struct DropLog {
    recent: Mutex<VecDeque<DropEvent>>,
    sender: broadcast::Sender<DropEvent>,
}

impl Default for DropLog {
    fn default() -> Self {
        Self {
            recent: Mutex::default(),
            sender: broadcast::Sender::new(RECORDS_MAX),
        }
    }
}

/// A reader of the log.
#[derive(Debug)]
pub struct DropSubscription(broadcast::Receiver<DropEvent>);

impl DropLog {
    /// Adds an event. Never waits.
    pub fn add(&self, event: DropEvent) {
        let mut recent = self.recent.lock();
        while recent.len() >= RECORDS_MAX {
            recent.pop_front();
        }
        recent.push_back(event.clone());
        // Nobody listens: no error.
        drop(self.sender.send(event));
    }

    /// The last events, and a reader of those that are added from now on.
    #[must_use]
    pub fn subscribe(&self) -> (Vec<DropEvent>, DropSubscription) {
        let recent = self.recent.lock();
        let reader = DropSubscription(self.sender.subscribe());
        (recent.iter().cloned().collect(), reader)
    }
}

impl DropSubscription {
    /// The next event. `None` if the log is gone.
    pub async fn next(&mut self) -> Option<DropEvent> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(lost)) => Some(DropEvent::Lost { lost }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DropEvent, DropLog, RECORDS_MAX};

    #[tokio::test]
    async fn a_slow_reader_loses_the_oldest_and_is_told() {
        let log = DropLog::default();
        let (before, mut reader) = log.subscribe();
        assert_eq!(before, []);
        let count = u64::try_from(RECORDS_MAX).unwrap() + 10;
        for lost in 0..count {
            log.add(DropEvent::Lost { lost });
        }
        assert_eq!(reader.next().await, Some(DropEvent::Lost { lost: 10 }));
        assert_eq!(reader.next().await, Some(DropEvent::Lost { lost: 10 }));
        assert_eq!(reader.next().await, Some(DropEvent::Lost { lost: 11 }));
        let (recent, _) = log.subscribe();
        assert_eq!(recent.len(), RECORDS_MAX);
        assert_eq!(recent.first(), Some(&DropEvent::Lost { lost: 10 }));
    }
}
