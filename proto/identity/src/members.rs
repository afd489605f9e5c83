//! TLS between control nodes. Both sides present a certificate of the peers' intermediate, which is
//! the only trust anchor (with its successor during a rotation of the authority), and the caller
//! checks the number of the node.

use std::sync::Arc;

use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::CertificateDer;

use crate::member_rule::{Expected, Member};
use crate::tls::{Anonymous, called, caller, provider, tls};
use crate::{Credential, IdentityError, Roots};

/// The configuration of the called side. `trusted` are the peers' intermediates: two during a
/// rotation. The handshake fails for callers without a certificate of one of them.
pub fn server_config(
    trusted: &[CertificateDer<'static>],
    own: &Credential,
    alpn: &[u8],
) -> Result<ServerConfig, IdentityError> {
    let own =
        CertifiedKey::from_der(own.chain.clone(), own.key.to_rustls(), &provider()).map_err(tls)?;
    let own = Arc::new(SingleCertAndKey::from(own));
    called(trusted, Anonymous::Refused, own, alpn)
}

/// The configuration for calls to `node`. The handshake fails if another node answers.
pub fn client_config(
    trusted: &[CertificateDer<'static>],
    own: &Credential,
    node: u64,
    alpn: &[u8],
) -> Result<ClientConfig, IdentityError> {
    let rule = Member::new(Roots::Certificates(trusted.to_vec()), Expected::Peer(node))?;
    caller(rule, Some(own), alpn)
}
