//! Keys of backups: age's, X25519.

use std::fmt;

use age::secrecy::ExposeSecret;
use age::x25519::{Identity, Recipient};

use crate::error::BackupError;

/// Recipients of one backup.
pub const RECIPIENTS_MAX: usize = 16;

/// For whom a backup is encrypted.
#[derive(Clone)]
pub struct Recipients(pub(crate) Vec<Recipient>);

impl Recipients {
    /// Reads recipients; none at all for a plain backup.
    ///
    /// # Errors
    /// When a text is no recipient, or there are too many.
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

/// A key that was made for a backup.
pub struct NewKey(Identity);

impl NewKey {
    /// A fresh key.
    pub fn generate() -> Self {
        Self(Identity::generate())
    }

    /// Whom to encrypt for; public.
    pub fn recipient(&self) -> String {
        self.0.to_public().to_string()
    }

    /// The content of the key file: secret.
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

/// Keys that may open a backup.
pub struct Identities(pub(crate) Vec<Identity>);

impl Identities {
    /// Reads a key file as `age-keygen` and we write it: comments, and keys one a line.
    ///
    /// # Errors
    /// When there is none, or a line is something else.
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
