//! The parts of TPM 2.0 that both ends of a join share: public areas, and the proof of a join.
//!
//! Keys are ECDSA or ECDH keys on NIST P-256 with SHA-256: every TPM of the PC Client profile has
//! them, and control needs no RSA. A TPM is identified by the SHA-256 of the SubjectPublicKeyInfo of
//! its endorsement key (EK), which can be computed from the TPM and from the maker's certificate.

use ring::hmac;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::{IdentityError, sha256, sha256_hex};

/// Largest public area that is decoded, bytes. A larger one is refused.
pub const PUBLIC_LEN_MAX: usize = 512;
/// Length of the secret that only the TPM can read, bytes.
pub const SECRET_LEN: usize = 32;

/// `TPM_ALG_ECC`, `_SHA256`, `_NULL`, `TPM_ECC_NIST_P256`.
const ALG_ECC: u16 = 0x0023;
const ALG_SHA256: u16 = 0x000b;
const ALG_NULL: u16 = 0x0010;
const CURVE_P256: u16 = 0x0003;
/// `TPMA_OBJECT`: fixedTPM, fixedParent, sensitiveDataOrigin, restricted, sign; and decrypt.
const RESIDENT_SIGNER: u32 = (1 << 1) | (1 << 4) | (1 << 5) | (1 << 16) | (1 << 18);
const DECRYPT: u32 = 1 << 17;
/// DER before the point of a P-256 key's SubjectPublicKeyInfo (RFC 5480).
const SPKI_PREFIX: [u8; 27] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
];
const PROOF_CONTEXT: &[u8] = b"metalmesh tpm join v1\0";

/// The public part of a key in a TPM (`TPMT_PUBLIC`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TpmKey {
    /// X coordinate of the point.
    pub x: [u8; 32],
    /// Y coordinate of the point.
    pub y: [u8; 32],
    /// `TPMA_OBJECT`.
    pub attributes: u32,
    /// Name of the object: algorithm and digest of its public area.
    pub name: [u8; 34],
}

impl TpmKey {
    /// Decodes a `TPMT_PUBLIC`.
    ///
    /// # Errors
    /// [`IdentityError::Tpm`] if it is too long or not of a P-256 key with SHA-256.
    pub fn decode(area: &[u8]) -> Result<Self, IdentityError> {
        if area.len() > PUBLIC_LEN_MAX {
            return Err(IdentityError::Tpm("the public area is too long"));
        }
        read(area).ok_or(IdentityError::Tpm(
            "the public area is not of a P-256 key with SHA-256",
        ))
    }

    /// SHA-256 of the SubjectPublicKeyInfo, hex. Operators identify an EK by it.
    pub fn fingerprint(&self) -> String {
        let point = [&SPKI_PREFIX[..], &self.x, &self.y].concat();
        sha256_hex(&point)
    }

    /// `true` if the key was made in the TPM, never leaves it, and signs only data that the TPM made.
    pub fn is_resident_signer(&self) -> bool {
        self.attributes & RESIDENT_SIGNER == RESIDENT_SIGNER && self.attributes & DECRYPT == 0
    }
}

/// The fingerprint of the EK in its certificate, DER. The chain of the certificate is not verified:
/// the operator who passes it vouches for it.
///
/// # Errors
/// [`IdentityError::Tpm`] if it is not a certificate of a P-256 key.
pub fn fingerprint_of_certificate(der: &[u8]) -> Result<String, IdentityError> {
    let refused = IdentityError::Tpm;
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|_| refused("not a certificate, DER or PEM"))?;
    let spki = certificate.public_key().raw;
    if spki.len() != SPKI_PREFIX.len() + 64 || !spki.starts_with(&SPKI_PREFIX) {
        return Err(refused(
            "the certificate is not of a P-256 key: take the TPM's other certificate, or its \
             fingerprint as `<agent> tpm` prints it",
        ));
    }
    Ok(sha256_hex(spki))
}

/// The proof that the joining agent has the secret that only its TPM could decrypt. It covers this
/// ticket and this key.
pub fn proof(secret: &[u8], ticket_id: &str, key_fingerprint: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let tag = hmac::sign(&key, &proven(ticket_id, key_fingerprint));
    tag.as_ref().to_vec()
}

/// `true` if `shown` is the proof; compared in constant time.
pub fn is_proof(secret: &[u8], ticket_id: &str, key_fingerprint: &str, shown: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hmac::verify(&key, &proven(ticket_id, key_fingerprint), shown).is_ok()
}

