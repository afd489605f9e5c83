//! Questions about certificates.

use proto_types::Timestamp;

use crate::identity::entity::Certificate;
use crate::tables::Tables;

/// Whether a certificate is one of ours, has not ended and was not revoked.
pub fn is_certificate_good(tables: &Tables, serial: &str, now: Timestamp) -> bool {
    tables
        .get::<Certificate>(&serial.to_owned())
        .is_some_and(|certificate| certificate.revoked_at.is_none() && now < certificate.not_after)
}
