//! Cipher suites: the algorithms of a session.

use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;

/// The algorithms of a session (specification, table 22-20). Both suites encrypt with AES-CBC-128.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CipherSuite {
    /// Suite 17: RAKP-HMAC-SHA256, HMAC-SHA256-128.
    Sha256,
    /// Suite 3: RAKP-HMAC-SHA1, HMAC-SHA1-96; for BMCs without suite 17.
    Sha1,
}

impl CipherSuite {
    /// The order in which a session tries them, strongest first.
    pub const PREFERRED: [Self; 2] = [Self::Sha256, Self::Sha1];

    /// Number of the authentication algorithm (table 13-17).
    pub(crate) fn authentication(self) -> u8 {
        match self {
            Self::Sha256 => 0x03,
            Self::Sha1 => 0x01,
        }
    }

    /// Number of the integrity algorithm (table 13-18).
    pub(crate) fn integrity(self) -> u8 {
        match self {
            Self::Sha256 => 0x04,
            Self::Sha1 => 0x01,
        }
    }

    /// Length of a full HMAC, bytes.
    pub(crate) fn hmac_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha1 => 20,
        }
    }

    /// Length of the truncated HMAC in each packet, bytes.
    pub(crate) fn integrity_len(self) -> usize {
        match self {
            Self::Sha256 => 16,
            Self::Sha1 => 12,
        }
    }

    /// HMAC over the concatenation of `parts`.
    pub(crate) fn hmac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        match self {
            Self::Sha256 => mac::<Hmac<Sha256>>(key, parts)
                .finalize()
                .into_bytes()
                .to_vec(),
            Self::Sha1 => mac::<Hmac<Sha1>>(key, parts)
                .finalize()
                .into_bytes()
                .to_vec(),
        }
    }

    /// `true` if `code` is the HMAC or a prefix of it; compared in constant time. The caller checks
    /// the length of `code`.
    pub(crate) fn verify(self, key: &[u8], parts: &[&[u8]], code: &[u8]) -> bool {
        match self {
            Self::Sha256 => mac::<Hmac<Sha256>>(key, parts)
                .verify_truncated_left(code)
                .is_ok(),
            Self::Sha1 => mac::<Hmac<Sha1>>(key, parts)
                .verify_truncated_left(code)
                .is_ok(),
        }
    }
}

#[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
fn mac<M: Mac + hmac::digest::KeyInit>(key: &[u8], parts: &[&[u8]]) -> M {
    let mut mac = <M as Mac>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(part);
    }
    mac
}
