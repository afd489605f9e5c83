//! Invites. The state finds the secret by its SHA-256 and keeps it sealed for its owners.

use std::sync::Arc;
use std::time::Duration;

use control_authz::Permit;
use control_state::{Command, CreateInvite, Invite, InviteTo, Warrant};
use proto_identity::sha256;
use proto_types::Digest;

use crate::seal::random;
use crate::validity::after;
use crate::{Pki, PkiError};

/// Lifetime of an invite: seven days, as of the published servers.
pub const INVITE_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Random bytes of a secret. Its hexadecimal form has the 32 characters that published clients
/// expect.
const RANDOM_LEN: usize = 16;

impl Pki {
    /// Creates an invite on behalf of a user. The second value is its secret.
    ///
    /// # Errors
    /// The refusal of the state, or [`PkiError::Randomness`].
    pub async fn create_invite(
        &self,
        permit: &Permit,
        actor: &str,
        to: InviteTo,
        warrant: Option<Warrant>,
    ) -> Result<(Arc<Invite>, String), PkiError> {
        let mut bytes = [0u8; RANDOM_LEN];
        random(&mut bytes)?;
        let secret: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = invite_id(&secret);
        let now = self.now();
        let create = CreateInvite {
            sealed_secret: self.inner.seal.seal(&name(&id), secret.as_bytes())?,
            id,
            to,
            warrant,
            expires_at: after(now, INVITE_LIFE),
        };
        let command = Command::new(now, actor, create);
        let invite = self.inner.store.propose(permit, &command).await?;
        Ok((invite.invite()?, secret))
    }

    /// Unseals the secret of an invite. The caller must be allowed to give it away.
    ///
    /// # Errors
    /// [`PkiError::WrongSeal`] if it was sealed with another key.
    pub fn invite_secret(&self, invite: &Invite) -> Result<String, PkiError> {
        let secret = self
            .inner
            .seal
            .open(&name(&invite.id), &invite.sealed_secret)?;
        String::from_utf8(secret).map_err(|_| PkiError::WrongSeal)
    }
}

/// The id of an invite: the SHA-256 of its secret.
pub fn invite_id(secret: &str) -> Digest {
    Digest::sha256(sha256(secret.as_bytes()))
}

/// Name under which the secret of an invite is sealed.
fn name(id: &Digest) -> String {
    format!("invite/{}", id.hex())
}
