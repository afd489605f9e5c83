//! Indexes of the audit trail: records by the caller that they count against, and gaps.

use proto_types::AuditPhase;

use crate::audit::entity::AuditEntry;
use crate::tables::index::{Index, Indexed, insert, remove};

impl Indexed for AuditEntry {
    fn add_to(&self, index: &mut Index) {
        match self.share() {
            Some(share) => insert(&mut index.audit_shares, share.to_owned(), self.sequence),
            None if self.phase == AuditPhase::Dropped => {
                index.audit_gaps.insert(self.sequence);
            }
            None => index.audit_retention = Some(self.sequence),
        }
    }
    fn remove_from(&self, index: &mut Index) {
        match self.share() {
            Some(share) => remove(&mut index.audit_shares, &share.to_owned(), &self.sequence),
            None if self.phase == AuditPhase::Dropped => {
                index.audit_gaps.remove(&self.sequence);
            }
            None => index.audit_retention = None,
        }
    }
}
