//! Renews the certificate at about half its life over the open session, with a new key if control
//! requests one.
//!
//! A certificate that has expired, or that control refuses, cannot open a session: it is resumed over
//! an anonymous connection instead.

use std::time::Duration;

use base_runtime::Backoff;
use proto_identity::profile::BACKDATE;
use proto_identity::{Credential, Key, PeerIdentity, Roots, tls};
use proto_link::{ALPN, DialError, MeshClient, SessionState, now_ms};
use proto_mesh::{IdentityServiceClient, RenewRequest};
use rand::Rng as _;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

use crate::enrol;
use crate::error::KitError;
use crate::state_dir::{StateDir, StoredSession};

/// Longest sleep without a look at the clock, which may be set while the agent runs.
const CLOCK_STEP: Duration = Duration::from_secs(30);
/// Pauses after failures, first and longest.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// Failure count after a refusal: the pauses are the longest from then on.
const FAILURES_OF_REFUSAL: u32 = u32::MAX;
/// MM-1510: control refuses the old key and requests a new one.
const KEY_NOT_NEW: u16 = 1510;
/// Longest wait for a session with a new certificate. Beyond it renewal goes on without one.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(15);

/// The state of renewal.
pub(crate) struct Renewal {
    pub(crate) mesh: MeshClient,
    pub(crate) current: watch::Sender<Credential>,
    pub(crate) control: Vec<String>,
    pub(crate) ticket_id: String,
    pub(crate) dir: Option<StateDir>,
}

