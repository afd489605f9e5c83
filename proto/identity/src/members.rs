//! TLS among control nodes: both sides show a certificate of the peers' intermediate, which is
//! the only trust anchor (beside its successor while the authority is replaced), and the caller
//! knows which node it calls.

use std::sync::Arc;

use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::CertificateDer;

use crate::member_rule::{Expected, Member};
use crate::tls::{Anonymous, called, caller, provider, tls};
use crate::{Credential, IdentityError, Roots};

/// The side that is called. `trusted` are the peers' intermediates, two while one takes the other's
/// place; a caller without a certificate of one of them is refused in the handshake.
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

/// The side that calls `node`; another node that answers there is refused.
pub fn client_config(
    trusted: &[CertificateDer<'static>],
    own: &Credential,
    node: u64,
    alpn: &[u8],
) -> Result<ClientConfig, IdentityError> {
    let rule = Member::new(Roots::Certificates(trusted.to_vec()), Expected::Peer(node))?;
    caller(rule, Some(own), alpn)
}
