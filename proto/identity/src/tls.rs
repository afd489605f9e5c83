//! rustls configurations of the mesh: TLS 1.3, *ring*, no tickets, no 0-RTT.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{
    ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::CertificateDer;

use crate::member_rule::{Expected, Member, anchors};
use crate::verifier::RuleVerifier;
use crate::{Credential, IdentityError, Roots};

/// The crypto provider of all configurations.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The configuration of an agent. Without a credential it can call only anonymous methods.
pub fn client_config(
    roots: Roots,
    credential: Option<&Credential>,
    alpn: &[u8],
) -> Result<ClientConfig, IdentityError> {
    caller(Member::new(roots, Expected::Node)?, credential, alpn)
}

/// The configuration of a control node. Client certificates are requested, and verified if sent.
pub fn server_config(
    client_roots: &[CertificateDer<'static>],
    own: Arc<NodeCertificate>,
    alpn: &[u8],
) -> Result<ServerConfig, IdentityError> {
    called(client_roots, Anonymous::Allowed, own, alpn)
}

/// The calling side of every session. `rule` judges the certificate of the called side; `None` as
/// `credential` calls anonymously.
pub(crate) fn caller(
    rule: Member,
    credential: Option<&Credential>,
    alpn: &[u8],
) -> Result<ClientConfig, IdentityError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .dangerous()
        .with_custom_certificate_verifier(RuleVerifier::new(rule));
    let mut config = match credential {
        Some(c) => builder
            .with_client_auth_cert(c.chain.clone(), c.key.to_rustls())
            .map_err(tls)?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    // A resumed session would skip the check of the certificate, which may have expired since.
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    Ok(config)
}

/// The policy for callers without a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anonymous {
    Allowed,
    Refused,
}

/// The called side of every session. Certificates of callers must chain to `trusted`.
pub(crate) fn called(
    trusted: &[CertificateDer<'static>],
    anonymous: Anonymous,
    own: Arc<dyn ResolvesServerCert>,
    alpn: &[u8],
) -> Result<ServerConfig, IdentityError> {
    let provider = provider();
    let trusted = Arc::new(anchors(trusted).map_err(tls)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(trusted, provider.clone());
    let verifier = match anonymous {
        Anonymous::Allowed => verifier.allow_unauthenticated(),
        Anonymous::Refused => verifier,
    };
    let verifier = verifier
        .build()
        .map_err(|e| IdentityError::Tls(e.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(own);
    config.alpn_protocols = vec![alpn.to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    Ok(config)
}

/// The certificate of this node. A renewal replaces it without effect on open sessions.
pub struct NodeCertificate {
    current: RwLock<Arc<CertifiedKey>>,
}

impl NodeCertificate {
    /// Starts with this certificate.
    pub fn new(credential: &Credential) -> Result<Arc<Self>, IdentityError> {
        Ok(Arc::new(Self {
            current: RwLock::new(certified(credential)?),
        }))
    }

    /// Replaces the certificate for handshakes from now on.
    pub fn replace(&self, credential: &Credential) -> Result<(), IdentityError> {
        let next = certified(credential)?;
        *self.current.write() = next;
        Ok(())
    }
}

impl fmt::Debug for NodeCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeCertificate(<redacted>)")
    }
}

impl ResolvesServerCert for NodeCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().clone())
    }
}

/// The chain with the root appended: an agent that joins knows only the hash of the root.
fn certified(credential: &Credential) -> Result<Arc<CertifiedKey>, IdentityError> {
    let mut chain = credential.chain.clone();
    chain.extend(credential.roots.iter().cloned());
    let key = ring::sign::any_supported_type(&credential.key.to_rustls()).map_err(tls)?;
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}

pub(crate) fn tls(e: rustls::Error) -> IdentityError {
    IdentityError::Tls(e.to_string())
}