/// Runs until its task is dropped.
pub(crate) async fn run(renewal: Renewal) {
    let mut state = renewal.mesh.state();
    let mut notices = renewal.mesh.notices();
    let mut failures = 0_u32;
    // Random, so that a fleet that joined within a minute does not renew within one.
    let spread = rand::rng().random_range(0.45..0.55);
    // A key change that the last run did not finish comes first: control may know the next key
    // already and refuse the old one.
    let mut next = renewal.pending();
    loop {
        let due = match renewal.current.borrow().identity() {
            Ok(identity) => due_in(&identity, now_ms(), spread),
            Err(_) => Duration::ZERO,
        };
        if !due.is_zero() && next.is_none() {
            tokio::select! {
                () = sleep(due.min(CLOCK_STEP)) => continue,
                refused = refused(&mut state) => if !refused { return },
                // Control announces a key change to all agents at once, with the time over which
                // they must spread their requests.
                Ok(()) = notices.changed() => {
                    let within = notices.borrow_and_update().spread;
                    let share = rand::rng().random_range(0.0..1.0);
                    sleep(within.mul_f64(share)).await;
                    info!("control requests a new key");
                    next = renewal.next_key();
                }
            }
        }
        match renewal.renew(next.as_ref()).await {
            Ok(()) => {
                next = None;
                failures = 0;
                settle(&mut state).await;
            }
            Err(KitError::Refused(e)) if e.catalogue() == Some(KEY_NOT_NEW) && next.is_none() => {
                next = renewal.next_key();
            }
            // Never given up: the refusal may be an operator's mistake that is corrected later.
            Err(KitError::Refused(e)) => {
                error!(error = %e, "control refuses to renew the certificate");
                sleep(RETRY.pause(failures)).await;
                failures = FAILURES_OF_REFUSAL;
            }
            Err(e) => {
                warn!(error = %e, "certificate not renewed; retrying");
                sleep(RETRY.pause(failures)).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}

/// Time until `spread` of the certificate's life is over; zero if it is.
fn due_in(identity: &PeerIdentity, now_ms: u64, spread: f64) -> Duration {
    // Certificates are backdated for clocks that are behind; that time is not a part of their life.
    let begin = Duration::from_millis(identity.not_before_ms).saturating_add(BACKDATE);
    let life = Duration::from_millis(identity.not_after_ms).saturating_sub(begin);
    let age = Duration::from_millis(now_ms).saturating_sub(begin);
    life.mul_f64(spread).saturating_sub(age)
}

/// Waits for an open session. A refusal that is seen before the client has dialled with the new
/// certificate may be about the old one, and would trigger a needless resumption.
async fn settle(state: &mut watch::Receiver<SessionState>) {
    let settled = |s: &SessionState| matches!(s, SessionState::Up | SessionState::Closed);
    drop(timeout(SETTLE_TIME_MAX, state.wait_for(settled)).await);
}

/// Waits until control refuses the certificate. Returns `false` if the client is closed.
async fn refused(state: &mut watch::Receiver<SessionState>) -> bool {
    let refused = |s: &SessionState| {
        matches!(
            s,
            SessionState::Down(Some(DialError::Refused { .. })) | SessionState::Closed
        )
    };
    match state.wait_for(refused).await {
        Ok(state) => *state != SessionState::Closed,
        Err(_) => false,
    }
}

impl Renewal {
    /// The next key of a key change that an earlier run did not finish.
    fn pending(&self) -> Option<Key> {
        let kept = self.dir.as_ref()?.pending_key();
        kept.inspect_err(|e| warn!(error = %e, "the next key is not readable"))
            .ok()?
    }

    /// A new key. It is on disk before control sees it: a key that control has certified but that a
    /// crash has lost would lock the agent out. `None` if the disk fails.
    fn next_key(&self) -> Option<Key> {
        let made = match &self.dir {
            Some(dir) => dir.next_key(),
            None => Key::generate().map_err(KitError::Identity),
        };
        made.inspect_err(|e| error!(error = %e, "cannot generate a new key"))
            .ok()
    }

    /// Gets a certificate for the next key, or for the current one if there is no next.
    async fn renew(&self, next: Option<&Key>) -> Result<(), KitError> {
        let old = self.current.borrow().clone();
        let ended = old.identity().is_ok_and(|i| i.not_after_ms <= now_ms());
        let refused = matches!(
            &*self.mesh.state().borrow(),
            SessionState::Down(Some(DialError::Refused { .. }))
        );
        let fresh = if ended || refused {
            self.resume(&old, next).await?
        } else {
            self.ask(next.unwrap_or(&old.key)).await?
        };
        self.take(fresh)
    }

    /// Gets a certificate without a session. Control may or may not know the next key, because the
    /// answer to an earlier request may have been lost: the next key is tried first, then the old.
    async fn resume(&self, old: &Credential, next: Option<&Key>) -> Result<Credential, KitError> {
        let Some(next) = next else {
            return enrol::resume(&self.control, old, &old.key).await;
        };
        match enrol::resume(&self.control, old, next).await {
            Err(KitError::Refused(_)) => {
                let fresh = enrol::resume(&self.control, old, &old.key).await?;
                // Only now is it certain that control does not know the next key.
                if let Some(dir) = &self.dir {
                    dir.drop_next_key()?;
                }
                Ok(fresh)
            }
            other => other,
        }
    }

    /// Gets a certificate over the session.
    async fn ask(&self, key: &Key) -> Result<Credential, KitError> {
        let client = IdentityServiceClient::from(self.mesh.clone());
        let request = RenewRequest {
            csr: key.request()?,
        };
        let answer = client.renew(request).await.map_err(|e| {
            if e.is_transient() {
                KitError::Link(e)
            } else {
                KitError::Refused(e)
            }
        })?;
        enrol::accept(answer, key.clone())
    }

    /// Puts a new certificate into use.
    fn take(&self, fresh: Credential) -> Result<(), KitError> {
        // On disk first: after a crash the old certificate may be one that control refuses, since
        // it has seen a newer key.
        if let Some(dir) = &self.dir {
            dir.store(&StoredSession {
                credential: fresh.clone(),
                control: self.control.clone(),
                ticket_id: self.ticket_id.clone(),
            })?;
        }
        let roots = Roots::Certificates(fresh.roots.clone());
        let tls = tls::client_config(roots, Some(&fresh), ALPN)?;
        // Opens a session with the new certificate in place of the old one. Streams end with the
        // old session and are reopened by `run_desired`, which also brings fresh signatures.
        self.mesh.replace_tls(tls).map_err(KitError::Link)?;
        let not_after_ms = fresh.identity()?.not_after_ms;
        self.current.send_replace(fresh);
        info!(not_after_ms, "certificate renewed");
        Ok(())
    }
}
