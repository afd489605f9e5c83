//! How quinn's tasks run here: after those that give them something to send.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};

use crate::udp::{Udp, busy_poll};

/// A runtime as programs with sessions want it. In any other, calls that follow each other are
/// slower, and everything is the same otherwise.
pub fn runtime() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().on_thread_park(busy_poll);
    builder
}

/// What was written on one session. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns {
    writes: Arc<AtomicU64>,
}

thread_local! {
    /// Of the session whose task is about to be spawned on this thread.
    static SPAWNS: RefCell<Option<Turns>> = const { RefCell::new(None) };
}

impl Turns {
    /// Begins a session by a call in which quinn spawns its task: that task takes these turns.
    pub(crate) fn of<T>(begin: impl FnOnce() -> T) -> (T, Self) {
        let turns = Self::default();
        SPAWNS.set(Some(turns.clone()));
        let begun = begin();
        SPAWNS.take();
        (begun, turns)
    }

    /// Somebody has something to send.
    pub(crate) fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::Relaxed);
    }
}

/// tokio, where the tasks of sessions are [`Last`]; must be used inside a tokio runtime.
#[derive(Debug)]
pub(crate) struct Tasks;

impl Runtime for Tasks {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(at)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "quinn's tasks end with their endpoint"
    )]
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        match SPAWNS.take() {
            Some(turns) => tokio::spawn(Last {
                task,
                turns,
                at_first: None,
                habit: Habit::default(),
            }),
            None => tokio::spawn(task),
        };
    }

    fn wrap_udp_socket(&self, socket: std::net::UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(Udp::new(socket)?))
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

/// A task that lets those go first that are ready when it is woken, as long as that pays.
///
/// tokio runs a task next that was just woken. The task that sends a session's packets is woken by
/// each call that writes, so that 64 calls at once make 64 packets; behind them it finds all that
/// they wrote, and sends it in a few. A call that is alone would only lose time: where waiting
/// gathers nothing the task does without.
struct Last {
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
    turns: Turns,
    /// How much was written when the task was woken and let others go first.
    at_first: Option<u64>,
    habit: Habit,
}

impl Future for Last {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let writes = self.turns.writes.load(Ordering::Relaxed);
        if let Some(at_first) = self.at_first.take() {
            self.habit.learn(writes != at_first);
        } else if self.habit.waits() {
            self.at_first = Some(writes);
            // A task that wakes itself goes to the end of tokio's queue.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.task.as_mut().poll(cx)
    }
}

/// So many times in a row in vain, and the task waits no more ...
const VAIN_MAX: u8 = 8;
/// ... but once in so many times, to see: seldom enough that a call in a hundred does not feel it.
const TRY_EVERY: u8 = 250;

/// Whether waiting has paid lately.
#[derive(Debug, Default, PartialEq, Eq)]
struct Habit {
    vain: u8,
    skipped: u8,
}

impl Habit {
    fn waits(&mut self) -> bool {
        if self.vain < VAIN_MAX {
            return true;
        }
        self.skipped = (self.skipped + 1) % TRY_EVERY;
        self.skipped == 0
    }

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
        let mut habit = Habit::default();
        let alone = |habit: &mut Habit, times: usize| {
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
        assert_eq!(habit, Habit::default());
        assert_eq!(alone(&mut habit, max), max);
        assert_eq!(alone(&mut habit, every - 1), 0);
    }
}
