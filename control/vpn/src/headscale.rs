//! headscale as the VPN, over its REST API.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::{Vpn, VpnError, VpnKey, VpnNode, WantedVpnKey};
use anyhow::{Context as _, Result, ensure};
use proto_types::Timestamp;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, Method, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The largest answer, bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// The part of the configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    url: Option<String>,
    address: Option<String>,
    api_key_file: Option<PathBuf>,
}

/// The same, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    url: Url,
    address: String,
    api_key_file: PathBuf,
}

impl Section {
    pub fn check(self) -> Result<Option<Settings>> {
        let Some(text) = self.url else {
            ensure!(
                self.address.is_none() && self.api_key_file.is_none(),
                "vpn.url: is missing; name the headscale, for example \
                 url = \"https://headscale.example\""
            );
            return Ok(None);
        };
        const LIKE: &str = "vpn.url: is not a URL like https://headscale.example";
        let url = Url::parse(&text).context(LIKE)?;
        // Not repeated: there is a password in it.
        ensure!(
            url.username().is_empty() && url.password().is_none(),
            "vpn.url: must not hold a user or a password; the key goes into vpn.api_key_file"
        );
        let is_good = matches!(url.scheme(), "http" | "https") && url.has_host();
        ensure!(is_good && !url.cannot_be_a_base(), "{LIKE}, but {text:?}");
        let api_key_file = self.api_key_file.context(
            "vpn.api_key_file: is missing; name a file with a key that `headscale apikeys create` \
             makes",
        )?;
        Ok(Some(Settings {
            address: self.address.unwrap_or(text),
            url,
            api_key_file,
        }))
    }
}

/// The VPN of the configuration.
pub fn open(settings: Option<&Settings>) -> Result<Option<Arc<dyn Vpn>>> {
    let Some(settings) = settings else {
        return Ok(None);
    };
    let path = &settings.api_key_file;
    let key = std::fs::read_to_string(path)
        .with_context(|| format!("vpn.api_key_file: cannot read {}", path.display()))?;
    let key = key.trim().to_owned();
    ensure!(
        !key.is_empty(),
        "vpn.api_key_file: {} is empty; `headscale apikeys create` makes a key",
        path.display()
    );
    let client = Client::builder().timeout(TIMEOUT).build();
    Ok(Some(Arc::new(Headscale {
        client: client.context("no HTTP client for the VPN")?,
        url: settings.url.clone(),
        address: settings.address.clone(),
        key,
    })))
}

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

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct User {
    id: String,
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Users {
    users: Vec<User>,
}

#[derive(Debug, Deserialize)]
struct OneUser {
    user: User,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneKey {
    pre_auth_key: Key,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Key {
    id: String,
    key: String,
    #[serde(default)]
    expiration: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct KeyNumber {
    id: String,
}

/// What is answered where there is nothing to say.
#[derive(Debug, Deserialize)]
struct Done {}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Nodes {
    nodes: Vec<Node>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Node {
    id: String,
    name: String,
    given_name: String,
    user: Option<User>,
    pre_auth_key: Option<KeyNumber>,
    ip_addresses: Vec<String>,
    last_seen: Option<String>,
    online: bool,
}

impl Headscale {
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
            .map_err(|error| VpnError::Refused(format!("what is not understood: {error}")))
    }

    async fn find(&self, name: &str) -> Result<Option<User>, VpnError> {
        let found: Users = self
            .call(Method::GET, "user", &[("name", name)], None)
            .await?;
        Ok(found.users.into_iter().find(|it| it.name == name))
    }

    async fn has_node(&self, id: u64, user: &str) -> Result<bool, VpnError> {
        let nodes = self.nodes(Some(user)).await?;
        Ok(nodes.iter().any(|it| it.id == id))
    }

    /// The number of a user, who is made if need be.
    async fn user(&self, name: &str) -> Result<String, VpnError> {
        if let Some(user) = self.find(name).await? {
            return Ok(user.id);
        }
        let body = json!({ "name": name });
        let made = self
            .call::<OneUser>(Method::POST, "user", &[], Some(body))
            .await;
        match made {
            Ok(made) => Ok(made.user.id),
            // Somebody else made it meanwhile.
            Err(error) => self.find(name).await?.map(|it| it.id).ok_or(error),
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
        let made: OneKey = self
            .call(Method::POST, "preauthkey", &[], Some(body))
            .await?;
        let made = made.pre_auth_key;
        Ok(VpnKey {
            id: made.id,
            key: made.key,
            created_at: made.created_at.and_then(time).unwrap_or_default(),
            expires_at: made.expiration.and_then(time).unwrap_or_default(),
        })
    }

    async fn nodes(&self, user: Option<&str>) -> Result<Vec<VpnNode>, VpnError> {
        let query: Vec<_> = user.map(|it| ("user", it)).into_iter().collect();
        if let Some(name) = user
            && self.find(name).await?.is_none()
        {
            // It refuses who is not known.
            return Ok(Vec::new());
        }
        let found: Nodes = self.call(Method::GET, "node", &query, None).await?;
        let nodes = found.nodes.into_iter().map(|it| VpnNode {
            id: it.id.parse().unwrap_or_default(),
            name: Some(it.given_name)
                .filter(|name| !name.is_empty())
                .unwrap_or(it.name),
            user: it.user.unwrap_or_default().name,
            key: it.pre_auth_key.map(|key| key.id),
            addresses: it.ip_addresses,
            last_seen: it.last_seen.and_then(time),
            online: it.online,
        });
        Ok(nodes.collect())
    }

    async fn remove(&self, user: &str, key: &str) -> Result<(), VpnError> {
        // First, so that no node comes in after the look.
        let body = json!({ "id": key });
        let _done: Done = self
            .call(Method::POST, "preauthkey/expire", &[], Some(body))
            .await?;
        let nodes = self.nodes(Some(user)).await?;
        for node in nodes.iter().filter(|it| it.key.as_deref() == Some(key)) {
            let what = format!("node/{}", node.id);
            let gone = self.call::<Done>(Method::DELETE, &what, &[], None).await;
            match gone {
                Ok(_) => {}
                Err(error) if self.has_node(node.id, user).await? => return Err(error),
                // Somebody else removed it meanwhile.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

fn time(text: String) -> Option<Timestamp> {
    let at = prost_types::Timestamp::from_str(&text).ok()?;
    let seconds = u64::try_from(at.seconds).ok()?;
    let ms = u64::try_from(at.nanos / 1_000_000).ok()?;
    Some(Timestamp::from_ms(
        seconds.saturating_mul(1000).saturating_add(ms),
    ))
}

#[cfg(test)]
#[path = "headscale_tests.rs"]
mod tests;
