//! TLS among control nodes: both sides show a certificate of the peers' intermediate, which is
//! the only trust anchor (beside its successor while the authority is replaced), and the caller knows which node it calls.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::tls::{provider, tls};
use crate::{Credential, IdentityError, PeerIdentity, Subject};

/// The side that is called. `trusted` are the peers' intermediates, two while one takes the other's
/// place; a caller without a certificate of one of them is refused in the handshake.
pub fn server_config(
    trusted: &[CertificateDer<'static>],
    own: &Credential,
    alpn: &[u8],
) -> Result<ServerConfig, IdentityError> {
    let provider = provider();
    let roots = Arc::new(anchors(trusted)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider.clone())
        .build()
        .map_err(|e| IdentityError::Tls(e.to_string()))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(own.chain.clone(), own.key.to_rustls())
        .map_err(tls)?;
    config.alpn_protocols = vec![alpn.to_vec()];
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.max_early_data_size = 0;
    Ok(config)
}

/// The side that calls `node`; another node that answers there is refused.
pub fn client_config(
    trusted: &[CertificateDer<'static>],
    own: &Credential,
    node: u64,
    alpn: &[u8],
) -> Result<ClientConfig, IdentityError> {
    let provider = provider();
    let verifier = Arc::new(MemberVerifier {
        anchors: anchors(trusted)?,
        node,
        provider: provider.clone(),
    });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(own.chain.clone(), own.key.to_rustls())
        .map_err(tls)?;
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    Ok(config)
}

fn anchors(trusted: &[CertificateDer<'static>]) -> Result<RootCertStore, IdentityError> {
    let mut store = RootCertStore::empty();
    for anchor in trusted {
        store.add(anchor.clone()).map_err(tls)?;
    }
    Ok(store)
}

#[derive(Debug)]
struct MemberVerifier {
    anchors: RootCertStore,
    node: u64,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for MemberVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.anchors,
            intermediates,
            now,
            self.provider.signature_verification_algorithms.all,
        )?;
        let peer = PeerIdentity::from_certificate(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        match peer.id.subject() {
            Subject::Peer { node } if *node == self.node => Ok(ServerCertVerified::assertion()),
            _ => Err(Error::InvalidCertificate(CertificateError::NotValidForName)),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
