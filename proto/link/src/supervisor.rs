//! Keeps one good session open: dials, redials with jittered pauses, replaces make-before-break.

use std::sync::Arc;
use std::time::Duration;

use base_runtime::Backoff;
use quinn::Connection;
use rand::Rng as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::client::SessionState;
use crate::dial::{DialError, Dialer, Socket, classify};
use crate::limits::{
    BACKOFF_MAX, BACKOFF_MIN, CROWDED_MAX, CROWDED_MIN, DRAIN_TIME_MAX, SESSION_GOOD,
};
use crate::notice::{self, Notice};
use crate::open::OpenSession;
use crate::session::Close;
use crate::transport::Keepalive;

/// Pauses between attempts.
const BACKOFF: Backoff = Backoff::new(BACKOFF_MIN, BACKOFF_MAX);
/// Pauses after handshakes that a node did not begin.
const CROWDED: Backoff = Backoff::new(CROWDED_MIN, CROWDED_MAX);

/// What the calls and the supervisor share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) session: watch::Sender<Option<Arc<OpenSession>>>,
    pub(crate) state: watch::Sender<SessionState>,
    pub(crate) tls: watch::Sender<Arc<quinn::ClientConfig>>,
    pub(crate) addresses: watch::Sender<Vec<String>>,
    pub(crate) notices: watch::Sender<Notice>,
    pub(crate) keepalive: Keepalive,
}

pub(crate) async fn run(shared: Arc<Shared>, socket: Option<Socket>, stop: CancellationToken) {
    let mut supervisor = Supervisor {
        tls: shared.tls.subscribe(),
        dialer: Dialer::on(socket),
        shared,
        next: 0,
        failures: 0,
        refusals: 0,
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
    /// Times in a row that a node was too busy for a session.
    refusals: u32,
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
        if let Some(old) = self.shared.session.send_replace(Some(Arc::new(session))) {
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
            let mut sent_away: Option<(Duration, usize)> = None;
            for step in 0..addresses.len() {
                let index = (self.next + step) % addresses.len();
                match self.dialer.dial(&addresses[index], &config).await {
                    Ok(session) => {
                        self.next = index;
                        self.refusals = 0;
                        return (session, addresses[index].clone());
                    }
                    Err(e) => {
                        debug!(error = %e, "no session");
                        sent_away = sent_away.max(self.turn(&e).map(|wait| (wait, index)));
                        last = Some(e);
                    }
                }
            }
            if let Some(e) = &last
                && self.failures == 0
                && sent_away.is_none()
            {
                warn!(error = %e, "no control node answers; trying again");
            }
            if self.shared.session.borrow().is_none() {
                self.shared.state.send_replace(SessionState::Down(last));
            }
            if let Some((wait, index)) = sent_away {
                // It answered: it is asked first again, with the same socket.
                self.next = index;
                self.refusals = self.refusals.saturating_add(1);
                self.wait(wait).await;
            } else {
                self.next = self.next.wrapping_add(1);
                self.dialer.reset();
                self.pause().await;
            }
        }
    }

    /// How long to stay away from a node that is busy, at random, so that nobody comes back in
    /// step with others.
    fn turn(&self, error: &DialError) -> Option<Duration> {
        match error {
            // Later than told, never earlier: who is early finds no place again.
            DialError::Busy { retry_in, .. } => {
                Some(retry_in.mul_f64(rand::rng().random_range(1.0..1.25)))
            }
            DialError::Crowded { .. } => {
                let share = rand::rng().random_range(0.5..1.5);
                Some(CROWDED.step(self.refusals).mul_f64(share))
            }
            _ => None,
        }
    }

    /// Waits longer after each failure, at random, so that agents do not come back in step. A
    /// new certificate ends the wait.
    async fn pause(&mut self) {
        let pause = BACKOFF.pause(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.wait(pause).await;
    }

    async fn wait(&mut self, pause: Duration) {
        tokio::select! {
            () = sleep(pause) => {}
            Ok(()) = self.tls.changed() => self.tls.mark_changed(),
        }
    }
}
