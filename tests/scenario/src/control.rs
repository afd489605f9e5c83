//! Control's own: nodes, keys, certificates, the audit trail, the clock.

use anyhow::Result;
use serde_json::{Value, json};

use crate::catalog::PARTITION;
use crate::scenario::{Scenario, digest, id};

const HOUR_MS: u64 = 3_600_000;
/// Whom the certificates are of.
const LEAF: &str = "spiffe://bench/partition/lab/core/leaf0";

fn authorities(scenario: &Scenario<'_>, generation: u32) -> Vec<Value> {
    let record = |name: &str| {
        let id = match (name, generation) {
            ("root", 1) => "root".to_owned(),
            _ => format!("{name}-{generation}"),
        };
        json!({
            "id": id, "certificate": [1], "sealed_key": [2], "created_at": scenario.after(0),
            "not_after": scenario.after(1 << 40), "retired": false, "generation": generation,
        })
    };
    ["agents", "nodes", "peers", "root"].map(record).to_vec()
}

fn certificate(scenario: &Scenario<'_>, serial: &str) -> Value {
    json!({
        "serial": serial, "identity": LEAF, "issued_at": scenario.after(0),
        "not_after": scenario.after(HOUR_MS), "machine": null, "allocation": null,
        "key": digest(7), "authority": 1, "revoked_at": null, "revoked_reason": "",
    })
}

fn ticket(scenario: &Scenario<'_>, number: u128) -> Value {
    json!({"CreateJoinTicket": {
        "id": id(number), "kind": "core", "partition": PARTITION, "agent": "leaf0",
        "secret": digest(5), "key": digest(7), "expires_at": scenario.after(HOUR_MS / 2),
    }})
}

fn record(scenario: &Scenario<'_>) -> Value {
    json!({
        "id": "1", "time": scenario.after(0), "ended": scenario.after(1), "user": "acme",
        "tenant": "acme", "project": id(1), "method": "/metalstack.api.v2.IPService/Create",
        "body": "{}", "source_ip": "127.0.0.1", "result_code": 0, "phase": "call",
        "rule": "night", "count": 1,
    })
}

pub(crate) fn rows(scenario: &mut Scenario<'_>) -> Result<()> {
    nodes(scenario)?;
    certificates(scenario)?;
    let op = json!({"AppendAudit": {"entries": [record(scenario)]}});
    scenario.row(op)?;
    scenario.row(json!({"MarkAuditExport": {"name": "siem", "sequence": 1, "missed": 0}}))?;
    scenario.row(json!({"ForgetAuditExport": {"name": "siem"}}))?;
    // A trail that is nearly full: what is appended then makes others go.
    for _ in 0..100 {
        let entries = vec![record(scenario); 100];
        scenario.done(json!({"AppendAudit": {"entries": entries}}))?;
    }
    let op = json!({"AppendAudit": {"entries": [record(scenario)]}});
    scenario.row(op)?;
    let op = json!({"AcceptTime": {"time": scenario.after(0)}});
    scenario.row(op)
}

/// The fleet out of a backup of this moment, whose machines nobody has heard since.
pub(crate) fn ends(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.restore()?;
    scenario.row(json!({"ReconcileRestore": {"judge_silent": true}}))
}

fn nodes(scenario: &mut Scenario<'_>) -> Result<()> {
    scenario.row(json!({"AnnounceNode": {
        "id": 1, "peer_address": "127.0.0.1:1", "mesh_addresses": ["127.0.0.1:2"],
        "level": control_state::FEATURE_LEVEL, "version": "1",
    }}))?;
    let op = json!({"InviteNode": {
        "secret": digest(1), "key": digest(2), "expires_at": scenario.after(HOUR_MS),
    }});
    scenario.row(op)?;
    scenario.row(json!({"JoinNode": {
        "id": 2, "secret": digest(1), "key": digest(2), "peer_address": "127.0.0.1:3",
        "level": control_state::FEATURE_LEVEL,
    }}))?;
    scenario.row(json!({"RemoveNode": {"id": 2}}))
}

fn certificates(scenario: &mut Scenario<'_>) -> Result<()> {
    let first = authorities(scenario, 1);
    for record in &first {
        scenario.row(json!({"PutCa": record}))?;
    }
    let op = json!({"PutSigningKey": {
        "id": "key", "sealed_key": [1], "public_key": [2], "created_at": scenario.after(0),
        "not_after": scenario.after(HOUR_MS),
    }});
    scenario.row(op)?;
    let op = ticket(scenario, 1);
    scenario.row(op)?;
    scenario.row(json!({"RedeemJoinTicket": {
        "id": id(1), "secret": digest(5), "key": digest(7),
    }}))?;
    let op = json!({"IssueCertificate": {
        "certificate": certificate(scenario, "aa"), "cause": {"join": {"join_ticket": id(1)}},
    }});
    scenario.row(op)?;
    scenario.row(json!({"RevokeCertificates": {
        "choice": {"serial": "aa"}, "reason": "text",
    }}))?;
    scenario.row(json!({"ReportAgent": {
        "identity": LEAF, "kind": "core", "agent": "lab/leaf0", "version": "1.3.0",
        "phase": "failed", "wanted": "1.4.0", "error": "text", "ailment": "text",
    }}))?;
    scenario.row(json!({"RotateIdentity": {"identity": LEAF}}))?;
    scenario.row(json!({"RevokeIdentity": {"identity": LEAF, "reason": "text"}}))?;
    // Its identity is revoked by now.
    let mut op = ticket(scenario, 2);
    op["CreateJoinTicket"]["reenrols"] = true.into();
    scenario.done(op)?;
    scenario.row(json!({"RevokeJoinTicket": {"id": id(2)}}))?;
    let op = json!({"BeginCaRotation": {
        "authorities": authorities(scenario, 2), "until": scenario.after(24 * HOUR_MS),
        "is_forced": false,
    }});
    scenario.row(op)?;
    let op = json!({"ForceCaRotation": {"until": scenario.after(HOUR_MS)}});
    scenario.row(op)
}
