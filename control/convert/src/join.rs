//! Tickets with which agents join.

use control_state as state;
use proto_public::metalmesh::admin::v1::{AgentKind, JoinTicket};
use proto_types::Digest;

use super::time;

/// A ticket for the wire; its secret is not in the state.
pub fn ticket(it: &state::JoinTicket) -> JoinTicket {
    let kind = match it.kind {
        state::AgentKind::Core => AgentKind::Core,
        state::AgentKind::Bmc => AgentKind::Bmc,
        state::AgentKind::Pixie => AgentKind::Pixie,
    };
    JoinTicket {
        id: it.id.to_string(),
        kind: kind.into(),
        partition: it.partition.to_string(),
        agent: it.agent.clone(),
        key_sha256: it.key.as_ref().map(Digest::hex).unwrap_or_default(),
        created_at: time(it.created_at),
        expires_at: time(it.expires_at),
        redeemed_at: it.redeemed_at.and_then(time),
        revoked: it.revoked_at.is_some(),
        tpm_ek_sha256: it.tpm.as_ref().map(Digest::hex).unwrap_or_default(),
        reenrol: it.reenrols,
    }
}
