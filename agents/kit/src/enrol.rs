//! Enrolment: trades a ticket and a public key for a certificate.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base_runtime::Backoff;
use proto_identity::{CertificateDer, Credential, Key, Roots, sha256_hex, tls};
use proto_link::{ALPN, LinkStatus, MeshClient, MeshClientConfig};
use proto_mesh::{
    Certificate, EnrolServiceClient, JoinRequest, ResumeRequest, TpmChallengeRequest,
};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::error::KitError;
use crate::tpm::Tpm;

/// Pauses between attempts while control does not answer.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));
/// Time after which [`enrol_once`] begins no further attempt. The machine reboots then and asks for
/// a fresh ticket.
const BOOT_ENROL_TIME_MAX: Duration = Duration::from_secs(120);

/// Reads the nonce of the machine's BMC from inside the machine. `None` if the BMC has none or does
/// not show it.
pub type NonceReader =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Option<String>> + Send>> + Send + Sync>;

/// A boot ticket and the machine that it is for.
#[derive(Clone)]
pub struct BootClaim {
    /// Public id of the ticket.
    pub ticket_id: String,
    /// The ticket's secret.
    pub secret: Vec<u8>,
    /// SMBIOS UUID of the machine.
    pub machine_uuid: String,
    /// MAC address of the boot interface.
    pub mac: String,
    /// Read before each attempt: the nonce may appear and change while the machine waits.
    pub nonce: Option<NonceReader>,
}

// By hand: a derived one would print the secret.
impl fmt::Debug for BootClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BootClaim")
            .field("ticket_id", &self.ticket_id)
            .field("secret", &"<redacted>")
            .field("machine_uuid", &self.machine_uuid)
            .field("mac", &self.mac)
            .finish_non_exhaustive()
    }
}

/// A ticket, and the proofs that go with it.
pub(crate) struct Claim {
    pub(crate) ticket_id: String,
    pub(crate) secret: Vec<u8>,
    /// UUID and MAC address. `None` for agents other than hammer.
    pub(crate) machine: Option<(String, String)>,
    pub(crate) nonce: Option<NonceReader>,
    /// Path of the TPM that must answer. `None` if the ticket is not bound to one.
    pub(crate) tpm: Option<PathBuf>,
}

/// Joins with a boot ticket and a key in memory: for hammer, which has no state directory. Gives up
/// after two minutes without an answer; the caller needs a fresh ticket then.
pub async fn enrol_once(
    control: &[String],
    roots: Roots,
    claim: &BootClaim,
) -> Result<Credential, KitError> {
    let claim = Claim {
        ticket_id: claim.ticket_id.clone(),
        secret: claim.secret.clone(),
        machine: Some((claim.machine_uuid.clone(), claim.mac.clone())),
        nonce: claim.nonce.clone(),
        tpm: None,
    };
    let end = Instant::now() + BOOT_ENROL_TIME_MAX;
    join(control, roots, &claim, Key::generate()?, Some(end)).await
}

/// Joins. Retries until `end` while control does not answer; `None` means without a limit.
pub(crate) async fn join(
    control: &[String],
    roots: Roots,
    claim: &Claim,
    key: Key,
    end: Option<Instant>,
) -> Result<Credential, KitError> {
    // The agent has no certificate yet. The pinned roots authenticate control before the ticket's
    // secret is sent.
    let mesh = anonymous(control, roots.clone())?;
    let client = EnrolServiceClient::from(mesh.clone());
    let (machine_uuid, mac) = claim.machine.clone().unwrap_or_default();
    let mut failures = 0_u32;
    let answer = loop {
        let mut request = JoinRequest {
            ticket_id: claim.ticket_id.clone(),
            secret: claim.secret.clone(),
            csr: key.request()?,
            machine_uuid: machine_uuid.clone(),
            mac: mac.clone(),
            bmc_nonce: read_nonce(claim).await,
            ..JoinRequest::default()
        };
        let answer = match answer_of_tpm(&client, claim, &key, &mut request).await {
            Ok(()) => client.join(request).await.map_err(of_link),
            Err(e) => Err(e),
        };
        match answer {
            Ok(answer) => break answer,
            // The same key and ticket again: if only the answer was lost, control answers the
            // repeated request of the same key with a certificate.
            Err(KitError::Link(e)) if end.is_none_or(|end| Instant::now() < end) => {
                warn!(error = %e, "join failed; retrying");
                sleep(RETRY.pause(failures)).await;
                failures = failures.saturating_add(1);
            }
            Err(e) => return Err(e),
        }
    };
    mesh.close().await;
    let credential = accept(answer, key)?;
    check_roots(&credential, &roots)?;
    Ok(credential)
}

