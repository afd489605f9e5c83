//! The token signing key: created at the first start, sealed, stored in the replicated state.

use control_authz::{Permit, SystemActor};
use control_pki::{PkiError, SealingKey};
use control_state::{Command, PutSigningKey, SigningKey, StateError};
use control_store::{ProposeError, Store, StoreError};
use proto_types::Timestamp;

use super::{Issuer, TokenError};

/// Id of the signing key in the state.
const KEY_ID: &str = "tokens-1";
/// Lifetime of the signing key, milliseconds: ten years. No token lives as long.
const KEY_LIFE_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

/// The signing key is not available.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The state cannot be read.
    #[error("the token signing key cannot be read from the state")]
    Store(#[from] StoreError),
    /// The key cannot be put into the state.
    #[error("the token signing key cannot be stored")]
    Propose(#[from] ProposeError<StateError>),
    /// It was sealed with another node's sealing key.
    #[error("the token signing key cannot be unsealed; is this the right sealing key file?")]
    Seal(#[source] PkiError),
    /// The stored bytes are not a key.
    #[error("the token signing key cannot be used")]
    Key(#[from] TokenError),
}

/// The issuer with the cluster's key; creates the key at the first start.
///
/// # Errors
/// See [`KeyError`].
pub async fn issuer(store: &Store, seal: &SealingKey, name: &str) -> Result<Issuer, KeyError> {
    let id = KEY_ID.to_owned();
    let found = store
        .read(|tables| tables.get::<SigningKey>(&id).cloned())
        .await?;
    let pkcs8 = match found {
        Some(found) => seal
            .open(KEY_ID, &found.sealed_key)
            .map_err(KeyError::Seal)?,
        None => make(store, seal, name).await?,
    };
    Ok(Issuer::new(name, &pkcs8)?)
}

async fn make(store: &Store, seal: &SealingKey, name: &str) -> Result<Vec<u8>, KeyError> {
    let pkcs8 = Issuer::generate_key()?;
    let now = store.now();
    let key = SigningKey {
        id: KEY_ID.to_owned(),
        sealed_key: seal.seal(KEY_ID, &pkcs8).map_err(KeyError::Seal)?,
        public_key: Issuer::new(name, &pkcs8)?.public_key().to_vec(),
        created_at: now,
        not_after: Timestamp::from_ms(now.ms().saturating_add(KEY_LIFE_MS)),
        retired: false,
    };
    let permit = Permit::system(SystemActor::Bootstrap);
    let command = Command::new(now, "metalmeshd", PutSigningKey(key));
    store.propose(&permit, &command).await?;
    Ok(pkcs8)
}
