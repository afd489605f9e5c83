//! Encoding of values on disk: one version byte, then CBOR.
//!
//! CBOR contains field names, so a field can be added without a new version. The version changes
//! only when old bytes need other code to be decoded.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The encoded answer to a question, once it is there.
pub(crate) type AnswerFuture = BoxFuture<'static, Result<Bytes, StoreCodecError>>;

/// Decodes a question to the leader, answers it and encodes the answer.
pub(crate) type Answerer = Arc<dyn Fn(&[u8]) -> AnswerFuture + Send + Sync>;

/// The version this build writes.
pub(crate) const VERSION: u8 = 1;

/// A value cannot be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum StoreCodecError {
    /// The value has no CBOR form. This is a bug.
    #[error("value cannot be encoded: {0}")]
    Encode(String),
    /// There is no version byte.
    #[error("empty value")]
    Empty,
    /// Another build wrote the value, in a version that this one does not read.
    #[error(
        "value has version {got}, this build reads version {known}: use the build that wrote it"
    )]
    Version {
        /// The version byte found.
        got: u8,
        /// The version that this build reads.
        known: u8,
    },
    /// The command was written by a newer program.
    #[error(
        "the command is of feature level {got}, this program knows up to {max}: start the node \
         with the newer metalmeshd that it had"
    )]
    Newer {
        /// The level that it needs.
        got: u32,
        /// The highest that this program knows.
        max: u32,
    },
    /// The checksum before the value does not match, or is truncated.
    #[error("the checksum does not match")]
    Checksum,
    /// The bytes are not a value of the expected type.
    #[error("value cannot be decoded: {0}")]
    Decode(String),
}

impl From<StoreCodecError> for std::io::Error {
    fn from(error: StoreCodecError) -> Self {
        Self::new(std::io::ErrorKind::InvalidData, error)
    }
}

/// Appends the encoded `value` to `out`.
pub(crate) fn encode_into<T: Serialize>(
    value: &T,
    out: &mut Vec<u8>,
) -> Result<(), StoreCodecError> {
    out.push(VERSION);
    ciborium::into_writer(value, out).map_err(|e| StoreCodecError::Encode(e.to_string()))
}

/// Encodes `value`.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreCodecError> {
    let mut out = Vec::with_capacity(128);
    encode_into(value, &mut out)?;
    Ok(out)
}

/// Decodes a value of [`encode`]; trailing bytes are an error.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoreCodecError> {
    let (version, mut rest) = bytes.split_first().ok_or(StoreCodecError::Empty)?;
    if *version != VERSION {
        return Err(StoreCodecError::Version {
            got: *version,
            known: VERSION,
        });
    }
    let value =
        ciborium::from_reader(&mut rest).map_err(|e| StoreCodecError::Decode(e.to_string()))?;
    // A longer value means that the bytes are not of this type: CBOR decodes a prefix happily.
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(StoreCodecError::Decode(format!(
            "{} bytes left over",
            rest.len()
        )))
    }
}

/// Encodes `value` behind its CRC-32, for a file of its own.
pub(crate) fn encode_summed<T: Serialize>(value: &T) -> Result<Vec<u8>, StoreCodecError> {
    let value = encode(value)?;
    Ok([&crc32fast::hash(&value).to_le_bytes()[..], &value].concat())
}

/// Decodes a value of [`encode_summed`].
pub(crate) fn decode_summed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, StoreCodecError> {
    // The checksum comes first: damaged CBOR may still decode, to another value.
    let (sum, value) = bytes
        .split_first_chunk::<4>()
        .ok_or(StoreCodecError::Checksum)?;
    if crc32fast::hash(value).to_le_bytes() != *sum {
        return Err(StoreCodecError::Checksum);
    }
    decode(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let value = (7_u64, "leaf-1".to_owned(), vec![1_u8, 2]);
        let bytes = encode(&value).unwrap();
        assert_eq!(decode::<(u64, String, Vec<u8>)>(&bytes).unwrap(), value);
        let mut summed = encode_summed(&value).unwrap();
        assert_eq!(
            decode_summed::<(u64, String, Vec<u8>)>(&summed).unwrap(),
            value
        );
        summed[7] ^= 1;
        for bad in [&summed[..], &summed[..3]] {
            let read = decode_summed::<(u64, String, Vec<u8>)>(bad);
            assert!(matches!(read, Err(StoreCodecError::Checksum)), "{read:?}");
        }
    }

    #[test]
    fn refuses_what_it_did_not_write() {
        assert!(matches!(decode::<u64>(&[]), Err(StoreCodecError::Empty)));
        assert!(matches!(
            decode::<u64>(&[9, 1]),
            Err(StoreCodecError::Version { got: 9, .. })
        ));
        assert!(matches!(
            decode::<u64>(&[VERSION]),
            Err(StoreCodecError::Decode(_))
        ));
        assert!(matches!(
            decode::<u64>(&[VERSION, 1, 1]),
            Err(StoreCodecError::Decode(_))
        ));
    }
}
