//! The nonce that proves which BMC a machine has: only software on the machine itself can read it
//! from the asset tag.

use std::fmt;

use rand::Rng;
use sha2::{Digest, Sha256};

/// Prefix by which the installer tells a nonce from an inventory number.
const PREFIX: &[u8] = b"mm-";
/// Letters of a nonce, five bits each.
const LETTERS: usize = 26;
/// Base32 of RFC 4648, section 6, in lower case: characters that no BMC changes or refuses.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// 130 random bits. Only the BMC and the machine see them; control gets the digest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Nonce([u8; PREFIX.len() + LETTERS]);

impl Nonce {
    /// Generates a nonce from the generator that the operating system seeds.
    #[must_use]
    pub fn generate() -> Self {
        let mut text = [0; PREFIX.len() + LETTERS];
        let (prefix, letters) = text.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX);
        let mut random = rand::rng();
        letters.fill_with(|| ALPHABET[random.random_range(0..ALPHABET.len())]);
        Self(text)
    }

    /// The text that is written into the BMC.
    #[must_use]
    pub fn text(&self) -> &str {
        // Only ASCII was put in, so the default is never used.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The digest that control is sent.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(self.0).into()
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<redacted>")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_nonce_is_another_text_of_the_agreed_form() {
        let texts: Vec<String> = (0..200)
            .map(|_| Nonce::generate().text().to_owned())
            .collect();
        for text in &texts {
            let letters = text.strip_prefix("mm-").unwrap();
            assert_eq!(letters.len(), LETTERS, "{text}");
            assert!(letters.bytes().all(|it| ALPHABET.contains(&it)), "{text}");
        }
        let used: BTreeSet<char> = texts.iter().flat_map(|text| text[3..].chars()).collect();
        assert_eq!(used.len(), ALPHABET.len(), "each letter comes up");
        assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), texts.len());
    }

    #[test]
    fn it_is_not_shown() {
        let nonce = Nonce::generate();
        assert!(!format!("{nonce:?}").contains(&nonce.text()[3..]));
    }
}
