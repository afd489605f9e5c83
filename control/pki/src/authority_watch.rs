//! Watches the rotation of the authority.

use control_state::{Change, Kind};
use control_store::{ChangeEvent, Subscription};

/// A watch of the authorities in force; see [`Pki::watch`](crate::Pki::watch).
#[derive(Debug)]
pub struct AuthorityWatch(Subscription<Change>);

impl AuthorityWatch {
    pub(crate) fn new(changes: Subscription<Change>) -> Self {
        Self(changes)
    }

    /// Waits for a change. `false` if the store has shut down.
    pub async fn changed(&mut self) -> bool {
        loop {
            match self.0.next().await {
                Some(ChangeEvent::Changed { changes, .. }) => {
                    if changes.iter().any(|change| change.kind == Kind::CaRotation) {
                        return true;
                    }
                }
                Some(ChangeEvent::Resync) => return true,
                None => return false,
            }
        }
    }
}
