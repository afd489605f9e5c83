//! Makes tickets: the secret goes out once, its SHA-256 stays.

use std::sync::Arc;
use std::time::Duration;

use control_authz::Permit;
use control_state::{
    AgentKind, CertificateChoice, Command, CreateJoinTicket, IssueBootTicket, JoinTicket,
    RevokeCertificates, RevokeJoinTicket,
};
use proto_identity::ticket::{JoinTicket as TicketFile, SECRET_LEN};
use proto_identity::{SpiffeId, sha256};
use proto_types::{BootTicketId, Digest, JoinTicketId, MacAddr, MachineId, PartitionId, Timestamp};
use uuid::Uuid;

use crate::judge::role_of;
use crate::seal::random;
use crate::{Pki, PkiError};

/// Life of a join ticket that names none.
pub const JOIN_TICKET_LIFE: Duration = Duration::from_secs(15 * 60);
/// Longest life of a join ticket.
pub const JOIN_TICKET_LIFE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Life of a boot ticket.
pub const BOOT_TICKET_LIFE: Duration = Duration::from_secs(5 * 60);

/// What a join ticket is to be for.
#[derive(Clone, Debug)]
pub struct NewJoinTicket {
    /// Kind of agent.
    pub kind: AgentKind,
    /// Where.
    pub partition: PartitionId,
    /// The agent's name; of a core agent the switch's id.
    pub agent: String,
    /// SHA-256 of the only key that it is good for; without it the first key takes it.
    pub key: Option<Digest>,
    /// SHA-256 of the endorsement key (SubjectPublicKeyInfo) of the only TPM that it is good for.
    pub tpm: Option<Digest>,
    /// Life; [`JOIN_TICKET_LIFE`] when zero, at most [`JOIN_TICKET_LIFE_MAX`].
    pub life: Duration,
    /// Where the agent reaches control, host:port.
    pub control: Vec<String>,
}

/// A boot ticket with its secret.
#[derive(Clone)]
pub struct NewBootTicket {
    /// Public name.
    pub id: BootTicketId,
    /// The secret; nowhere else.
    pub secret: [u8; SECRET_LEN],
    /// End of validity.
    pub expires_at: Timestamp,
}

impl std::fmt::Debug for NewBootTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewBootTicket")
            .field("id", &self.id)
            .field("secret", &"<redacted>")
            .field("expires_at", &self.expires_at)
            .finish()
    }
}

impl Pki {
    /// Makes a join ticket on behalf of a user. The second value is the content of the ticket
    /// file: secret, and nowhere else.
    pub async fn create_join_ticket(
        &self,
        permit: &Permit,
        actor: &str,
        new: NewJoinTicket,
    ) -> Result<(Arc<JoinTicket>, String), PkiError> {
        let (secret, digest) = secret()?;
        let life = if new.life.is_zero() {
            JOIN_TICKET_LIFE
        } else {
            new.life
        };
        let now = self.now();
        let create = CreateJoinTicket {
            id: JoinTicketId::new(Uuid::now_v7()),
            kind: new.kind,
            partition: new.partition,
            agent: new.agent,
            secret: digest,
            key: new.key,
            tpm: new.tpm,
            expires_at: after(now, life.min(JOIN_TICKET_LIFE_MAX)),
        };
        let command = Command::new(now, actor, create);
        let ticket = self
            .inner
            .store
            .propose(permit, &command)
            .await?
            .join_ticket()?;
        // Refuse early what could never become an identity.
        SpiffeId::agent(
            self.trust_domain(),
            ticket.partition.as_str(),
            role_of(&ticket),
            &ticket.agent,
        )?;
        let file = TicketFile {
            id: ticket.id.to_string(),
            secret,
            roots: self.root_hashes(),
            control: new.control,
            tpm: ticket.tpm.is_some(),
        };
        Ok((ticket, file.encode()))
    }

    /// Revokes a join ticket on behalf of a user: it can no longer be redeemed. When an agent
    /// joined by it, and by none since, that agent's sessions end and it cannot come back.
    pub async fn revoke_join_ticket(
        &self,
        permit: &Permit,
        actor: &str,
        id: JoinTicketId,
    ) -> Result<Arc<JoinTicket>, PkiError> {
        let command = Command::new(self.now(), actor, RevokeJoinTicket { id });
        let ticket = self
            .inner
            .store
            .propose(permit, &command)
            .await?
            .join_ticket()?;
        let is_last = self.inner.store.read(|t| {
            let same = |other: &&Arc<JoinTicket>| {
                other.kind == ticket.kind
                    && other.partition == ticket.partition
                    && other.agent == ticket.agent
            };
            let last = t
                .all::<JoinTicket>()
                .filter(same)
                .max_by_key(|other| other.redeemed_at);
            last.is_some_and(|last| last.id == ticket.id && last.redeemed_at.is_some())
        });
        if is_last.await? {
            let identity = SpiffeId::agent(
                self.trust_domain(),
                ticket.partition.as_str(),
                role_of(&ticket),
                &ticket.agent,
            )?;
            let choice = CertificateChoice::Identity(identity.to_string());
            let reason = format!("join ticket {id} was revoked");
            self.propose(actor, RevokeCertificates { choice, reason })
                .await?;
        }
        Ok(ticket)
    }

    /// Makes a boot ticket for one machine and address, asked for by the pixie of a partition.
    pub async fn issue_boot_ticket(
        &self,
        actor: &SpiffeId,
        partition: PartitionId,
        machine: MachineId,
        mac: MacAddr,
    ) -> Result<NewBootTicket, PkiError> {
        let (secret, digest) = secret()?;
        let issue = IssueBootTicket {
            id: BootTicketId::new(Uuid::now_v7()),
            machine,
            mac,
            partition,
            secret: digest,
            expires_at: after(self.now(), BOOT_TICKET_LIFE),
        };
        let ticket = self
            .propose(actor.to_string(), issue)
            .await?
            .boot_ticket()?;
        Ok(NewBootTicket {
            id: ticket.id,
            secret,
            expires_at: ticket.expires_at,
        })
    }
}

pub(crate) fn secret() -> Result<([u8; SECRET_LEN], Digest), PkiError> {
    let mut secret = [0u8; SECRET_LEN];
    random(&mut secret)?;
    let digest = Digest::sha256(sha256(&secret));
    Ok((secret, digest))
}

pub(crate) fn after(now: Timestamp, life: Duration) -> Timestamp {
    let life = u64::try_from(life.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_ms(now.ms().saturating_add(life))
}
