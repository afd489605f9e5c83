//! Reports of agents about their programs.

use proto_errors::{Error, ErrorCode};

use crate::identity::entity::Identity;
use crate::reply::{ApplyResult, Reply};
use crate::rollout::command::ReportAgent;
use crate::rollout::entity::{AgentProgram, RolloutKind};
use crate::tables::{Tables, Tx};

/// Keeps the program of an agent. Refused without its identity, with which it ends.
pub(crate) fn report(tx: &mut Tx<'_>, op: &ReportAgent) -> ApplyResult {
    let identity: Identity = tx.require(&op.identity)?;
    if identity.revoked_at.is_some() {
        let what = format!("identity \"{}\" is revoked", identity.id);
        return Err(Error::new(ErrorCode::CertificateRevoked, what));
    }
    if op.kind == RolloutKind::Firewall {
        return Err(Error::invalid("kind", "must not be that of firewalls"));
    }
    tx.save(AgentProgram {
        identity: op.identity.clone(),
        kind: op.kind,
        agent: op.agent.clone(),
        version: op.version.clone(),
        phase: op.phase.clone(),
        wanted: op.wanted.clone(),
        error: op.error.clone(),
        ailment: op.ailment.clone(),
        at: tx.now,
    });
    Ok(Reply::None)
}

/// `true` if a report says anything new.
pub fn agent_report_matters(tables: &Tables, op: &ReportAgent) -> bool {
    let known = tables.get::<AgentProgram>(&op.identity);
    known.is_none_or(|known| {
        let AgentProgram {
            identity: _,
            kind,
            agent,
            version,
            phase,
            wanted,
            error,
            ailment,
            at: _,
        } = known.as_ref();
        (kind, agent, version, phase) != (&op.kind, &op.agent, &op.version, &op.phase)
            || (wanted, error, ailment) != (&op.wanted, &op.error, &op.ailment)
    })
}
