//! The section `[api]`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde::Deserialize;

/// The section `[api]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ApiSection {
    pub(super) listen: Option<SocketAddr>,
    pub(super) issuer: Option<String>,
    pub(super) calls_per_minute: Option<u32>,
    pub(super) tls_certificate: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
}

/// Files of the API's certificate: the chain and its private key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The files of the certificate. `None` means that the API speaks HTTP without TLS.
pub(super) fn tls(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<TlsFiles>> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (Some(_), None) => bail!("api.tls_key: is missing beside api.tls_certificate; give both"),
        (None, Some(_)) => bail!("api.tls_certificate: is missing beside api.tls_key; give both"),
    }
}
