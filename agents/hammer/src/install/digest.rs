//! The digest of an image: the expected one, compared with that of the received bytes.

use ring::digest::{Context, SHA256, SHA512};

use super::image::ImageError;

/// The expected digest, and the hash of the bytes received so far.
pub(super) struct Digest {
    text: String,
    context: Context,
}

impl Digest {
    /// Parses `sha256:<hex>` or `sha512:<hex>`.
    pub(super) fn parse(text: &str) -> Result<Self, ImageError> {
        let bad = || ImageError::DigestSpec(text.to_string());
        // `check` compares the digests as text.
        let text = text.trim().to_lowercase();
        let (name, hex) = text.split_once(':').ok_or_else(bad)?;
        let algorithm = match name {
            "sha256" => &SHA256,
            "sha512" => &SHA512,
            _ => return Err(bad()),
        };
        let is_hex = hex.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex || hex.len() != algorithm.output_len() * 2 {
            return Err(bad());
        }
        Ok(Self {
            text: text.clone(),
            context: Context::new(algorithm),
        })
    }

    /// Adds received bytes to the hash.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    /// Compares the hash of all received bytes with the expected digest.
    pub(super) fn check(self) -> Result<(), ImageError> {
        let name = self.text.split(':').next().unwrap_or_default();
        let have = self.context.finish();
        let hex: String = have.as_ref().iter().map(|b| format!("{b:02x}")).collect();
        let have = format!("{name}:{hex}");
        if have == self.text {
            Ok(())
        } else {
            Err(ImageError::Digest {
                want: self.text,
                have,
            })
        }
    }
}
