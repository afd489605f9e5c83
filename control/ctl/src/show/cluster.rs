//! Rows of the control plane's objects: nodes, identities, tickets, authorities, tasks, the VPN.

use proto_public::admin::v2::{TaskInfo, VpnServiceAuthKeyResponse};
use proto_public::api::v2::VpnNode;
use proto_public::metalmesh::admin::v1::{
    CaRoot, CaRotation, Identity, JoinTicket, Node, RestoredMachine, RestoredPort,
};

use crate::output::TableRow;
use crate::text::{age, enum_text, moment, or_dash};

use super::row;

row!(JoinTicket, "metalmesh.admin.v1.JoinTicket", |t| [
    "id": t.id.clone(), "kind": enum_text("metalmesh.admin.v1.AgentKind", t.kind),
    "partition": t.partition.clone(), "agent": t.agent.clone(), "state": ticket_state(t),
    "expires": age(t.expires_at.as_ref()), "age": age(t.created_at.as_ref()),
], wide ["key": or_dash(t.key_sha256.clone()), "tpm": or_dash(t.tpm_ek_sha256.clone())]);

row!(Identity, "metalmesh.admin.v1.Identity", |i| [
    "id": i.id.clone(), "kind": enum_text("metalmesh.admin.v1.IdentityKind", i.kind),
    "state": state_of(i), "joined by": enum_text("metalmesh.admin.v1.JoinMethod", i.joined_by),
    "issued": age(i.issued_at.as_ref()), "expires": age(i.expires_at.as_ref()),
    "last seen": age(i.last_seen.as_ref()),
], wide [
    "partition": or_dash(i.partition.clone()), "project": or_dash(i.project.clone()),
    "serial": i.serial.clone(), "joined with": or_dash(i.joined_with.clone()),
    "authority": i.authority.to_string(), "reason": or_dash(i.revoked_reason.clone()),
]);

row!(CaRoot, "metalmesh.admin.v1.CaRoot", |r| [
    "generation": r.generation.to_string(), "sha256": r.sha256.clone(),
    "signs": if r.signs { "yes" } else { "no" }, "expires": age(r.expires_at.as_ref()),
    "age": age(r.created_at.as_ref()),
], wide []);

row!(CaRotation, "metalmesh.admin.v1.CaRotation", |r| [
    "from": r.from.to_string(), "to": r.to.to_string(),
    "phase": enum_text("metalmesh.admin.v1.CaPhase", r.phase),
    "forced": if r.forced { "yes" } else { "no" }, "waiting": r.waiting.to_string(),
    "began": age(r.began_at.as_ref()), "until": age(r.until.as_ref()),
], wide ["switched": age(r.switched_at.as_ref()), "done": age(r.done_at.as_ref())]);

row!(Node, "metalmesh.admin.v1.Node", |n| [
    "node": n.id.to_string(), "role": enum_text("metalmesh.admin.v1.NodeRole", n.role),
    "peers": or_dash(n.peer_address.clone()),
    "behind": n.behind.map_or_else(|| "-".to_owned(), |behind| behind.to_string()),
    "heard": age(n.heard_at.as_ref()), "joined": age(n.joined_at.as_ref()),
    "level": n.feature_level.to_string(),
], wide [
    "mesh": or_dash(n.mesh_addresses.join(",")), "version": or_dash(n.version.clone()),
    "expires": age(n.expires_at.as_ref()), "removed": age(n.removed_at.as_ref()),
]);

row!(RestoredMachine, "metalmesh.admin.v1.RestoredMachine", |m| [
    "machine": m.uuid.clone(), "partition": or_dash(m.partition.clone()),
    "known as": m.phase.clone(), "project": or_dash(m.project.clone()),
    "observed": if m.observed { "yes" } else { "no" },
    "proven": if m.proven { "yes" } else { "no" },
    "heard": age(m.heard_at.as_ref()), "event": or_dash(m.event.clone()),
    "power": or_dash(m.power_state.clone()),
    "locked": if m.locked { "yes" } else { "no" },
], wide []);

row!(RestoredPort, "metalmesh.admin.v1.RestoredPort", |p| [
    "switch": p.switch.clone(), "port": p.port.clone(), "machine": or_dash(p.machine.clone()),
    "known vni": segment(p.known_vni), "stays in": segment(p.kept_vni),
], wide []);

/// The VXLAN network identifier of a port; 0 means no segment.
fn segment(vni: u32) -> String {
    match vni {
        0 => "none".into(),
        vni => vni.to_string(),
    }
}

fn ticket_state(ticket: &JoinTicket) -> String {
    if ticket.revoked {
        "revoked".into()
    } else if ticket.redeemed_at.is_some() {
        "used".into()
    } else if age(ticket.expires_at.as_ref()).starts_with("in ") {
        "open".into()
    } else {
        "expired".into()
    }
}

row!(TaskInfo, "metalstack.admin.v2.TaskInfo", |t| [
    "id": t.id.clone(), "type": t.r#type.clone(),
    "state": enum_text("metalstack.admin.v2.TaskState", t.state),
    "works on": String::from_utf8_lossy(&t.payload).into_owned(),
    "ended": age(t.completed_at.as_ref()), "error": or_dash(t.last_error.clone()),
], wide ["queue": t.queue.clone(), "deadline": age(t.deadline.as_ref())]);

row!(VpnNode, "metalstack.api.v2.VPNNode", |n| [
    "id": n.id.to_string(), "name": n.name.clone(), "project": n.project.clone(),
    "addresses": or_dash(n.ip_addresses.join(",")), "online": n.online.to_string(),
    "seen": age(n.last_seen.as_ref()),
], wide []);

row!(VpnServiceAuthKeyResponse, "metalstack.admin.v2.VPNServiceAuthKeyResponse", |k| [
    "address": k.address.clone(), "key": k.auth_key.clone(),
    "ephemeral": k.ephemeral.to_string(), "reusable": k.reusable.to_string(),
    "expires": moment(k.expires_at.as_ref()),
], wide []);

/// The state of an identity: `revoked`, `rotating` (the agent must make a new key), `connected` (it
/// has a session) or `known`.
pub(crate) fn state_of(identity: &Identity) -> &'static str {
    if identity.revoked_at.is_some() {
        "revoked"
    } else if identity.rotate_since.is_some() {
        "rotating"
    } else if identity.connected == Some(true) {
        "connected"
    } else {
        "known"
    }
}
