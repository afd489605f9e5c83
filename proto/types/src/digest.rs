//! Digests of content.

use std::fmt;
use std::str::FromStr;

use crate::{ParseError, text_serde};

/// The hash function of a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DigestAlgorithm {
    /// SHA-256, 32 bytes.
    Sha256,
    /// SHA-512, 64 bytes.
    Sha512,
}

impl DigestAlgorithm {
    /// The prefix in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }
    /// Length of a digest, bytes.
    pub const fn size(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }
}

/// A digest. Its text is `sha256:<hex>` or `sha512:<hex>`; parsing also accepts bare hex of either
/// length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: DigestAlgorithm,
    bytes: Box<[u8]>,
}

impl Digest {
    /// A SHA-256.
    pub fn sha256(bytes: [u8; 32]) -> Self {
        Self {
            algorithm: DigestAlgorithm::Sha256,
            bytes: Box::new(bytes),
        }
    }
    /// A SHA-512.
    pub fn sha512(bytes: [u8; 64]) -> Self {
        Self {
            algorithm: DigestAlgorithm::Sha512,
            bytes: Box::new(bytes),
        }
    }
    /// The hash function.
    pub fn algorithm(&self) -> DigestAlgorithm {
        self.algorithm
    }
    /// The digest's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// The bytes as lower-case hex.
    pub fn hex(&self) -> String {
        self.bytes.iter().map(|b| format!("{b:02x}")).collect()
    }
    /// Compares in constant time.
    pub fn same_as(&self, other: &Self) -> bool {
        self.algorithm == other.algorithm
            && self
                .bytes
                .iter()
                .zip(&other.bytes)
                .fold(0, |acc, (a, b)| acc | (a ^ b))
                == 0
    }
}

impl FromStr for Digest {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || {
            ParseError::new(
                "digest",
                text,
                "must be sha256:<64 hex digits> or sha512:<128>",
            )
        };
        let (name, hex) = text
            .split_once(':')
            .map_or((None, text), |(n, h)| (Some(n), h));
        let algorithm = match (name, hex.len()) {
            (Some("sha256") | None, 64) => DigestAlgorithm::Sha256,
            (Some("sha512") | None, 128) => DigestAlgorithm::Sha512,
            _ => return Err(bad()),
        };
        let digit = |b: u8| {
            char::from(b)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        let bytes = hex
            .as_bytes()
            .chunks_exact(2)
            .map(|pair| match pair {
                [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
                _ => None,
            })
            .collect::<Option<Box<[u8]>>>()
            .ok_or_else(bad)?;
        Ok(Self { algorithm, bytes })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

text_serde!(Digest);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let hex = "ab".repeat(32);
        let digest: Digest = format!("sha256:{hex}").parse().unwrap();
        assert_eq!(digest.to_string(), format!("sha256:{hex}"));
        assert!(digest.same_as(&hex.parse().unwrap()));
        assert!(format!("sha512:{hex}").parse::<Digest>().is_err());
        assert!(
            format!("sha256:{}", "zz".repeat(32))
                .parse::<Digest>()
                .is_err()
        );
        assert!("sha256:".parse::<Digest>().is_err());
    }
}
