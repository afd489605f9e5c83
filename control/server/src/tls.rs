//! TLS configuration of the API.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use proto_types::Timestamp;
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::TlsFiles;

/// The time in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CertificateLife {
    pub(crate) begins: Timestamp,
    pub(crate) ends: Timestamp,
}

/// The validity of the API's certificate. `None` means that it cannot be read.
pub(crate) fn life(files: &TlsFiles) -> Option<CertificateLife> {
    let mut chain = CertificateDer::pem_file_iter(&files.certificate).ok()?;
    let leaf = chain.next()?.ok()?;
    let (_, leaf) = x509_parser::parse_x509_certificate(&leaf).ok()?;
    let at = |seconds: i64| {
        let seconds = u64::try_from(seconds).ok()?;
        Some(Timestamp::from_ms(seconds.checked_mul(1000)?))
    };
    let validity = leaf.validity();
    Some(CertificateLife {
        begins: at(validity.not_before.timestamp())?,
        ends: at(validity.not_after.timestamp())?,
    })
}

/// End of the validity of the API's certificate. `None` means that it cannot be read.
pub(crate) fn ends(files: &TlsFiles) -> Option<Timestamp> {
    life(files).map(|life| life.ends)
}

/// The TLS configuration of the server, for HTTP/2 and HTTP/1.1.
///
/// # Errors
/// A file cannot be read, or the key does not belong to the certificate.
pub(crate) fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let certificate = || format!("api.tls_certificate: {}", files.certificate.display());
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(certificate)?;
    ensure!(!chain.is_empty(), "{}: holds no certificate", certificate());
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .with_context(|| format!("api.tls_key: {}", files.key.display()))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("api.tls_certificate and api.tls_key do not fit together")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
