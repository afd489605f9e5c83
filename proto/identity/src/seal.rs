//! Signatures of control nodes over desired state that agents store.
//!
//! The signing key is that of the node's certificate. Its chain ends in the roots that the agent
//! trusts, also during a rotation of the authority, and there is no second key to store and rotate.
//! The chain is verified as of the time of signing: stored state outlives the hour of a certificate.

use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::server::ParsedCertificate;
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{CallerKind, Credential, IdentityError, PeerIdentity, SpiffeId, sha256, tls};

/// Domain separation: no other signature of the same key, such as one of TLS, is valid as a seal.
const CONTEXT: &[u8] = b"metalmesh desired state v1\0";
/// Most certificates of a chain: leaf, intermediate, cross-signed intermediate, and one spare. A longer
/// chain is refused.
pub const CHAIN_LEN_MAX: usize = 4;

/// The data that a seal signs.
#[derive(Clone, Debug)]
pub struct Statement<'a> {
    /// The agent that it is for.
    pub audience: &'a SpiffeId,
    /// The kind of desired state.
    pub kind: &'a str,
    /// Raft term, then generation.
    pub fence: (u64, u64),
    /// The content, as it was sent.
    pub content: &'a [u8],
}

/// A signature with the chain and time to verify it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// ECDSA P-256 with SHA-256, ASN.1 DER.
    pub signature: Vec<u8>,
    /// Time of signing, milliseconds since the epoch.
    pub signed_ms: u64,
    /// The node's certificate first, DER, without the root.
    pub chain: Vec<CertificateDer<'static>>,
}

/// Signs as a control node.
///
/// # Errors
/// [`IdentityError::Issue`] if the key cannot sign.
pub fn sign(
    node: &Credential,
    statement: &Statement<'_>,
    now_ms: u64,
) -> Result<Seal, IdentityError> {
    let signature = rcgen::SigningKey::sign(node.key.pair(), &message(statement, now_ms))
        .map_err(|e| IdentityError::Issue(e.to_string()))?;
    Ok(Seal {
        signature,
        signed_ms: now_ms,
        chain: node.chain.clone(),
    })
}

/// Verifies that a control node under these roots signed this statement.
///
/// # Errors
/// [`IdentityError::Certificate`] if the chain is not of a trusted control node,
/// [`IdentityError::Seal`] if the signature does not match.
pub fn verify(
    seal: &Seal,
    statement: &Statement<'_>,
    roots: &[CertificateDer<'static>],
) -> Result<(), IdentityError> {
    let refused = IdentityError::Certificate;
    let [leaf, intermediates @ ..] = seal.chain.as_slice() else {
        return Err(refused("empty chain"));
    };
    if seal.chain.len() > CHAIN_LEN_MAX {
        return Err(refused("the chain is too long"));
    }
    let mut anchors = RootCertStore::empty();
    for root in roots {
        anchors.add(root.clone()).map_err(tls::tls)?;
    }
    let parsed = ParsedCertificate::try_from(leaf).map_err(|_| refused("malformed"))?;
    let at = UnixTime::since_unix_epoch(std::time::Duration::from_millis(seal.signed_ms));
    verify_server_cert_signed_by_trust_anchor(
        &parsed,
        &anchors,
        intermediates,
        at,
        tls::provider().signature_verification_algorithms.all,
    )
    .map_err(|_| refused("not of a control node that is trusted here"))?;
    let signer = PeerIdentity::from_certificate(leaf)?.id;
    // The same roots issue certificates of agents. Without this check an agent could sign state for
    // another one.
    let is_node = signer.caller_kind() == CallerKind::Node;
    if !is_node || signer.trust_domain() != statement.audience.trust_domain() {
        return Err(refused("not of a control node"));
    }
    let (_, leaf) = X509Certificate::from_der(leaf).map_err(|_| refused("malformed"))?;
    let key = &leaf.public_key().subject_public_key.data;
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key.as_ref())
        .verify(&message(statement, seal.signed_ms), &seal.signature)
        .map_err(|_| IdentityError::Seal)
}

