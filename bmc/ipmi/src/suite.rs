use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::Sha256;

/// Which algorithms a session uses (specification, table 22-20). Both encrypt with AES-CBC-128.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CipherSuite {
    /// Suite 17: RAKP-HMAC-SHA256, HMAC-SHA256-128.
    Sha256,
    /// Suite 3: RAKP-HMAC-SHA1, HMAC-SHA1-96; for BMCs that know nothing better.
    Sha1,
}

impl CipherSuite {
    /// In the order in which a session tries them.
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

    /// Bytes of a full HMAC.
    pub(crate) fn hmac_len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha1 => 20,
        }
    }

    /// Bytes of the HMAC that travel with each packet.
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

    /// Whether `code` is the (perhaps truncated) HMAC, in constant time.
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
