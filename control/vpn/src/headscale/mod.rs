//! A headscale as the VPN, by its REST API.

mod key;
mod node;
mod settings;
mod user;

use std::fmt;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proto_types::Timestamp;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, Method, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::key::{CreatedKey, EmptyAnswer};
use self::node::{HeadscaleNode, NodeList};
use self::user::{CreatedUser, HeadscaleUser, UserList};
use crate::{Vpn, VpnError, VpnKey, VpnNode, VpnSettingsError, WantedVpnKey};

pub use self::settings::{HeadscaleSection, HeadscaleSettings};

/// Time limit of one request, from connecting to the end of the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer, bytes. A larger answer is an error.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Opens the configured VPN. `None` means that no VPN is configured.
///
/// # Errors
/// The file with the API key cannot be read or is empty.
pub fn open(
    settings: Option<&HeadscaleSettings>,
) -> Result<Option<Arc<dyn Vpn>>, VpnSettingsError> {
    let Some(settings) = settings else {
        return Ok(None);
    };
    let path = &settings.api_key_file;
    let key =
        std::fs::read_to_string(path).map_err(|source| VpnSettingsError::KeyFileUnreadable {
            path: path.clone(),
            source,
        })?;
    let key = key.trim().to_owned();
    if key.is_empty() {
        return Err(VpnSettingsError::KeyFileEmpty(path.clone()));
    }
    let client = Client::builder().timeout(TIMEOUT).build();
    Ok(Some(Arc::new(Headscale {
        client: client.map_err(VpnSettingsError::Client)?,
        url: settings.url.clone(),
        address: settings.address.clone(),
        key,
    })))
}

/// A headscale, by its REST API.
struct Headscale {
    client: Client,
    url: Url,
    address: String,
    key: String,
}

impl fmt::Debug for Headscale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Headscale")
            .field("url", &self.url.as_str())
            .finish_non_exhaustive()
    }
}

impl Headscale {
    /// Sends one request to the path `what` below `/api/v1/` and reads the JSON answer.
    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        what: &str,
        query: &[(&str, &str)],
        body: Option<Value>,
    ) -> Result<T, VpnError> {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty()
                .extend(["api", "v1"])
                .extend(what.split('/'));
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self
            .client
            .request(method, url)
            .header(AUTHORIZATION, format!("Bearer {}", self.key));
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let unreachable = |error: reqwest::Error| VpnError::Unreachable(error.to_string());
        let mut answer = request.send().await.map_err(unreachable)?;
        let status = answer.status();
        let mut bytes = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(unreachable)? {
            bytes.extend_from_slice(&part);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err(VpnError::Refused("too much".to_owned()));
            }
        }
        if status == StatusCode::UNAUTHORIZED {
            return Err(VpnError::KeyRefused);
        }
        if status != StatusCode::OK {
            return Err(VpnError::Refused(status.to_string()));
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| VpnError::Refused(format!("what cannot be read: {error}")))
    }

    /// The user with this name. `None` means that it does not exist.
    async fn find(&self, name: &str) -> Result<Option<HeadscaleUser>, VpnError> {
        let found: UserList = self
            .call(Method::GET, "user", &[("name", name)], None)
            .await?;
        Ok(found.users.into_iter().find(|user| user.name == name))
    }

    /// `true` if the user still has this node.
    async fn has_node(&self, id: u64, user: &str) -> Result<bool, VpnError> {
        let nodes = self.nodes(Some(user)).await?;
        Ok(nodes.iter().any(|node| node.id == id))
    }

    /// The number of a user. The user is created if it does not exist.
    async fn user(&self, name: &str) -> Result<String, VpnError> {
        if let Some(user) = self.find(name).await? {
            return Ok(user.id);
        }
        let body = json!({ "name": name });
        let made = self
            .call::<CreatedUser>(Method::POST, "user", &[], Some(body))
            .await;
        match made {
            Ok(made) => Ok(made.user.id),
            // Another node may have created the user between the search and this request, which
            // headscale refuses as a duplicate.
            Err(error) => self.find(name).await?.map(|user| user.id).ok_or(error),
        }
    }
}

