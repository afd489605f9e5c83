//! The reasons why a backup is refused, and the remedies.

use std::io;

use crate::head::FORMAT;

/// A backup cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// It does not begin like one.
    #[error("it is no backup of metalmesh; name the file that `metalmesh cluster backup` wrote")]
    Foreign,
    /// Of a format that this program does not know.
    #[error(
        "it has format {format}, this program reads format {FORMAT}: restore it with the \
         metalmeshd that made it, of version {made_by}{}",
        if *format > FORMAT { ", or newer" } else { "" }
    )]
    Version {
        /// Of the backup.
        format: u32,
        /// The version of the program that made it.
        made_by: String,
    },
    /// It ends too early.
    #[error(
        "it is cut short after {rows} objects; take another backup, or copy the file again from \
         where it came"
    )]
    Truncated {
        /// How many objects could be read.
        rows: u64,
    },
    /// Its content is not what was written.
    #[error(
        "it is damaged or cut short: {reason}; take another backup, or copy the file again from \
         where it came"
    )]
    Damaged {
        /// The mismatch.
        reason: String,
    },
    /// It is encrypted, and there is no key.
    #[error("it is encrypted; name the key file that was made with it: --identity KEYFILE")]
    NeedsKey,
    /// The backup is not encrypted to any of the keys.
    #[error(
        "the key does not open it; name the key file that was made with this backup, or the \
         identity of a recipient that it was made for"
    )]
    WrongKey,
    /// A text is no recipient.
    #[error("{text:?} is no age recipient; one begins with age1")]
    Recipient {
        /// The text; recipients are public.
        text: String,
    },
    /// A key file has no key.
    #[error("the key file holds no age identity; one begins with AGE-SECRET-KEY-1")]
    Identity,
    /// A row is larger than a row may be.
    #[error("an object of {bytes} bytes is larger than a backup takes")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// A key that unseals must not lie there for everybody.
    #[error("the key that unseals the state may not go into a backup that is not encrypted")]
    PlainKey,
    /// The file or the connection failed.
    #[error("the backup cannot be {action}")]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl BackupError {
    pub(crate) fn writing(source: io::Error) -> Self {
        Self::Io {
            action: "written",
            source,
        }
    }

    pub(crate) fn damaged(reason: impl Into<String>) -> Self {
        Self::Damaged {
            reason: reason.into(),
        }
    }

    /// An error of reading the body: it is cut, it was changed, or the disk fails.
    pub(crate) fn reading(source: io::Error, rows: u64) -> Self {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated { rows },
            // Of age, whose authentication failed, and of zstd, whose checksum did.
            io::ErrorKind::InvalidData | io::ErrorKind::Other => Self::Damaged {
                reason: format!("{source} after {rows} objects"),
            },
            _ => Self::Io {
                action: "read",
                source,
            },
        }
    }
}
