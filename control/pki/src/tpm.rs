//! Challenges that only one TPM can answer, and the check of the answer.
//!
//! The challenge is a secret that the TPM with a known endorsement key (EK) decrypts for a key that
//! lives in the same TPM, and for no other key (`TPM2_MakeCredential`, TPM 2.0 part 1, §24).
//! Control stores nothing of it: the caller returns it, sealed by the data key of the cluster, to
//! any node.

use aes::Aes128;
use aes::cipher::generic_array::GenericArray;
use aes::cipher::{BlockEncrypt as _, KeyInit as _};
use control_state::{ErrorCode, JoinTicket, StateError};
use proto_identity::tpm::{self, SECRET_LEN, TpmKey};
use proto_identity::{CertificateDer, CertificateRequest, IdentityError, sha256};
use proto_types::{Digest, Timestamp};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hmac;
use ring::rand::SystemRandom;
use rustls_pki_types::pem::PemObject as _;

use crate::seal::random;
use crate::{Pki, PkiError};

/// Lifetime of a challenge, milliseconds. A slow TPM needs a second or two; a later answer is
/// refused.
const CHALLENGE_LIFE_MS: u64 = 120_000;
const BLOCK_LEN: usize = 16;

/// Request of a caller for the challenge of its TPM.
#[derive(Clone)]
pub struct TpmClaim {
    /// Id of the ticket.
    pub ticket_id: String,
    /// Secret of the ticket.
    pub secret: Vec<u8>,
    /// Certificate request, DER.
    pub request: Vec<u8>,
    /// `TPMT_PUBLIC` of the endorsement key.
    pub endorsement: Vec<u8>,
    /// `TPMT_PUBLIC` of the key that the challenge is bound to.
    pub attestation: Vec<u8>,
}

impl std::fmt::Debug for TpmClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TpmClaim")
            .field("ticket_id", &self.ticket_id)
            .field("secret", &"<redacted>")
            .finish_non_exhaustive()
    }
}

/// SHA-256 of the endorsement key in a certificate of a TPM (DER or PEM). A ticket can be bound to
/// it.
///
/// # Errors
/// When it is not a certificate of a P-256 key.
pub fn tpm_of_certificate(file: &[u8]) -> Result<Digest, PkiError> {
    let pem = CertificateDer::from_pem_slice(file);
    let der = pem.as_ref().map_or(file, AsRef::as_ref);
    let fingerprint = tpm::fingerprint_of_certificate(der)?;
    let digest = fingerprint.parse();
    Ok(digest.map_err(|_| IdentityError::Tpm("its key has no fingerprint"))?)
}

/// A challenge for a TPM.
#[derive(Clone, Debug)]
pub struct TpmChallenge {
    /// `TPM2B_ID_OBJECT`, without its length.
    pub credential: Vec<u8>,
    /// `TPM2B_ENCRYPTED_SECRET`, without its length.
    pub encrypted_seed: Vec<u8>,
    /// Sealed state of the challenge; the caller returns it with the answer.
    pub sealed: Vec<u8>,
}

/// The answer to a challenge.
#[derive(Clone, Debug)]
pub struct TpmAnswer {
    /// The sealed state of the challenge.
    pub sealed: Vec<u8>,
    /// See [`tpm::proof`].
    pub proof: Vec<u8>,
}

impl Pki {
    /// Makes a challenge for the TPM that a ticket is bound to.
    ///
    /// # Errors
    /// When the ticket is refused, or bound to another TPM.
    pub async fn challenge_tpm(&self, claim: &TpmClaim) -> Result<TpmChallenge, PkiError> {
        let request = CertificateRequest::verify(&claim.request)?;
        let secret = Digest::sha256(sha256(&claim.secret));
        let (ticket, _) = self
            .judge_ticket(&claim.ticket_id, &secret, &request)
            .await?;
        let endorsement = TpmKey::decode(&claim.endorsement)?;
        let wanted = ticket.tpm.as_ref().ok_or_else(not_bound)?;
        let shown: Result<Digest, _> = endorsement.fingerprint().parse();
        if !shown.is_ok_and(|shown| shown.same_as(wanted)) {
            return Err(other_tpm(wanted, &endorsement.fingerprint()).into());
        }
        let attestation = TpmKey::decode(&claim.attestation)?;
        if !attestation.is_resident_signer() {
            return Err(IdentityError::Tpm("the attestation key does not live in the TPM").into());
        }
        let mut answer = [0; SECRET_LEN];
        random(&mut answer)?;
        let (credential, encrypted_seed) = make_credential(&endorsement, &attestation, &answer)?;
        let end = self.now().ms().saturating_add(CHALLENGE_LIFE_MS);
        let open = [&end.to_be_bytes()[..], &answer].concat();
        let sealed = self.seal(&name(&ticket, request.fingerprint()), &open)?;
        Ok(TpmChallenge {
            credential,
            encrypted_seed,
            sealed,
        })
    }

