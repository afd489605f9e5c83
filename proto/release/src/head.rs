use crate::key::{KEY_ID_BYTES, KeyId, ReleaseKey};
use crate::{ReleaseError, ReleaseManifest};

/// First bytes of a release; the last one is the version of the format.
const MAGIC: &[u8; 8] = b"MMREL\0\0\x01";
/// Bytes of the manifest's length, big-endian.
const LENGTH_BYTES: usize = 4;
/// Longest manifest, bytes. One with the longest fields has about 6 KiB.
const MANIFEST_BYTES_MAX: usize = 16 << 10;
/// Length of a signature, bytes.
pub(crate) const SIGNATURE_BYTES: usize = 64;
/// Signed before the head, so that no signature for another purpose passes for one of a release.
const PURPOSE: &[u8] = b"metalmesh release manifest\0";

/// The head of a release: the manifest, the id of the key, and the signature. Nothing of it counts
/// before [`SignedHead::verify`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHead {
    manifest: Vec<u8>,
    key: KeyId,
    signature: [u8; SIGNATURE_BYTES],
}

impl SignedHead {
    /// Bytes at the begin of a release that tell how long its head is.
    pub const PREFIX_BYTES: usize = MAGIC.len() + LENGTH_BYTES;

    pub(crate) fn new(manifest: Vec<u8>, key: KeyId, signature: [u8; SIGNATURE_BYTES]) -> Self {
        Self {
            manifest,
            key,
            signature,
        }
    }

    /// The number of bytes of the head after its prefix, at most 17 KiB.
    ///
    /// # Errors
    /// [`ReleaseError::Format`]: it is no release, or its manifest is too long.
    pub fn rest_bytes(prefix: &[u8]) -> Result<usize, ReleaseError> {
        let no_release = || ReleaseError::Format("the file is no signed release".to_owned());
        let length = prefix.strip_prefix(MAGIC).ok_or_else(no_release)?;
        let length: [u8; LENGTH_BYTES] = length.try_into().map_err(|_| no_release())?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > MANIFEST_BYTES_MAX {
            let reason = format!("the manifest has more than {MANIFEST_BYTES_MAX} bytes");
            return Err(ReleaseError::Format(reason));
        }
        Ok(length + KEY_ID_BYTES + SIGNATURE_BYTES)
    }

    /// Reads a whole head, prefix included, and nothing after it.
    ///
    /// # Errors
    /// [`ReleaseError::Format`]: it is no head, or has another length.
    pub fn decode(head: &[u8]) -> Result<Self, ReleaseError> {
        let short = || ReleaseError::Format("the head is cut off".to_owned());
        let (prefix, rest) = head
            .split_at_checked(Self::PREFIX_BYTES)
            .ok_or_else(short)?;
        if rest.len() != Self::rest_bytes(prefix)? {
            return Err(short());
        }
        let (rest, signature) = rest
            .split_last_chunk::<SIGNATURE_BYTES>()
            .ok_or_else(short)?;
        let (manifest, key) = rest.split_last_chunk::<KEY_ID_BYTES>().ok_or_else(short)?;
        Ok(Self::new(manifest.to_vec(), KeyId(*key), *signature))
    }

    /// The manifest, if a trusted key has signed it.
    ///
    /// # Errors
    /// [`ReleaseError::UnknownKey`], [`ReleaseError::Signature`], or [`ReleaseError::Format`] of a
    /// manifest that is signed and wrong.
    pub fn verify(&self, trusted: &[ReleaseKey]) -> Result<ReleaseManifest, ReleaseError> {
        let signed = signed_bytes(&self.manifest);
        // The id is not signed, and not needed: any trusted key may have signed.
        if trusted
            .iter()
            .any(|key| key.has_signed(&signed, &self.signature))
        {
            return ReleaseManifest::decode(&self.manifest);
        }
        if trusted.iter().any(|key| key.id() == self.key) {
            return Err(ReleaseError::Signature(self.key));
        }
        Err(ReleaseError::UnknownKey(self.key))
    }

    /// The head as bytes, prefix included.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = begin(&self.manifest);
        bytes.extend(self.key.0);
        bytes.extend(self.signature);
        bytes
    }
}

/// The bytes that a signature is for.
pub(crate) fn signed_bytes(manifest: &[u8]) -> Vec<u8> {
    [PURPOSE, &begin(manifest)].concat()
}

/// Prefix and manifest.
fn begin(manifest: &[u8]) -> Vec<u8> {
    // A longer one is refused by every reader.
    let length = u32::try_from(manifest.len()).unwrap_or(u32::MAX);
    [&MAGIC[..], &length.to_be_bytes(), manifest].concat()
}
