//! Signed releases of programs: the format, and the rules by which one is taken.
//!
//! A release is one file: a head ([`SignedHead`]) with a signed manifest ([`ReleaseManifest`]), and
//! the payload, which is the program, plain or compressed with zstd. Operators sign with a
//! [`ReleaseSigner`]; a program that replaces itself verifies with the [`ReleaseKey`]s that it
//! trusts, and takes the release if [`check_release`] does.
//!
//! Invariants:
//! - nothing of a manifest is read before its signature was verified with a trusted key;
//! - nothing is decompressed before its length and its SHA-256 were compared with the manifest;
//! - every length is bounded before that many bytes are read or written;
//! - a release older than the program that runs is refused, unless its manifest names that program;
//! - `Debug` output contains no secret key.

mod digest;
mod error;
mod head;
mod key;
mod manifest;
mod payload;
mod rules;
mod signer;
mod version;

pub use digest::{FileDigest, PayloadMeter};
pub use error::ReleaseError;
pub use head::SignedHead;
pub use key::{KeyId, ReleaseKey};
pub use manifest::{PayloadEncoding, ReleaseManifest};
pub use payload::{UnpackError, pack, unpack};
pub use rules::{ReleaseContext, check_release};
pub use signer::ReleaseSigner;
pub use version::ReleaseVersion;

/// Largest program, bytes. Released programs have less than a tenth of it. A release that says more
/// is refused.
pub const PROGRAM_BYTES_MAX: u64 = 256 << 20;

#[cfg(test)]
mod tests;
