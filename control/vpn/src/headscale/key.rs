//! Keys in the REST API of headscale.

use serde::Deserialize;

/// The answer to the creation of a key.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreatedKey {
    pub(super) pre_auth_key: PreAuthKey,
}

/// A key that was created.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreAuthKey {
    pub(super) id: String,
    pub(super) key: String,
    #[serde(default)]
    pub(super) expiration: Option<String>,
    #[serde(default)]
    pub(super) created_at: Option<String>,
}

/// The answer of a request without a result.
#[derive(Debug, Deserialize)]
pub(super) struct EmptyAnswer {}
