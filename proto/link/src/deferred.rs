//! A session's send task, deferred behind the tasks that give it something to send.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use crate::runtime::WriteCount;

/// A task that yields once to the tasks that are ready when it is woken, as long as that pays.
///
/// tokio runs a task next that was just woken. Each call that writes wakes the task that sends the
/// session's packets, so that 64 simultaneous calls would make 64 packets. Behind those calls the
/// task finds all that they wrote and sends it in a few packets. A lone call would only lose time:
/// if yielding gathers no writes, the task stops yielding.
pub(crate) struct DeferredTask {
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
    writes: WriteCount,
    /// Number of writes when the task was woken and yielded. `None` means it has not yielded.
    at_first: Option<u64>,
    habit: DeferHabit,
}

impl DeferredTask {
    pub(crate) fn new(task: Pin<Box<dyn Future<Output = ()> + Send>>, writes: WriteCount) -> Self {
        Self {
            task,
            writes,
            at_first: None,
            habit: DeferHabit::default(),
        }
    }
}

impl Future for DeferredTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let written = self.writes.count.load(Ordering::Relaxed);
        if let Some(at_first) = self.at_first.take() {
            self.habit.learn(written != at_first);
        } else if self.habit.waits() {
            self.at_first = Some(written);
            // A task that wakes itself while it runs goes to the end of tokio's run queue, behind
            // the calls that are about to write.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.task.as_mut().poll(cx)
    }
}

/// Yields in a row that gathered nothing. After this many the task stops yielding.
const VAIN_MAX: u8 = 8;
/// A task that stopped yielding tries again once in this many wakes: rarely enough not to show in
/// the 99th percentile of lone calls.
const TRY_EVERY: u8 = 250;

/// Decides from the recent past whether a task yields.
#[derive(Debug, Default, PartialEq, Eq)]
struct DeferHabit {
    vain: u8,
    skipped: u8,
}

impl DeferHabit {
    /// `true` if the task yields this time.
    fn waits(&mut self) -> bool {
        if self.vain < VAIN_MAX {
            return true;
        }
        self.skipped = (self.skipped + 1) % TRY_EVERY;
        self.skipped == 0
    }

    /// Takes note of whether the last yield gathered writes.
    fn learn(&mut self, has_gathered: bool) {
        self.vain = if has_gathered {
            0
        } else {
            (self.vain + 1).min(VAIN_MAX)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_where_it_gathers_nothing_and_begins_where_it_does() {
        let mut habit = DeferHabit::default();
        let alone = |habit: &mut DeferHabit, times: usize| {
            let tries = (0..times).filter(|_| {
                let waits = habit.waits();
                if waits {
                    habit.learn(false);
                }
                waits
            });
            tries.count()
        };
        let max = usize::from(VAIN_MAX);
        let every = usize::from(TRY_EVERY);
        assert_eq!(alone(&mut habit, max), max);
        assert_eq!(alone(&mut habit, 3 * every), 3);
        while !habit.waits() {}
        habit.learn(true);
        assert_eq!(habit, DeferHabit::default());
        assert_eq!(alone(&mut habit, max), max);
        assert_eq!(alone(&mut habit, every - 1), 0);
    }
}
