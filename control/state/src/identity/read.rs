//! Queries about certificates.

use proto_types::Timestamp;

use crate::identity::entity::Certificate;
use crate::tables::Tables;

/// `true` if the cluster issued the certificate, and it is neither expired nor revoked.
pub fn is_certificate_good(tables: &Tables, serial: &str, now: Timestamp) -> bool {
    tables
        .get::<Certificate>(&serial.to_owned())
        .is_some_and(|certificate| certificate.revoked_at.is_none() && now < certificate.not_after)
}
