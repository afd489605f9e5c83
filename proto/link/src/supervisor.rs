//! Keeps one session open: dials, redials with jittered backoff, replaces it make-before-break.

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

use crate::client_config::SessionState;
use crate::close::CloseReason;
use crate::dial::{DialError, Dialer, Socket, classify};
use crate::limits::{
    BACKOFF_MAX, BACKOFF_MIN, CROWDED_MAX, CROWDED_MIN, DRAIN_TIME_MAX, SESSION_GOOD,
};
use crate::notice::{self, Notice};
use crate::open::OpenSession;
use crate::transport::Keepalive;

/// Backoff between attempts.
const BACKOFF: Backoff = Backoff::new(BACKOFF_MIN, BACKOFF_MAX);
/// Backoff after handshakes that a crowded node refused.
const CROWDED: Backoff = Backoff::new(CROWDED_MIN, CROWDED_MAX);

/// State that the calls and the supervisor share.
#[derive(Debug)]
pub(crate) struct ClientShared {
    pub(crate) session: watch::Sender<Option<Arc<OpenSession>>>,
    pub(crate) state: watch::Sender<SessionState>,
    pub(crate) tls: watch::Sender<Arc<quinn::ClientConfig>>,
    pub(crate) addresses: watch::Sender<Vec<String>>,
    pub(crate) notices: watch::Sender<Notice>,
    pub(crate) keepalive: Keepalive,
}

pub(crate) async fn run(
    shared: Arc<ClientShared>,
    socket: Option<Socket>,
    stop: CancellationToken,
) {
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
    // An explicit close lets the server forget the session now. Without it the agent would count as
    // present until the idle timeout.
    if let Some(session) = supervisor.shared.session.send_replace(None) {
        CloseReason::Done.close(&session.connection);
    }
    supervisor.shared.state.send_replace(SessionState::Closed);
}

struct Supervisor {
    shared: Arc<ClientShared>,
    tls: watch::Receiver<Arc<quinn::ClientConfig>>,
    dialer: Dialer,
    /// Index of the address to dial first.
    next: usize,
    /// Consecutive rounds without a session that lived for [`SESSION_GOOD`].
    failures: u32,
    /// Consecutive rounds in which a node was too busy for a session.
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
            // A session that is lost right after its hello counts as a failure. Otherwise a node
            // that accepts and closes sessions would be dialled without any backoff.
            if began.elapsed() >= SESSION_GOOD {
                self.failures = 0;
            }
            // A pause even after a good session: a node that stops closes all its sessions at the same
            // moment, and the jitter keeps the agents from dialling the next node in one burst.
            self.pause().await;
        }
    }

    /// Holds a session and replaces it when the certificate changes. Returns once it is lost.
    async fn hold(&mut self, mut connection: Connection, address: &str) -> DialError {
        let mut address = address.to_owned();
        // Kept across the iterations: dropping the future would lose a partially received notice.
        let mut next_notice = Box::pin(notice::receive(connection.clone()));
        loop {
            tokio::select! {
                error = connection.closed() => return classify(&address, &error),
                changed = self.tls.changed() => if changed.is_err() {
                    // The client is gone; its stop token ends this task.
                    std::future::pending::<()>().await;
                },
                Some(_) = self.draining.join_next() => continue,
                spread = &mut next_notice => {
                    self.shared.notices.send_modify(|last| *last = last.next(spread));
                    next_notice = Box::pin(notice::receive(connection.clone()));
                    continue;
                }
            }
            // The certificate changed. The new session is opened before the old one is drained, so
            // that calls find a session at any time.
            let old = connection.clone();
            tokio::select! {
                (fresh, at) = self.open() => {
                    connection = fresh.connection.clone();
                    address = at;
                    // A notice that was on its way over the old session is lost with it. The server
                    // sends one on each session whose certificate is due.
                    next_notice = Box::pin(notice::receive(connection.clone()));
                    self.publish(fresh);
                    debug!("session replaced after renewal");
                }
                error = old.closed() => return classify(&address, &error),
            }
        }
    }

    /// Makes a session the current one and drains its predecessor for at most [`DRAIN_TIME_MAX`].
    fn publish(&mut self, session: OpenSession) {
        if let Some(old) = self.shared.session.send_replace(Some(Arc::new(session))) {
            self.draining.spawn(async move {
                old.calls.close();
                drop(timeout(DRAIN_TIME_MAX, old.calls.wait()).await);
                CloseReason::Replaced.close(&old.connection);
            });
        }
        self.shared.state.send_replace(SessionState::Up);
    }

    /// Dials the addresses in turn until one accepts a session.
    async fn open(&mut self) -> (OpenSession, String) {
        loop {
            let config = self.tls.borrow_and_update().clone();
            let addresses = self.shared.addresses.borrow().clone();
            let mut last = None;
            let mut longest_wait: Option<(Duration, usize)> = None;
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
                        longest_wait =
                            longest_wait.max(self.busy_wait(&e).map(|wait| (wait, index)));
                        last = Some(e);
                    }
                }
            }
            if let Some(e) = &last
                && self.failures == 0
                && longest_wait.is_none()
            {
                warn!(error = %e, "no control node answers; retrying");
            }
            // While a session is replaced the old one still serves calls, so the state stays up.
            if self.shared.session.borrow().is_none() {
                self.shared.state.send_replace(SessionState::Down(last));
            }
            if let Some((wait, index)) = longest_wait {
                // A busy node is alive: it is dialled first in the next round, from the same socket.
                // Moving on to the next address would give up the turn that it promised.
                self.next = index;
                self.refusals = self.refusals.saturating_add(1);
                self.wait(wait).await;
            } else {
                self.next = self.next.wrapping_add(1);
                // A socket stays bound to the addresses of its time; after a change of the network
                // only a new one may get through.
                self.dialer.reset();
                self.pause().await;
            }
        }
    }

    /// Jittered wait before a busy node is dialled again. `None` means the node is not busy.
    fn busy_wait(&self, error: &DialError) -> Option<Duration> {
        match error {
            // The jitter only adds: a caller before its turn would be refused again.
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

    /// Waits for the backoff, which grows with each failure and is jittered, so that agents do not
    /// reconnect in step. A new certificate ends the wait.
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
