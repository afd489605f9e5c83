//! A login on its way: kept by the browser, sealed, so that any node can go on with it.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use control_pki::SealingKey;
use http::HeaderMap;
use http::header::COOKIE;
use proto_types::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use url::Url;

/// Time limit of a login, milliseconds: ten minutes.
pub(super) const LIFE_MS: u64 = 10 * 60_000;
/// Name of the cookie.
const COOKIE_NAME: &str = "metalmesh-login";
/// Context string of the sealed cookie.
const SEALED_AS: &str = "login-flow-1";
/// Longest cookie accepted, bytes; a longer one is ignored.
const COOKIE_BYTES_MAX: usize = 8192;
/// Bytes of randomness in each secret.
const RANDOM_LEN: usize = 32;

/// A login on its way.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flow {
    /// Where the token goes.
    pub(super) redirect: Url,
    /// Ties the answer to the browser that asked.
    pub(super) state: String,
    /// Ties the provider's token to this login.
    pub(super) nonce: String,
    /// Ties the provider's code to this login (PKCE).
    pub(super) verifier: String,
    expires_ms: u64,
}

impl Flow {
    /// A new flow; `None` if the system has no randomness.
    pub(super) fn begin(redirect: Url, now: Timestamp) -> Option<Self> {
        Some(Self {
            redirect,
            state: random()?,
            nonce: random()?,
            verifier: random()?,
            expires_ms: now.plus_ms(LIFE_MS).ms(),
        })
    }

    /// For the browser to keep: the cookie's header.
    pub(super) fn cookie(&self, seal: &SealingKey, is_secure: bool) -> Option<String> {
        let plain = serde_json::to_vec(self).ok()?;
        let sealed = URL_SAFE_NO_PAD.encode(seal.seal(SEALED_AS, &plain).ok()?);
        Some(header(&sealed, LIFE_MS / 1000, is_secure))
    }

    /// The one that this browser keeps, if `state` belongs to it and it is not over.
    pub(super) fn of_browser(
        headers: &HeaderMap,
        state: &str,
        seal: &SealingKey,
        now: Timestamp,
    ) -> Option<Self> {
        let cookies = headers.get_all(COOKIE).iter();
        let pairs = cookies
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'));
        let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
        let (_, sealed) = named.find(|(name, _)| *name == COOKIE_NAME)?;
        if sealed.len() > COOKIE_BYTES_MAX {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let plain = seal.open(SEALED_AS, &sealed).ok()?;
        let flow: Self = serde_json::from_slice(&plain).ok()?;
        let is_same = flow.state.len() == state.len()
            && flow
                .state
                .bytes()
                .zip(state.bytes())
                .fold(0, |d, (a, b)| d | (a ^ b))
                == 0;
        (is_same && now.ms() < flow.expires_ms).then_some(flow)
    }
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow").finish_non_exhaustive()
    }
}

/// Has the browser forget it.
pub(super) fn forget(is_secure: bool) -> String {
    header("", 0, is_secure)
}

fn header(value: &str, life_s: u64, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    format!("{COOKIE_NAME}={value}; Path=/auth; Max-Age={life_s}; HttpOnly; SameSite=Lax{secure}")
}

fn random() -> Option<String> {
    let mut bytes = [0; RANDOM_LEN];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookie: &str) -> HeaderMap {
        let value = cookie.split(';').next().unwrap();
        [(COOKIE, format!("a=b; {value}").parse().unwrap())]
            .into_iter()
            .collect()
    }

    #[test]
    fn only_the_browser_that_asked_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let seal = SealingKey::load(&dir.path().join("a"), true).unwrap();
        let other = SealingKey::load(&dir.path().join("b"), true).unwrap();
        let now = Timestamp::from_ms(1_000);
        let flow = Flow::begin("http://localhost:1/c".parse().unwrap(), now).unwrap();
        let cookie = flow.cookie(&seal, true).unwrap();
        assert!(cookie.contains("HttpOnly") && cookie.ends_with("; Secure"));
        assert!(!cookie.contains(&flow.verifier));
        let kept = headers(&cookie);
        let found = Flow::of_browser(&kept, &flow.state, &seal, now);
        assert_eq!(found, Some(flow.clone()));
        let late = now.plus_ms(LIFE_MS);
        assert_eq!(Flow::of_browser(&kept, &flow.state, &seal, late), None);
        assert_eq!(Flow::of_browser(&kept, &flow.nonce, &seal, now), None);
        assert_eq!(Flow::of_browser(&kept, "", &seal, now), None);
        assert_eq!(Flow::of_browser(&kept, &flow.state, &other, now), None);
        assert_eq!(
            Flow::of_browser(&HeaderMap::new(), &flow.state, &seal, now),
            None
        );
        let forgotten = headers(&forget(false));
        assert_eq!(Flow::of_browser(&forgotten, &flow.state, &seal, now), None);
    }
}
