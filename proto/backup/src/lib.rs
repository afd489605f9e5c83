//! The format of backups.
//!
//! A backup is a line that names the format, a line of JSON that says of what it is ([`Head`]),
//! and the body: records, compressed with zstd and, unless it was asked otherwise, encrypted with
//! age. The head can be read without a key; the body repeats it, so that nobody can change it.
//!
//! Records are the rows of the state as the store keeps them, and the key that unseals the
//! private keys in them. That key is only in encrypted backups: without it a plain one is of no
//! use to a thief, and of use to you only together with your copy of it.
//!
//! Invariants: a body ends with a record that has the count and the SHA-256 of all before it, so
//! a backup that was cut short or damaged is never taken for a whole one; a reader trusts no
//! length that it reads; errors name cause and remedy, and hold no secret.

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

/// Longest key of a row, bytes.
pub const KEY_BYTES_MAX: usize = 4 << 10;
/// Largest row, bytes.
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
