//! The rule for certificates of control nodes: a pinned root and the expected identity.

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use rustls_pki_types::{CertificateDer, UnixTime};

use crate::verifier::{CertificateRule, algorithms};
use crate::{CallerKind, IdentityError, PeerIdentity, SpiffeId, Subject, sha256_hex};

/// The roots to trust for control nodes.
#[derive(Clone, Debug)]
pub enum Roots {
    /// The roots themselves, known since joining.
    Certificates(Vec<CertificateDer<'static>>),
    /// SHA-256 of the roots' DER, hex, as a join ticket has them: nodes send their root too.
    Sha256(Vec<String>),
}

impl Roots {
    fn anchors(&self, sent: &[CertificateDer<'_>]) -> Result<RootCertStore, Error> {
        match self {
            Self::Certificates(list) => anchors(list),
            Self::Sha256(hashes) => {
                let is_pinned = |cert: &&CertificateDer<'_>| {
                    let hash = sha256_hex(cert);
                    hashes.iter().any(|pin| pin.eq_ignore_ascii_case(&hash))
                };
                anchors(sent.iter().filter(is_pinned))
            }
        }
    }
}

/// The expected server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    /// Any control node.
    Node,
    /// The control node of this number, to another one.
    Peer(u64),
}

impl Expected {
    fn is(self, id: &SpiffeId) -> bool {
        match self {
            Self::Node => id.caller_kind() == CallerKind::Node,
            Self::Peer(number) => {
                matches!(id.subject(), Subject::Peer { node } if *node == number)
            }
        }
    }
}

/// Accepts a certificate for servers whose chain ends in a pinned root and which names the expected
/// node.
#[derive(Debug)]
pub(crate) struct Member {
    roots: Roots,
    expected: Expected,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Member {
    pub(crate) fn new(roots: Roots, expected: Expected) -> Result<Self, IdentityError> {
        let is_empty = match &roots {
            Roots::Certificates(list) => list.is_empty(),
            Roots::Sha256(list) => list.is_empty(),
        };
        if is_empty {
            return Err(IdentityError::Tls("no root to trust".to_owned()));
        }
        Ok(Self {
            roots,
            expected,
            algorithms: algorithms(),
        })
    }
}

impl CertificateRule for Member {
    fn check(
        &self,
        end_entity: &CertificateDer<'_>,
        sent: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let anchors = self.roots.anchors(sent)?;
        if anchors.is_empty() {
            return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
        }
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &anchors,
            sent,
            now,
            self.algorithms.all,
        )?;
        let peer = PeerIdentity::from_certificate(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        if self.expected.is(&peer.id) {
            Ok(())
        } else {
            Err(Error::InvalidCertificate(CertificateError::NotValidForName))
        }
    }
}

/// A store of trust anchors.
pub(crate) fn anchors<'a>(
    certificates: impl IntoIterator<Item = &'a CertificateDer<'a>>,
) -> Result<RootCertStore, Error> {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store.add(certificate.clone().into_owned())?;
    }
    Ok(store)
}