fn proven(ticket_id: &str, key_fingerprint: &str) -> Vec<u8> {
    let hashes = [
        sha256(ticket_id.as_bytes()),
        sha256(key_fingerprint.as_bytes()),
    ];
    [PROOF_CONTEXT, hashes.as_flattened()].concat()
}

fn read(area: &[u8]) -> Option<TpmKey> {
    let mut rest = area;
    let is_ecc = u16(&mut rest)? == ALG_ECC && u16(&mut rest)? == ALG_SHA256;
    let attributes = u32::from_be_bytes(take::<4>(&mut rest)?);
    sized(&mut rest)?;
    // Symmetric cipher with its key length and mode, then the scheme with its hash.
    if u16(&mut rest)? != ALG_NULL {
        take::<4>(&mut rest)?;
    }
    if u16(&mut rest)? != ALG_NULL {
        take::<2>(&mut rest)?;
    }
    let is_p256 = u16(&mut rest)? == CURVE_P256 && u16(&mut rest)? == ALG_NULL;
    let (x, y) = (coordinate(&mut rest)?, coordinate(&mut rest)?);
    let mut name = [0; 34];
    name[..2].copy_from_slice(&ALG_SHA256.to_be_bytes());
    name[2..].copy_from_slice(&sha256(area));
    (is_ecc && is_p256 && rest.is_empty()).then_some(TpmKey {
        x,
        y,
        attributes,
        name,
    })
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk::<N>()?;
    *rest = others;
    Some(*first)
}

fn u16(rest: &mut &[u8]) -> Option<u16> {
    take::<2>(rest).map(u16::from_be_bytes)
}

fn sized<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::from(u16(rest)?);
    let (first, others) = rest.split_at_checked(len)?;
    *rest = others;
    Some(first)
}

/// Reads a coordinate. Some TPMs omit leading zeros, so it is padded to 32 bytes.
fn coordinate(rest: &mut &[u8]) -> Option<[u8; 32]> {
    let bytes = sized(rest)?;
    let mut whole = [0; 32];
    let at = whole.len().checked_sub(bytes.len())?;
    whole[at..].copy_from_slice(bytes);
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    fn area(attributes: u32) -> Vec<u8> {
        let mut out = vec![0, 0x23, 0, 0x0b];
        out.extend(attributes.to_be_bytes());
        out.extend([0, 0, 0, 0x10, 0, 0x18, 0, 0x0b, 0, 3, 0, 0x10]);
        out.extend([0, 32]);
        out.extend([7; 32]);
        out.extend([0, 31]);
        out.extend([9; 31]);
        out
    }

    #[test]
    fn a_public_area_is_read_whole_or_refused() {
        let whole = area(0x0005_0072);
        let key = TpmKey::decode(&whole).unwrap();
        assert_eq!((key.x, key.y[0], key.y[1]), ([7; 32], 0, 9));
        assert!(key.is_resident_signer());
        for len in 0..whole.len() {
            assert!(TpmKey::decode(&whole[..len]).is_err(), "cut at {len}");
        }
        assert!(TpmKey::decode(&[&whole[..], &[0]].concat()).is_err());
        // One that was made elsewhere, and one that decrypts.
        for attributes in [0x0005_0070, 0x0004_0072, 0x0007_0072] {
            let other = TpmKey::decode(&area(attributes)).unwrap();
            assert!(!other.is_resident_signer(), "{attributes:x}");
        }
    }

    #[test]
    fn a_fingerprint_is_that_of_the_key_in_a_certificate() {
        let root = crate::profile::Authority::root("m", 1_800_000_000_000).unwrap();
        let of = fingerprint_of_certificate(root.certificate()).unwrap();
        let key = Key::from_pkcs8(&root.to_pkcs8()).unwrap();
        assert_eq!(of, key.fingerprint());
        assert!(fingerprint_of_certificate(b"x").is_err());
    }

    #[test]
    fn a_proof_is_for_one_ticket_and_one_key() {
        let proof = proof(b"secret", "t1", "aa");
        assert!(is_proof(b"secret", "t1", "aa", &proof));
        for (secret, ticket, key) in [
            ("other", "t1", "aa"),
            ("secret", "t2", "aa"),
            ("secret", "t1", "ab"),
        ] {
            assert!(!is_proof(secret.as_bytes(), ticket, key, &proof));
        }
        assert!(!is_proof(b"secret", "t1", "aa", b""));
    }
}