    /// The TPM that answered, where the ticket is bound to one.
    pub(crate) fn judge_tpm(
        &self,
        ticket: &JoinTicket,
        request: &CertificateRequest,
        answer: Option<&TpmAnswer>,
    ) -> Result<Option<Digest>, PkiError> {
        let Some(bound) = &ticket.tpm else {
            return Ok(None);
        };
        let unproved = || refused("the ticket is bound to a TPM, which did not answer");
        let answer = answer.ok_or_else(unproved)?;
        let key = request.fingerprint();
        // The seal is bound to the ticket, its TPM and the key: the answer to another challenge
        // cannot be replayed here, because its seal does not open.
        let open = self.unseal(&name(ticket, key), &answer.sealed);
        let open = open.map_err(|_| refused("the challenge was made for another ticket or key"))?;
        let (end, secret) = open.split_first_chunk::<8>().ok_or_else(unproved)?;
        if self.now() > Timestamp::from_ms(u64::from_be_bytes(*end)) {
            return Err(refused("the TPM took too long to answer").into());
        }
        if !tpm::is_proof(secret, &ticket.id.to_string(), key, &answer.proof) {
            return Err(refused("the TPM could not read the challenge").into());
        }
        Ok(Some(bound.clone()))
    }
}

fn name(ticket: &JoinTicket, key: &str) -> String {
    let tpm = ticket.tpm.as_ref().map(Digest::hex).unwrap_or_default();
    format!("tpm-challenge {} {tpm} {key}", ticket.id)
}

fn refused(why: &str) -> StateError {
    StateError::new(ErrorCode::TpmUnproved, why)
}

fn not_bound() -> StateError {
    StateError::new(ErrorCode::TicketForeign, "the ticket is not bound to a TPM")
}

fn other_tpm(wanted: &Digest, shown: &str) -> StateError {
    let message = format!(
        "the ticket is bound to the TPM {}, this one is {shown}",
        wanted.hex()
    );
    StateError::new(ErrorCode::TicketForeign, message)
}

/// `TPM2_MakeCredential` in software: the credential, and the seed that the EK decrypts.
fn make_credential(
    endorsement: &TpmKey,
    resident: &TpmKey,
    secret: &[u8; SECRET_LEN],
) -> Result<(Vec<u8>, Vec<u8>), PkiError> {
    let (seed, encrypted_seed) = agree(endorsement)?;
    let key = kdf_a(&seed, "STORAGE", &resident.name, 128);
    let mut identity = sized(secret);
    encrypt_cfb(&key[..BLOCK_LEN], &mut identity);
    let key = kdf_a(&seed, "INTEGRITY", &[], 256);
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let tag = hmac::sign(&key, &[&identity[..], &resident.name].concat());
    let credential = [sized(tag.as_ref()), identity].concat();
    Ok((credential, encrypted_seed))
}

/// A seed that control and the holder of the EK alone know, and the point that tells it to the
/// latter.
fn agree(endorsement: &TpmKey) -> Result<([u8; 32], Vec<u8>), PkiError> {
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new())
        .map_err(|_| PkiError::Randomness)?;
    let public = own.compute_public_key().map_err(|_| PkiError::Randomness)?;
    let (x, y) = public.as_ref()[1..].split_at(32);
    let (x, y) = (x.to_vec(), y.to_vec());
    let point = [&[4][..], &endorsement.x, &endorsement.y].concat();
    let other = UnparsedPublicKey::new(&ECDH_P256, point);
    let seed = agree_ephemeral(own, &other, |shared| {
        // KDFe: one block is enough.
        let said = [
            &1u32.to_be_bytes()[..],
            shared,
            b"IDENTITY\0",
            &x,
            &endorsement.x,
        ];
        sha256(&said.concat())
    })
    .map_err(|_| IdentityError::Tpm("the endorsement key is no point of P-256"))?;
    Ok((seed, [sized(&x), sized(&y)].concat()))
}

/// KDFa with SHA-256, one block.
fn kdf_a(key: &[u8], label: &str, context: &[u8], bits: u32) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let (first, bits) = (1u32.to_be_bytes(), bits.to_be_bytes());
    let said = [&first[..], label.as_bytes(), &[0], context, &bits].concat();
    let mut out = [0; 32];
    out.copy_from_slice(hmac::sign(&key, &said).as_ref());
    out
}

/// AES-128 in CFB mode with an initial vector of zeros; the key is used once.
fn encrypt_cfb(key: &[u8], data: &mut [u8]) {
    let cipher = Aes128::new(GenericArray::from_slice(key));
    let mut feedback = GenericArray::from([0; BLOCK_LEN]);
    for block in data.chunks_mut(BLOCK_LEN) {
        cipher.encrypt_block(&mut feedback);
        for (byte, pad) in block.iter_mut().zip(&feedback) {
            *byte ^= pad;
        }
        feedback[..block.len()].copy_from_slice(block);
    }
}

/// A `TPM2B`: bytes after their length.
fn sized(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    [&len.to_be_bytes()[..], bytes].concat()
}
