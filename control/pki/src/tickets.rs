//! Join and boot tickets. The secret is returned once; the state keeps its SHA-256.

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
use crate::validity::after;
use crate::{Pki, PkiError};

/// Default lifetime of a join ticket.
pub const JOIN_TICKET_LIFE: Duration = Duration::from_secs(15 * 60);
/// Longest lifetime of a join ticket. A longer one is shortened to it.
pub const JOIN_TICKET_LIFE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Lifetime of a boot ticket. The machine boots with it at once.
pub const BOOT_TICKET_LIFE: Duration = Duration::from_secs(5 * 60);

/// Parameters of a new join ticket.
#[derive(Clone, Debug)]
pub struct NewJoinTicket {
    /// Kind of agent.
    pub kind: AgentKind,
    /// Partition of the agent.
    pub partition: PartitionId,
    /// Name of the agent; of a core agent the id of its switch.
    pub agent: String,
    /// SHA-256 of the key that may redeem it. `None` means the first key that does.
    pub key: Option<Digest>,
    /// SHA-256 of the endorsement key (SubjectPublicKeyInfo) of the TPM that may redeem it. `None`
    /// means that no TPM is needed.
    pub tpm: Option<Digest>,
    /// `true` if it may let an agent in again whose identity was revoked.
    pub reenrols: bool,
    /// Lifetime. Zero means [`JOIN_TICKET_LIFE`]; the maximum is [`JOIN_TICKET_LIFE_MAX`].
    pub life: Duration,
    /// Addresses of control for the agent, host:port.
    pub control: Vec<String>,
}

/// A boot ticket with its secret.
#[derive(Clone)]
pub struct NewBootTicket {
    /// Public id.
    pub id: BootTicketId,
    /// The secret. It is stored nowhere.
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
    /// Creates a join ticket on behalf of a user. The second value is the content of the ticket
    /// file, which contains the secret and is stored nowhere.
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
            reenrols: new.reenrols,
            expires_at: after(now, life.min(JOIN_TICKET_LIFE_MAX)),
        };
        let command = Command::new(now, actor, create);
        let ticket = self
            .inner
            .store
            .propose(permit, &command)
            .await?
            .join_ticket()?;
        // A name that can never become an identity is refused now and not when the agent joins.
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

    /// Revokes a join ticket on behalf of a user: it can no longer be redeemed. If an agent has
    /// joined with it, and with no other since, the sessions of the agent end and it cannot come
    /// back.
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
        // The agent may have joined again with another ticket. Its certificates are of that one
        // then.
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

    /// Creates a boot ticket for one machine and MAC address, for the pixie of a partition.
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

/// A new secret and its SHA-256.
pub(crate) fn secret() -> Result<([u8; SECRET_LEN], Digest), PkiError> {
    let mut secret = [0u8; SECRET_LEN];
    random(&mut secret)?;
    let digest = Digest::sha256(sha256(&secret));
    Ok((secret, digest))
}
