//! Renews the certificate at half its life, over the open session; with a new key when control
//! wants one.

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

/// The clock is looked at this often: it may be set while an agent runs.
const CLOCK_STEP: Duration = Duration::from_secs(30);
/// Pauses after failures.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
/// Failures to count after a refusal: from then on the pauses are the longest ones.
const FAILURES_OF_REFUSAL: u32 = u32::MAX;
/// Control refuses the old key: a new one is wanted.
const KEY_NOT_NEW: u16 = 1510;
/// How long a session with a new certificate is waited for.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(15);

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
    let spread = rand::rng().random_range(0.45..0.55);
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
                Ok(()) = notices.changed() => {
                    let within = notices.borrow_and_update().spread;
                    let share = rand::rng().random_range(0.0..1.0);
                    sleep(within.mul_f64(share)).await;
                    info!("control wants a new key");
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
            Err(KitError::Refused(e)) => {
                error!(error = %e, "control refuses to renew the certificate");
                sleep(RETRY.pause(failures)).await;
                failures = FAILURES_OF_REFUSAL;
            }
            Err(e) => {
                warn!(error = %e, "certificate not renewed; trying again");
                sleep(RETRY.pause(failures)).await;
                failures = failures.saturating_add(1);
            }
        }
    }
}

/// Time until `spread` of the certificate's life is over.
fn due_in(identity: &PeerIdentity, now_ms: u64, spread: f64) -> Duration {
    let backdate = u64::try_from(BACKDATE.as_millis()).unwrap_or(0);
    let begin = identity.not_before_ms.saturating_add(backdate);
    let life = Duration::from_millis(identity.not_after_ms.saturating_sub(begin));
    let age = Duration::from_millis(now_ms.saturating_sub(begin));
    life.mul_f64(spread).saturating_sub(age)
}

/// Waits for a session with the new certificate: a refusal before it may be about the old one.
async fn settle(state: &mut watch::Receiver<SessionState>) {
    let settled = |s: &SessionState| matches!(s, SessionState::Up | SessionState::Closed);
    drop(timeout(SETTLE_TIME_MAX, state.wait_for(settled)).await);
}

/// Waits until control refuses our certificate; false when the client is closed.
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
    /// The key that was to take the place of the agent's when it stopped.
    fn pending(&self) -> Option<Key> {
        let kept = self.dir.as_ref()?.pending_key();
        kept.inspect_err(|e| warn!(error = %e, "the next key is not readable"))
            .ok()?
    }

    /// A new key, on disk before control hears of it. None when that is not possible.
    fn next_key(&self) -> Option<Key> {
        let made = match &self.dir {
            Some(dir) => dir.next_key(),
            None => Key::generate().map_err(KitError::Identity),
        };
        made.inspect_err(|e| error!(error = %e, "no new key could be made"))
            .ok()
    }

    /// Gets a certificate of the next key, or without one of the same.
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

    /// Without a session. Whether control knows the next key is not known: the answer that said
    /// so may have been lost.
    async fn resume(&self, old: &Credential, next: Option<&Key>) -> Result<Credential, KitError> {
        let Some(next) = next else {
            return enrol::resume(&self.control, old, &old.key).await;
        };
        match enrol::resume(&self.control, old, next).await {
            Err(KitError::Refused(_)) => {
                let fresh = enrol::resume(&self.control, old, &old.key).await?;
                if let Some(dir) = &self.dir {
                    dir.drop_next_key()?;
                }
                Ok(fresh)
            }
            other => other,
        }
    }

    /// Over the session.
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

    fn take(&self, fresh: Credential) -> Result<(), KitError> {
        if let Some(dir) = &self.dir {
            dir.store(&StoredSession {
                credential: fresh.clone(),
                control: self.control.clone(),
                ticket_id: self.ticket_id.clone(),
            })?;
        }
        let roots = Roots::Certificates(fresh.roots.clone());
        let tls = tls::client_config(roots, Some(&fresh), ALPN)?;
        self.mesh.replace_tls(tls).map_err(KitError::Link)?;
        let not_after_ms = fresh.identity()?.not_after_ms;
        self.current.send_replace(fresh);
        info!(not_after_ms, "certificate renewed");
        Ok(())
    }
}
