//! Keeps one good session open: dials, redials with jittered pauses, replaces make-before-break.

use std::sync::Arc;
use std::time::Duration;

use quinn::Connection;
use rand::Rng as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::client::SessionState;
use crate::dial::{DialError, Dialer, Socket, classify};
use crate::limits::{BACKOFF_MAX, BACKOFF_MIN, DRAIN_TIME_MAX, SESSION_GOOD};
use crate::notice::{self, Notice};
use crate::open::OpenSession;
use crate::session::Close;

/// What the calls and the supervisor share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) session: watch::Sender<Option<OpenSession>>,
    pub(crate) state: watch::Sender<SessionState>,
    pub(crate) tls: watch::Sender<Arc<quinn::ClientConfig>>,
    pub(crate) addresses: watch::Sender<Vec<String>>,
    pub(crate) notices: watch::Sender<Notice>,
}

pub(crate) async fn run(shared: Arc<Shared>, socket: Option<Socket>, stop: CancellationToken) {
    let mut supervisor = Supervisor {
        tls: shared.tls.subscribe(),
        shared,
        dialer: Dialer::on(socket),
        next: 0,
        failures: 0,
        draining: JoinSet::new(),
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = supervisor.supervise() => {}
    }
    if let Some(session) = supervisor.shared.session.send_replace(None) {
        Close::Done.close(&session.connection);
    }
    supervisor.shared.state.send_replace(SessionState::Closed);
}

struct Supervisor {
    shared: Arc<Shared>,
    tls: watch::Receiver<Arc<quinn::ClientConfig>>,
    dialer: Dialer,
    /// Index of the address to try first.
    next: usize,
    /// Attempts in a row without a good session.
    failures: u32,
    draining: JoinSet<()>,
}

impl Supervisor {
    async fn supervise(&mut self) {
        loop {
            let (session, address) = self.open().await;
            let began = Instant::now();
            let connection = session.connection.clone();
            self.publish(session);
            let lost = self.hold(connection, &address).await;
            info!(error = %lost, "session with control lost");
            self.shared.session.send_replace(None);
            self.shared
                .state
                .send_replace(SessionState::Down(Some(lost)));
            if began.elapsed() >= SESSION_GOOD {
                self.failures = 0;
            }
            self.pause().await;
        }
    }

    /// Watches a session; replaces it when the certificate changes; returns once it is lost.
    async fn hold(&mut self, mut connection: Connection, address: &str) -> DialError {
        let mut address = address.to_owned();
        // Kept over the rounds: a notice that is half heard must not get lost.
        let mut heard = Box::pin(notice::hear(connection.clone()));
        loop {
            tokio::select! {
                error = connection.closed() => return classify(&address, &error),
                changed = self.tls.changed() => if changed.is_err() {
                    // The client is gone; its stop token ends this task.
                    std::future::pending::<()>().await;
                },
                Some(_) = self.draining.join_next() => continue,
                spread = &mut heard => {
                    self.shared.notices.send_modify(|last| *last = last.next(spread));
                    heard = Box::pin(notice::hear(connection.clone()));
                    continue;
                }
            }
            // A new certificate: open first, then let the old session finish.
            let old = connection.clone();
            tokio::select! {
                (fresh, at) = self.open() => {
                    connection = fresh.connection.clone();
                    address = at;
                    heard = Box::pin(notice::hear(connection.clone()));
                    self.publish(fresh);
                    debug!("session replaced after renewal");
                }
                error = old.closed() => return classify(&address, &error),
            }
        }
    }

    /// Makes a session the current one and drains the one before.
    fn publish(&mut self, session: OpenSession) {
        if let Some(old) = self.shared.session.send_replace(Some(session)) {
            self.draining.spawn(async move {
                old.calls.close();
                drop(timeout(DRAIN_TIME_MAX, old.calls.wait()).await);
                Close::Replaced.close(&old.connection);
            });
        }
        self.shared.state.send_replace(SessionState::Up);
    }

    /// Dials the addresses in turn until one answers.
    async fn open(&mut self) -> (OpenSession, String) {
        loop {
            let config = self.tls.borrow_and_update().clone();
            let addresses = self.shared.addresses.borrow().clone();
            let mut last = None;
            for step in 0..addresses.len() {
                let index = (self.next + step) % addresses.len();
                match self.dialer.dial(&addresses[index], &config).await {
                    Ok(session) => {
                        self.next = index;
                        return (session, addresses[index].clone());
                    }
                    Err(e) => {
                        debug!(error = %e, "no session");
                        last = Some(e);
                    }
                }
            }
            self.next = self.next.wrapping_add(1);
            if let Some(e) = &last
                && self.failures == 0
            {
                warn!(error = %e, "no control node answers; trying again");
            }
            if self.shared.session.borrow().is_none() {
                self.shared.state.send_replace(SessionState::Down(last));
            }
            self.dialer.reset();
            self.pause().await;
        }
    }

    /// Waits longer after each failure, at random, so that agents do not come back in step. A
    /// new certificate ends the wait.
    async fn pause(&mut self) {
        let pause = backoff(self.failures, rand::rng().random_range(0.5..1.0));
        self.failures = self.failures.saturating_add(1);
        tokio::select! {
            () = sleep(pause) => {}
            Ok(()) = self.tls.changed() => self.tls.mark_changed(),
        }
    }
}

/// Pause after so many failures; `jitter` scales it.
fn backoff(failures: u32, jitter: f64) -> Duration {
    BACKOFF_MIN
        .saturating_mul(1 << failures.min(16))
        .min(BACKOFF_MAX)
        .mul_f64(jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_to_its_bound() {
        for (failures, ms) in [(0, 100), (1, 200), (4, 1600), (7, 10_000), (500, 10_000)] {
            assert_eq!(backoff(failures, 1.0), Duration::from_millis(ms));
        }
        assert_eq!(backoff(0, 0.5), Duration::from_millis(50));
    }
}