#[tonic::async_trait]
impl Vpn for Headscale {
    fn address(&self) -> &str {
        &self.address
    }

    async fn key(&self, wanted: WantedVpnKey) -> Result<VpnKey, VpnError> {
        let user = self.user(&wanted.user).await?;
        let expiration = prost_types::Timestamp::from(SystemTime::now() + wanted.life);
        let body = json!({
            "user": user,
            "reusable": wanted.reusable,
            "ephemeral": wanted.ephemeral,
            "expiration": expiration.to_string(),
        });
        let made: CreatedKey = self
            .call(Method::POST, "preauthkey", &[], Some(body))
            .await?;
        let made = made.pre_auth_key;
        Ok(VpnKey {
            id: made.id,
            key: made.key,
            created_at: key_time("preAuthKey.createdAt", made.created_at)?,
            expires_at: key_time("preAuthKey.expiration", made.expiration)?,
        })
    }

    async fn nodes(&self, user: Option<&str>) -> Result<Vec<VpnNode>, VpnError> {
        let query: Vec<_> = user.map(|name| ("user", name)).into_iter().collect();
        if let Some(name) = user
            && self.find(name).await?.is_none()
        {
            // headscale answers a list for an unknown user with an error, not with an empty list.
            return Ok(Vec::new());
        }
        let found: NodeList = self.call(Method::GET, "node", &query, None).await?;
        found.nodes.into_iter().map(node).collect()
    }

    async fn remove(&self, user: &str, key: &str) -> Result<(), VpnError> {
        // The key expires before the nodes are listed: otherwise a node could join by it after the
        // list and stay in the VPN.
        let body = json!({ "id": key });
        let _done: EmptyAnswer = self
            .call(Method::POST, "preauthkey/expire", &[], Some(body))
            .await?;
        let nodes = self.nodes(Some(user)).await?;
        for node in nodes.iter().filter(|node| node.key.as_deref() == Some(key)) {
            let what = format!("node/{}", node.id);
            let gone = self
                .call::<EmptyAnswer>(Method::DELETE, &what, &[], None)
                .await;
            match gone {
                Ok(_) => {}
                Err(error) if self.has_node(node.id, user).await? => return Err(error),
                // Another request removed the node meanwhile, which is the wanted end.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Converts a node of the answer.
///
/// # Errors
/// A field cannot be read. Its node must not get a made-up number: a removal would then delete
/// another node, or none.
fn node(node: HeadscaleNode) -> Result<VpnNode, VpnError> {
    let id = node.id.parse();
    Ok(VpnNode {
        id: id.map_err(|_| VpnError::unreadable("node.id", &node.id))?,
        name: Some(node.given_name)
            .filter(|name| !name.is_empty())
            .unwrap_or(node.name),
        user: node.user.unwrap_or_default().name,
        key: node.pre_auth_key.map(|key| key.id),
        addresses: node.ip_addresses,
        last_seen: time("node.lastSeen", node.last_seen)?,
        online: node.online,
    })
}

/// Reads an RFC 3339 time of a field. `None` means that it is missing, or before 1970: headscale
/// writes year 1 for a time that was never set.
///
/// # Errors
/// The text is not a time; the error names the field.
fn time(field: &str, text: Option<String>) -> Result<Option<Timestamp>, VpnError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let at =
        prost_types::Timestamp::from_str(&text).map_err(|_| VpnError::unreadable(field, &text))?;
    let (Ok(seconds), Ok(ms)) = (
        u64::try_from(at.seconds),
        u64::try_from(at.nanos / 1_000_000),
    ) else {
        return Ok(None);
    };
    let ms = seconds.saturating_mul(1000).saturating_add(ms);
    Ok(Some(Timestamp::from_ms(ms)))
}

/// Reads a time that every new key has.
///
/// # Errors
/// The time is missing or cannot be read; the error names the field. A made-up time would be shown
/// as a key that expired in 1970.
fn key_time(field: &str, text: Option<String>) -> Result<Timestamp, VpnError> {
    let is_missing = || VpnError::Refused(format!("without a time in {field}"));
    time(field, text)?.ok_or_else(is_missing)
}

#[cfg(test)]
mod tests;
