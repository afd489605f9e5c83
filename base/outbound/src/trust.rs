//! Certificate authorities that outbound TLS connections trust.

use std::path::{Path, PathBuf};

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{self, PemObject};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// The authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The system has no authorities, or they cannot be read.
    #[error("no authorities of the system")]
    System(#[source] rustls::Error),
    /// The file cannot be read.
    #[error("ca_file: cannot use {}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: pem::Error,
    },
    /// A certificate of the file cannot be a trust anchor.
    #[error("ca_file: cannot use a certificate in {}", path.display())]
    Certificate {
        /// Path of the file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rustls::Error,
    },
    /// The file contains no certificate.
    #[error("ca_file: there is no certificate in PEM in {}", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
}

/// A TLS configuration that trusts only the authorities in `ca_file`. `None` means the authorities
/// of the system.
///
/// # Errors
/// See [`TrustError`].
pub fn trusting(ca_file: Option<&Path>) -> Result<ClientConfig, TrustError> {
    let Some(path) = ca_file else {
        let builder = ClientConfig::builder().with_platform_verifier();
        return Ok(builder.map_err(TrustError::System)?.with_no_client_auth());
    };
    let unread = |source| TrustError::File {
        path: path.to_owned(),
        source,
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(unread)? {
        let added = roots.add(certificate.map_err(unread)?);
        added.map_err(|source| TrustError::Certificate {
            path: path.to_owned(),
            source,
        })?;
    }
    if roots.is_empty() {
        let path = path.to_owned();
        return Err(TrustError::Empty { path });
    }
    let builder = ClientConfig::builder().with_root_certificates(roots);
    Ok(builder.with_no_client_auth())
}
