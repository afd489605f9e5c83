//! Rows of leases, machines by owner and lessee, and node allocations.

use proto_public::metalmesh::admin::v1::{Lease, NodeAllocation, TenuredMachine};

use crate::output::TableRow;
use crate::text::{age, meta_age, moment, or_dash};

use super::row;

row!(Lease, "metalmesh.admin.v1.Lease", |l| [
    "machine": l.machine.clone(), "owner": l.owner.clone(), "lessee": l.lessee.clone(),
    "ends": age(l.expires_at.as_ref()), "state": lease_state(l).to_owned(),
    "transfer to": or_dash(l.transfer_to.clone()),
], wide [
    "id": l.id.clone(), "until": moment(l.expires_at.as_ref()),
    "extendable until": moment(l.extendable_until.as_ref()),
    "granted": age(l.granted_at.as_ref()), "comment": or_dash(l.comment.clone()),
]);

row!(TenuredMachine, "metalmesh.admin.v1.TenuredMachine", |m| [
    "machine": m.machine.clone(), "partition": or_dash(m.partition.clone()),
    "size": or_dash(m.size.clone()), "relation": or_dash(m.relation.clone()),
    "owner": or_dash(m.owner.clone()),
    "lessee": or_dash(m.lease.as_ref().map(|lease| lease.lessee.clone()).unwrap_or_default()),
    "ends": age(m.lease.as_ref().and_then(|lease| lease.expires_at.as_ref())),
    "phase": m.phase.clone(), "class": or_dash(m.resource_class.clone()),
], wide [
    "state": m.state.clone(), "used by": or_dash(m.used_by.clone()),
    "held by": or_dash(m.node_allocation.clone()), "traits": or_dash(m.traits.join(",")),
    "until": moment(m.lease.as_ref().and_then(|lease| lease.expires_at.as_ref())),
    "lease": m.lease.as_ref().map_or("-", lease_state).to_owned(),
]);

row!(NodeAllocation, "metalmesh.admin.v1.NodeAllocation", |n| [
    "id": n.id.clone(), "name": or_dash(n.name.clone()), "owner": or_dash(n.owner.clone()),
    "class": n.resource_class.clone(), "state": n.state.clone(),
    "machine": or_dash(n.machine.clone()), "age": meta_age(n.meta.as_ref()),
    "error": or_dash(n.last_error.clone()),
], wide [
    "traits": or_dash(n.traits.join(",")), "candidates": or_dash(n.candidates.join(",")),
    "extra": or_dash(extra(n)),
]);

/// The state of a lease in one word.
fn lease_state(lease: &Lease) -> &'static str {
    match lease.warned_at {
        Some(_) => "ending",
        None => "running",
    }
}

fn extra(held: &NodeAllocation) -> String {
    let mut pairs: Vec<String> = held
        .extra
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.sort();
    pairs.join(",")
}