/// The signed bytes. Texts have their length before them, so that no two statements are encoded alike.
fn message(statement: &Statement<'_>, signed_ms: u64) -> Vec<u8> {
    let audience = statement.audience.to_string();
    let mut out = CONTEXT.to_vec();
    for part in [audience.as_bytes(), statement.kind.as_bytes()] {
        let len = u64::try_from(part.len()).unwrap_or(u64::MAX);
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(part);
    }
    let (term, generation) = statement.fence;
    for number in [term, generation, signed_ms] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out.extend_from_slice(&sha256(statement.content));
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::profile::{Authority, Purpose};
    use crate::{CertificateRequest, Key};

    const NOW: u64 = 1_800_000_000_000;
    const LEAF1: &str = "spiffe://m/partition/p1/core/leaf1";

    fn credential(root: &Authority, purpose: Purpose, id: &str) -> Credential {
        let by = root.intermediate(purpose, NOW).unwrap();
        let key = Key::generate().unwrap();
        let request = CertificateRequest::verify(&key.request().unwrap()).unwrap();
        let id = id.parse().unwrap();
        let hour = Duration::from_secs(3600);
        let leaf = by.issue(&id, &request, NOW, hour).unwrap();
        Credential {
            key,
            chain: vec![leaf, by.certificate().clone()],
            roots: vec![root.certificate().clone()],
        }
    }

    fn statement<'a>(audience: &'a SpiffeId, content: &'a [u8]) -> Statement<'a> {
        Statement {
            audience,
            kind: "switch",
            fence: (3, 7),
            content,
        }
    }

    #[test]
    fn holds_for_what_was_said_and_nothing_else() {
        let root = Authority::root("m", NOW).unwrap();
        let node = credential(&root, Purpose::Nodes, "spiffe://m/node/1");
        let (leaf1, leaf2): (SpiffeId, SpiffeId) = (
            LEAF1.parse().unwrap(),
            "spiffe://m/partition/p1/core/leaf2".parse().unwrap(),
        );
        let said = statement(&leaf1, b"ports");
        let seal = sign(&node, &said, NOW + 5).unwrap();
        verify(&seal, &said, &node.roots).unwrap();
        let others = [
            statement(&leaf2, b"ports"),
            statement(&leaf1, b"Ports"),
            Statement {
                kind: "boot",
                ..said.clone()
            },
            Statement {
                fence: (3, 8),
                ..said.clone()
            },
        ];
        for other in others {
            let e = verify(&seal, &other, &node.roots).unwrap_err();
            assert_eq!(e, IdentityError::Seal, "{other:?}");
        }
        let later = Seal {
            signed_ms: NOW + 6,
            ..seal
        };
        assert_eq!(verify(&later, &said, &node.roots), Err(IdentityError::Seal));
    }

    #[test]
    fn only_a_node_of_a_trusted_root_signs() {
        let root = Authority::root("m", NOW).unwrap();
        let other = Authority::root("m", NOW).unwrap();
        let leaf1: SpiffeId = LEAF1.parse().unwrap();
        let said = statement(&leaf1, b"ports");
        let trusted = [root.certificate().clone()];
        let hour_later = NOW + 3_602_000;
        for (case, signer, at) in [
            (
                "another root",
                credential(&other, Purpose::Nodes, "spiffe://m/node/1"),
                NOW,
            ),
            ("an agent", credential(&root, Purpose::Agents, LEAF1), NOW),
            (
                "another domain",
                credential(&root, Purpose::Nodes, "spiffe://n/node/1"),
                NOW,
            ),
            (
                "after its end",
                credential(&root, Purpose::Nodes, "spiffe://m/node/1"),
                hour_later,
            ),
        ] {
            let seal = sign(&signer, &said, at).unwrap();
            let refused = verify(&seal, &said, &trusted);
            assert!(
                matches!(refused, Err(IdentityError::Certificate(_))),
                "{case}: {refused:?}"
            );
        }
    }

    #[test]
    fn a_crossed_chain_holds_for_the_old_root_and_the_new() {
        let (old, new) = (
            Authority::root("m", NOW).unwrap(),
            Authority::root("m", NOW).unwrap(),
        );
        let by = new.intermediate(Purpose::Nodes, NOW).unwrap();
        let key = Key::generate().unwrap();
        let request = CertificateRequest::verify(&key.request().unwrap()).unwrap();
        let id = "spiffe://m/node/1".parse().unwrap();
        let leaf = by
            .issue(&id, &request, NOW, Duration::from_secs(60))
            .unwrap();
        let crossed = old.cross(&by, Purpose::Nodes, NOW).unwrap();
        let node = Credential {
            key,
            chain: vec![leaf, by.certificate().clone(), crossed],
            roots: vec![],
        };
        let leaf1: SpiffeId = LEAF1.parse().unwrap();
        let said = statement(&leaf1, b"ports");
        let seal = sign(&node, &said, NOW).unwrap();
        for root in [old, new] {
            verify(&seal, &said, &[root.certificate().clone()]).unwrap();
        }
    }
}
