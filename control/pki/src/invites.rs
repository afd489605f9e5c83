//! Invites: the state knows a secret by its SHA-256, and keeps it sealed for its owners.

use std::sync::Arc;
use std::time::Duration;

use control_authz::Permit;
use control_state::{Command, CreateInvite, Invite, InviteTo, Warrant};
use proto_identity::sha256;
use proto_types::Digest;

use crate::seal::random;
use crate::tickets::after;
use crate::{Pki, PkiError};

/// Life of an invite, as the published servers have it: seven days.
pub const INVITE_LIFE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Bytes of randomness in a secret, which is their hexadecimal form: 32 characters, as published
/// clients expect.
const RANDOM_LEN: usize = 16;

impl Pki {
    /// Makes an invite on behalf of a user. The second value is its secret.
    ///
    /// # Errors
    /// The state's refusal, or no randomness.
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

    /// The secret of an invite, for those who may give it away.
    ///
    /// # Errors
    /// `WrongSeal` when it was sealed with another cluster's key.
    pub fn invite_secret(&self, invite: &Invite) -> Result<String, PkiError> {
        let secret = self
            .inner
            .seal
            .open(&name(&invite.id), &invite.sealed_secret)?;
        String::from_utf8(secret).map_err(|_| PkiError::WrongSeal)
    }
}

/// What the state knows an invite's secret by.
pub fn invite_id(secret: &str) -> Digest {
    Digest::sha256(sha256(secret.as_bytes()))
}

fn name(id: &Digest) -> String {
    format!("invite/{}", id.hex())
}
