//! The hash of an audit record, as text and as bytes.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::{ParseError, Timestamp};

/// Prefix of the hashed bytes at the start of a chain, so that no hash of a record is equal to one of
/// a start.
const ANCHOR: &[u8] = b"metalmesh audit anchor 1\n";
/// Bytes of a hash.
const LEN: usize = 32;

/// SHA-256 of a record and all before it. Text is 64 hexadecimal digits; serde writes bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AuditHash([u8; LEN]);

impl AuditHash {
    /// A hash that was stored or sent.
    pub const fn new(bytes: [u8; LEN]) -> Self {
        Self(bytes)
    }

    /// Where a chain begins: `sequence` is the last record before it.
    pub fn anchor(sequence: u64, time: Timestamp) -> Self {
        let mut hash = Sha256::new();
        hash.update(ANCHOR);
        hash.update(sequence.to_be_bytes());
        hash.update(time.ms().to_be_bytes());
        Self(hash.finalize().into())
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; LEN] {
        &self.0
    }
}

impl fmt::Display for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AuditHash {
    type Err = ParseError;
    fn from_str(hex: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("audit hash", hex, "must be 64 hexadecimal digits");
        let mut bytes = [0; LEN];
        if hex.len() != 2 * LEN || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(bad());
        }
        for (byte, digits) in bytes.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            let digits = str::from_utf8(digits).map_err(|_| bad())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

impl TryFrom<&[u8]> for AuditHash {
    type Error = ParseError;
    fn try_from(bytes: &[u8]) -> Result<Self, ParseError> {
        let fits = bytes.try_into().map(Self);
        fits.map_err(|_| ParseError::new("audit hash", "of other length", "must be 32 bytes"))
    }
}

impl Serialize for AuditHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for AuditHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl<'de> Visitor<'de> for Bytes {
            type Value = AuditHash;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("32 bytes")
            }
            fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<AuditHash, E> {
                AuditHash::try_from(bytes).map_err(E::custom)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<AuditHash, A::Error> {
                let mut bytes = Vec::with_capacity(LEN);
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                    if bytes.len() > LEN {
                        break;
                    }
                }
                AuditHash::try_from(bytes.as_slice()).map_err(A::Error::custom)
            }
        }
        from.deserialize_bytes(Bytes)
    }
}
