//! The certificate authority, join tickets, renewal and revocation.
