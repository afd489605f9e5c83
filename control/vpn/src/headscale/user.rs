//! Users in the REST API of headscale.

use serde::Deserialize;

/// A user of headscale.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HeadscaleUser {
    pub(super) id: String,
    pub(super) name: String,
}

/// The answer to a search for users.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UserList {
    pub(super) users: Vec<HeadscaleUser>,
}

/// The answer to the creation of a user.
#[derive(Debug, Deserialize)]
pub(super) struct CreatedUser {
    pub(super) user: HeadscaleUser,
}
