//! Certificates for one run: an authority, and a key pair that all nodes share.

use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType,
};

/// Files and the authority's certificate.
#[derive(Clone, Debug)]
pub(crate) struct Certs {
    /// The authority's certificate, PEM.
    pub(crate) ca: String,
    pub(crate) ca_file: PathBuf,
    /// For servers and, among etcd's peers, for clients.
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certs {
    pub(crate) fn make(dir: &Path) -> Result<Self> {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        params.subject_alt_names.push(SanType::IpAddress(loopback));
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let pair = KeyPair::generate()?;
        let certificate = params.signed_by(&pair, &authority)?;
        let made = Self {
            ca: authority.pem(),
            ca_file: dir.join("ca.pem"),
            certificate: dir.join("node.pem"),
            key: dir.join("node.key"),
        };
        std::fs::write(&made.ca_file, &made.ca)?;
        std::fs::write(&made.certificate, certificate.pem())?;
        let mut private = std::fs::File::options();
        let mut file = private
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&made.key)?;
        std::io::Write::write_all(&mut file, pair.serialize_pem().as_bytes())?;
        Ok(made)
    }
}
