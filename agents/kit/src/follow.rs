//! Takes the certificates that another process renews in the same state directory.

use std::time::Duration;

use proto_identity::{Credential, Roots, tls};
use proto_link::{ALPN, MeshClient};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::error::KitError;
use crate::state_dir::StateDir;

/// Pause between two reads of the directory. It bounds the time without a session after control
/// refuses a replaced key.
const READ_PAUSE: Duration = Duration::from_secs(5);

/// Reads the credential of a state directory again and again, and never writes there.
pub(crate) struct CredentialFollower {
    pub(crate) mesh: MeshClient,
    pub(crate) current: watch::Sender<Credential>,
    pub(crate) dir: StateDir,
}

impl CredentialFollower {
    /// Runs until its task is dropped.
    pub(crate) async fn run(self) {
        let mut has_failed = false;
        loop {
            sleep(READ_PAUSE).await;
            match self.read() {
                Ok(()) => has_failed = false,
                // One failure is normal: the other process writes several files.
                Err(error) if has_failed => {
                    warn!(%error, dir = %self.dir.path().display(), "cannot read the certificate");
                }
                Err(_) => has_failed = true,
            }
        }
    }

    fn read(&self) -> Result<(), KitError> {
        let stored = self.dir.read_session()?.ok_or(KitError::NotJoined)?;
        let fresh = stored.credential;
        let (own, other) = (self.current.borrow().identity()?, fresh.identity()?);
        if own.id != other.id {
            // A machine that is installed anew boots, which ends this process.
            let got = other.id.to_string();
            return Err(KitError::OtherIdentity { got });
        }
        if self.current.borrow().chain == fresh.chain {
            return Ok(());
        }
        let roots = Roots::Certificates(fresh.roots.clone());
        let tls = tls::client_config(roots, Some(&fresh), ALPN)?;
        self.mesh.replace_tls(tls).map_err(KitError::Link)?;
        self.current.send_replace(fresh);
        info!(
            not_after_ms = other.not_after_ms,
            "took the renewed certificate"
        );
        Ok(())
    }
}
