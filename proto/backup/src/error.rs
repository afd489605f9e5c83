//! Errors of reading and writing backups, with their remedies.

use std::io;

use crate::head::FORMAT;

/// A backup cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The input does not begin with the magic line.
    #[error("it is no backup of metalmesh; name the file that `metalmesh cluster backup` wrote")]
    Foreign,
    /// The backup has another format than [`FORMAT`].
    #[error(
        "it has format {format}, this program reads format {FORMAT}: restore it with the \
         metalmeshd that made it, of version {made_by}{}",
        if *format > FORMAT { ", or newer" } else { "" }
    )]
    Version {
        /// Format of the backup.
        format: u32,
        /// The version of the program that made it.
        made_by: String,
    },
    /// The backup ends before its last record.
    #[error(
        "it is cut short after {rows} objects; take another backup, or copy the file again from \
         where it came"
    )]
    Truncated {
        /// Number of rows read before.
        rows: u64,
    },
    /// The content was changed or is not valid.
    #[error(
        "it is damaged or cut short: {reason}; take another backup, or copy the file again from \
         where it came"
    )]
    Damaged {
        /// The mismatch.
        reason: String,
    },
    /// The backup is encrypted, and no key was given.
    #[error("it is encrypted; name the key file that was made with it: --identity KEYFILE")]
    NeedsKey,
    /// The backup is not encrypted to any of the keys.
    #[error(
        "the key does not open it; name the key file that was made with this backup, or the \
         identity of a recipient that it was made for"
    )]
    WrongKey,
    /// A text is not an age recipient.
    #[error("{text:?} is no age recipient; one begins with age1")]
    Recipient {
        /// The text; recipients are public.
        text: String,
    },
    /// A key file contains no usable key.
    #[error("the key file holds no age identity; one begins with AGE-SECRET-KEY-1")]
    Identity,
    /// A row exceeds its bound.
    #[error("an object of {bytes} bytes is larger than a backup takes")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The data key was offered to an unencrypted backup, where anyone could read it.
    #[error("the key that unseals the state may not go into a backup that is not encrypted")]
    PlainKey,
    /// The file or the connection failed.
    #[error("the backup cannot be {action}")]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The cause.
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

    /// Classifies an error of reading the body: truncated, damaged, or an error of the disk.
    pub(crate) fn reading(source: io::Error, rows: u64) -> Self {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated { rows },
            // age reports a failed authentication and zstd a failed checksum with these kinds.
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
