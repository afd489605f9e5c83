//! The format of backups.
//!
//! A backup is a magic line, a header line in JSON ([`Head`]) and the body: records, compressed
//! with zstd and, if there are recipients, encrypted with age. The header can be read without a key.
//!
//! Records are the rows of the state as the store encodes them, and the data key that unseals the
//! private keys in them. The private keys in an unencrypted backup are of use only with a separate
//! copy of the data key.
//!
//! Invariants:
//! - a body ends with the number of rows and the SHA-256 of all records before, so that a truncated
//!   or damaged backup is refused;
//! - the body repeats the header, so that a changed header is refused;
//! - the data key is only in encrypted backups;
//! - a reader bounds every length before it allocates;
//! - `Debug` output contains no secret key.

mod error;
mod head;
mod keys;
mod read;
mod write;

pub use error::BackupError;
pub use head::{Encryption, FORMAT, Head};
pub use keys::{Identities, NewKey, RECIPIENTS_MAX, Recipients};
pub use read::{Item, Reader};
pub use write::{Summary, Writer};

/// Longest key of a row, bytes. Writers refuse a longer one, readers take it for damage.
pub const KEY_BYTES_MAX: usize = 4 << 10;
/// Largest value of a row, bytes. Same handling as [`KEY_BYTES_MAX`].
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// Record tags of the body.
mod tag {
    pub(crate) const HEAD: u8 = b'h';
    pub(crate) const DATA_KEY: u8 = b'k';
    pub(crate) const ROW: u8 = b'r';
    pub(crate) const END: u8 = b'e';
}

#[cfg(test)]
mod tests;