/// The nonce of the machine's BMC. Empty if there is none.
async fn read_nonce(claim: &Claim) -> Vec<u8> {
    match &claim.nonce {
        Some(read) => read().await.unwrap_or_default().into_bytes(),
        None => Vec::new(),
    }
}

/// Adds the TPM's answer to control's challenge to the request, if the ticket is bound to a TPM.
async fn answer_of_tpm(
    client: &EnrolServiceClient,
    claim: &Claim,
    key: &Key,
    join: &mut JoinRequest,
) -> Result<(), KitError> {
    let Some(path) = claim.tpm.clone() else {
        return Ok(());
    };
    let (mut tpm, loaded) = blocking(move || {
        let mut tpm = Tpm::open(&path)?;
        let loaded = tpm.load()?;
        Ok((tpm, loaded))
    })
    .await?;
    let request = TpmChallengeRequest {
        ticket_id: join.ticket_id.clone(),
        secret: join.secret.clone(),
        csr: join.csr.clone(),
        endorsement: loaded.endorsement.clone(),
        attestation: loaded.attestation.clone(),
    };
    let asked = client.challenge_tpm(request).await;
    let challenge = match asked {
        Ok(challenge) => challenge,
        // A TPM has room for three loaded keys or so; without the unload a few retries fill it.
        Err(e) => {
            blocking(move || tpm.unload(&loaded)).await?;
            return Err(of_link(e));
        }
    };
    let (credential, seed) = (challenge.credential, challenge.encrypted_seed);
    let secret = blocking(move || {
        let secret = tpm.activate(&loaded, &credential, &seed);
        tpm.unload(&loaded)?;
        secret
    })
    .await?;
    join.tpm_sealed = challenge.sealed;
    join.tpm_proof = proto_identity::tpm::proof(&secret, &claim.ticket_id, &key.fingerprint());
    Ok(())
}

/// Runs TPM commands on a thread for blocking work: a hardware TPM takes seconds.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KitError> + Send + 'static,
) -> Result<T, KitError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|e| Err(KitError::Link(LinkStatus::internal(e.to_string()))))
}

fn of_link(e: LinkStatus) -> KitError {
    if e.is_transient() {
        KitError::Link(e)
    } else {
        KitError::Refused(e)
    }
}

/// Requests a certificate for `key` in place of one that has expired or that control refuses. The
/// request goes over an anonymous connection and carries the old certificate.
pub(crate) async fn resume(
    control: &[String],
    credential: &Credential,
    key: &Key,
) -> Result<Credential, KitError> {
    let mesh = anonymous(control, Roots::Certificates(credential.roots.clone()))?;
    let client = EnrolServiceClient::from(mesh.clone());
    let request = ResumeRequest {
        csr: key.request()?,
        chain: credential.chain.iter().map(|c| c.to_vec()).collect(),
    };
    let answer = client.resume(request).await;
    // Closed on failure too: a retry must not find the places of anonymous callers taken by itself.
    mesh.close().await;
    let answer = answer.map_err(of_link)?;
    info!("identity resumed with a new certificate");
    accept(answer, key.clone())
}

/// A credential of a certificate from control. Fails if the certificate is not for this key.
pub(crate) fn accept(answer: Certificate, key: Key) -> Result<Credential, KitError> {
    let certificates = |list: Vec<Vec<u8>>| list.into_iter().map(CertificateDer::from).collect();
    let credential = Credential {
        key,
        chain: certificates(answer.chain),
        roots: certificates(answer.roots),
    };
    credential.identity()?;
    Ok(credential)
}

/// Checks that control's list of roots has one of those that the ticket pins. The session proved
/// the pinned ones; without this check a bad answer could make the agent trust only others from now
/// on.
fn check_roots(credential: &Credential, pinned: &Roots) -> Result<(), KitError> {
    let known = |root: &CertificateDer<'static>| match pinned {
        Roots::Certificates(list) => list.contains(root),
        Roots::Sha256(list) => list
            .iter()
            .any(|h| h.eq_ignore_ascii_case(&sha256_hex(root))),
    };
    if credential.roots.iter().any(known) {
        Ok(())
    } else {
        Err(KitError::WrongRoots)
    }
}

fn anonymous(control: &[String], roots: Roots) -> Result<MeshClient, KitError> {
    let tls = tls::client_config(roots, None, ALPN)?;
    MeshClient::new(MeshClientConfig::new(control.to_vec(), tls))
        .map_err(|e: LinkStatus| KitError::Link(e))
}
