//! The session that calls go to, held open for as long as a call runs.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::open::OpenSession;

/// An open session and the token of one call on it. The session is drained after its last token
/// is dropped.
pub(crate) struct LiveSession {
    pub(crate) session: Arc<OpenSession>,
    pub(crate) call: TaskTrackerToken,
}

impl LiveSession {
    /// The current session; `None` while there is none or it is closed. The caller must hold the
    /// borrow of the watch that `session` came from.
    pub(crate) fn of(session: &Option<Arc<OpenSession>>) -> Option<Self> {
        let session = session.as_ref()?;
        let is_open = session.connection.close_reason().is_none();
        // The token is taken under the borrow: the supervisor replaces the watched value before it
        // waits for tokens, so a session whose drain has begun cannot be handed out here.
        is_open.then(|| Self {
            session: session.clone(),
            call: session.calls.token(),
        })
    }

    /// Waits for an open session; `None` once the client is closed.
    pub(crate) async fn next(sessions: &watch::Sender<Option<Arc<OpenSession>>>) -> Option<Self> {
        let mut sessions = sessions.subscribe();
        loop {
            if let Some(live) = Self::of(&sessions.borrow_and_update()) {
                return Some(live);
            }
            sessions.changed().await.ok()?;
        }
    }
}
