//! Checks of the audit trail: exports read the records before they are dropped.

use proto_public::metalmesh::admin::v1::AuditExport;

use super::facts::DoctorFacts;
use super::level::high;
use super::report::DoctorFinding;

/// The exports of the audit trail, and the limit of records that wait for them.
#[derive(Clone, Debug)]
pub(super) struct AuditFacts {
    pub(super) exports: Vec<AuditExport>,
    /// Maximum number of records that are kept for an export that has not read them.
    pub(super) unread_max: u64,
}

pub(super) fn exports(facts: &DoctorFacts) -> Vec<DoctorFinding> {
    let audit = match &facts.audit {
        Ok(audit) => audit,
        Err(error) => {
            return vec![DoctorFinding::unknown(
                "how far the audit trail was sent",
                error,
            )];
        }
    };
    if audit.exports.is_empty() {
        return vec![DoctorFinding::ok("the audit trail is sent nowhere")];
    }
    let places = audit.exports.iter();
    places
        .map(|place| export(place, audit.unread_max))
        .collect()
}

fn export(place: &AuditExport, unread_max: u64) -> DoctorFinding {
    let AuditExport { name, behind, .. } = place;
    let what = format!("audit export {name:?} is {behind} records behind of {unread_max}");
    let why = "beyond that records are dropped before they were sent";
    let mend = format!(
        "look at the place and into the leader's log; if it is gone: metalmesh audit exports \
         --forget {name}"
    );
    let level = high(*behind, unread_max / 5, unread_max / 2);
    DoctorFinding::graded(level, what, why, mend)
}
