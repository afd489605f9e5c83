//! Certificates for one run: an authority with a key pair that all servers share, and the
//! authority that our nodes know each other by.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;
use control_pki::PeerCredential;
use control_store::{Clock as _, SystemClock};
use proto_identity::profile::{Authority, LEAF_VALIDITY, Purpose};
use proto_identity::{CertificateRequest, Credential, Key, SpiffeId, Subject};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, SanType,
};

const TRUST_DOMAIN: &str = "bench.example";

/// Files and the authority's certificate.
#[derive(Clone, Debug)]
pub(crate) struct Certs {
    /// The authority's certificate, PEM.
    pub(crate) ca: String,
    pub(crate) ca_file: PathBuf,
    /// For servers and, among etcd's peers, for clients.
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    /// Certificate and key of the authority of our peers, DER; each node issues its own leaf, as
    /// the product's nodes do.
    pub(crate) peers: PathBuf,
    pub(crate) peers_key: PathBuf,
}

impl Certs {
    pub(crate) fn make(dir: &Path) -> Result<Self> {
        // A root and an intermediate, as the product has them: chains of one length cost alike.
        let root = authority("root", 1);
        let root = CertifiedIssuer::self_signed(root, KeyPair::generate()?)?;
        let issuer = authority("issuer", 0);
        let issuer = CertifiedIssuer::signed_by(issuer, KeyPair::generate()?, &root)?;
        let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        params.subject_alt_names.push(SanType::IpAddress(loopback));
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let pair = KeyPair::generate()?;
        let certificate = params.signed_by(&pair, &issuer)?;
        let made = Self::at(dir, root.pem());
        std::fs::write(&made.ca_file, &made.ca)?;
        std::fs::write(&made.certificate, certificate.pem() + &issuer.pem())?;
        write_secret(&made.key, pair.serialize_pem().as_bytes())?;
        let now_ms = SystemClock::default().now().ms();
        let peers = Authority::root(TRUST_DOMAIN, now_ms)?;
        let peers = peers.intermediate(Purpose::Peers, now_ms)?;
        std::fs::write(&made.peers, peers.certificate())?;
        write_secret(&made.peers_key, &peers.to_pkcs8())?;
        Ok(made)
    }

    /// What [`Certs::make`] left in a directory.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        Ok(Self::at(dir, std::fs::read_to_string(dir.join("ca.pem"))?))
    }

    fn at(dir: &Path, ca: String) -> Self {
        Self {
            ca,
            ca_file: dir.join("ca.pem"),
            certificate: dir.join("node.pem"),
            key: dir.join("node.key"),
            peers: dir.join("peers.der"),
            peers_key: dir.join("peers.key"),
        }
    }
}

/// What a node of ours shows to the others.
pub(crate) fn peer_credential(node: u64, certificate: &Path, key: &Path) -> Result<PeerCredential> {
    let authority = Authority::from_parts(&std::fs::read(key)?, std::fs::read(certificate)?)?;
    let key = Key::generate()?;
    let request = CertificateRequest::verify(&key.request()?)?;
    let id = SpiffeId::new(TRUST_DOMAIN, Subject::Peer { node })?;
    let now_ms = SystemClock::default().now().ms();
    let leaf = authority.issue(&id, &request, now_ms, LEAF_VALIDITY)?;
    let anchor = authority.certificate().clone();
    let own = Credential {
        key,
        chain: vec![leaf],
        roots: vec![anchor.clone()],
    };
    Ok(PeerCredential {
        own,
        anchors: vec![anchor],
    })
}

fn authority(name: &str, below: u8) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(below));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn write_secret(path: &Path, content: &[u8]) -> Result<()> {
    let mut options = std::fs::File::options();
    let options = options.create_new(true).write(true).mode(0o600);
    options.open(path)?.write_all(content)?;
    Ok(())
}
