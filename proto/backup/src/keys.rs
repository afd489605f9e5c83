//! Keys of encrypted backups: X25519 keys of age.

use std::fmt;

use age::secrecy::ExposeSecret;
use age::x25519::{Identity, Recipient};

use crate::error::BackupError;

/// Most recipients of one backup. A longer list is refused.
pub const RECIPIENTS_MAX: usize = 16;

/// The public keys that a backup is encrypted to.
#[derive(Clone)]
pub struct Recipients(pub(crate) Vec<Recipient>);

impl Recipients {
    /// Parses recipients. An empty list means that the backup is not encrypted.
    ///
    /// # Errors
    /// [`BackupError::Recipient`] if a text is not a recipient, or there are too many.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, BackupError> {
        let one = |text: &str| {
            text.trim().parse().map_err(|_| BackupError::Recipient {
                text: text.chars().take(80).collect(),
            })
        };
        let all: Vec<Recipient> = texts.into_iter().map(one).collect::<Result<_, _>>()?;
        if all.len() > RECIPIENTS_MAX {
            return Err(BackupError::Recipient {
                text: format!("the {}th recipient", RECIPIENTS_MAX + 1),
            });
        }
        Ok(Self(all))
    }

    /// `true` if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Recipients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(ToString::to_string))
            .finish()
    }
}

/// A new key pair for a backup.
pub struct NewKey(Identity);

impl NewKey {
    /// Generates a key pair.
    pub fn generate() -> Self {
        Self(Identity::generate())
    }

    /// The public key, as a recipient.
    pub fn recipient(&self) -> String {
        self.0.to_public().to_string()
    }

    /// The content of the key file. Secret.
    pub fn file(&self) -> String {
        format!(
            "# public key: {}\n{}\n",
            self.recipient(),
            self.0.to_string().expose_secret()
        )
    }
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NewKey({})", self.recipient())
    }
}

/// Private keys to open a backup with.
pub struct Identities(pub(crate) Vec<Identity>);

impl Identities {
    /// Parses a key file in the format of `age-keygen`: comments, and one key per line.
    ///
    /// # Errors
    /// [`BackupError::Identity`] if there is no key, or a line is neither a key nor a comment.
    pub fn parse(file: &str) -> Result<Self, BackupError> {
        let lines = file.lines().map(str::trim);
        let keys = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
        let keys: Vec<Identity> = keys
            .map(|line| line.parse().map_err(|_| BackupError::Identity))
            .collect::<Result<_, _>>()?;
        if keys.is_empty() {
            return Err(BackupError::Identity);
        }
        Ok(Self(keys))
    }
}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identities({} keys)", self.0.len())
    }
}
