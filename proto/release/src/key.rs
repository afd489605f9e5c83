use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ReleaseError;

/// First part of a public key's text.
const PREFIX: &str = "ed25519:";
/// Length of a public key, bytes.
const KEY_BYTES: usize = 32;
/// Length of a key's id, bytes.
pub(crate) const KEY_ID_BYTES: usize = 8;

/// The id of a key: the first bytes of the SHA-256 of its public half.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub(crate) [u8; KEY_ID_BYTES]);

impl fmt::Display for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The public half of a key that signs releases. Its text is `ed25519:` and base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseKey([u8; KEY_BYTES]);

impl ReleaseKey {
    /// The key of these bytes. `None` if their number is another one.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The key's id.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let whole = digest(&SHA256, &self.0);
        let mut id = [0; KEY_ID_BYTES];
        for (to, from) in id.iter_mut().zip(whole.as_ref()) {
            *to = *from;
        }
        KeyId(id)
    }

    /// `true` if the signature is this key's for these bytes.
    pub(crate) fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        let key = UnparsedPublicKey::new(&ED25519, self.0);
        key.verify(bytes, signature).is_ok()
    }
}

impl FromStr for ReleaseKey {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let bytes = text
            .strip_prefix(PREFIX)
            .and_then(|text| STANDARD.decode(text).ok());
        bytes
            .and_then(|bytes| Self::of_bytes(&bytes))
            .ok_or(ReleaseError::KeyText)
    }
}

impl fmt::Display for ReleaseKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for ReleaseKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Serialize for ReleaseKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReleaseKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyText;
        impl de::Visitor<'_> for KeyText {
            type Value = ReleaseKey;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a public key of releases")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<ReleaseKey, E> {
                text.parse().map_err(|_| {
                    E::custom(
                        "it is no public key of releases; write it as `metalmesh release keygen` \
                         prints it",
                    )
                })
            }
        }
        deserializer.deserialize_str(KeyText)
    }
}
