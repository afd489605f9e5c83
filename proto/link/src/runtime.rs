//! quinn's runtime: tokio, with deferred send tasks.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};

use crate::deferred::DeferredTask;
use crate::udp::{Udp, busy_poll};

/// A tokio runtime that polls busily for datagrams before a thread sleeps. In any other runtime
/// consecutive calls are slower; nothing else differs.
pub fn runtime() -> tokio::runtime::Builder {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().on_thread_park(busy_poll);
    builder
}

/// Number of writes on one session. Clones share the counter.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteCount {
    pub(crate) count: Arc<AtomicU64>,
}

thread_local! {
    /// The counter of the session whose task quinn is about to spawn on this thread.
    static SPAWNS: RefCell<Option<WriteCount>> = const { RefCell::new(None) };
}

impl WriteCount {
    /// Runs `begin`, in which quinn spawns the task of one session, and ties that task to a new
    /// counter.
    pub(crate) fn of<T>(begin: impl FnOnce() -> T) -> (T, Self) {
        let writes = Self::default();
        // quinn's `Runtime::spawn` is not told the session it spawns for. It runs synchronously
        // inside `begin`, so a thread-local carries the counter there.
        SPAWNS.set(Some(writes.clone()));
        let begun = begin();
        // `begin` may fail before it spawns; a counter left here would go to another session.
        SPAWNS.take();
        (begun, writes)
    }

    /// Counts a write.
    pub(crate) fn wrote(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// tokio, where the tasks of sessions are [`DeferredTask`]s; must be used inside a tokio runtime.
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
            Some(writes) => tokio::spawn(DeferredTask::new(task, writes)),
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
