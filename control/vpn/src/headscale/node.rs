//! Nodes in the REST API of headscale.

use serde::Deserialize;

use super::user::HeadscaleUser;

/// The key by which a node joined.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct KeyReference {
    pub(super) id: String,
}

/// The answer to a list of nodes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NodeList {
    pub(super) nodes: Vec<HeadscaleNode>,
}

/// A node of headscale.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct HeadscaleNode {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) given_name: String,
    pub(super) user: Option<HeadscaleUser>,
    pub(super) pre_auth_key: Option<KeyReference>,
    pub(super) ip_addresses: Vec<String>,
    pub(super) last_seen: Option<String>,
    pub(super) online: bool,
}
