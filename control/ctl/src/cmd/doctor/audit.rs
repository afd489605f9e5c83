//! The audit trail: whether the places outside read it before it is dropped.

use proto_public::metalmesh::admin::v1::AuditExport;

use super::facts::Facts;
use super::report::{Found, high};

/// What is known of the places and of what is kept for them.
#[derive(Clone, Debug)]
pub(super) struct AuditFacts {
    pub(super) exports: Vec<AuditExport>,
    /// Records that are kept at most while a place has not read them.
    pub(super) unread_max: u64,
}

pub(super) fn exports(facts: &Facts) -> Vec<Found> {
    let audit = match &facts.audit {
        Ok(audit) => audit,
        Err(error) => return vec![Found::unknown("how far the audit trail was sent", error)],
    };
    if audit.exports.is_empty() {
        return vec![Found::ok("the audit trail is sent nowhere")];
    }
    let places = audit.exports.iter();
    places
        .map(|place| export(place, audit.unread_max))
        .collect()
}

fn export(place: &AuditExport, unread_max: u64) -> Found {
    let AuditExport { name, behind, .. } = place;
    let what = format!("audit export {name:?} is {behind} records behind of {unread_max}");
    let why = "beyond that records are dropped before they were sent";
    let mend = format!(
        "look at the place and into the leader's log; if it is gone: metalmesh audit exports \
         --forget {name}"
    );
    let level = high(*behind, unread_max / 5, unread_max / 2);
    Found::graded(level, what, why, mend)
}
