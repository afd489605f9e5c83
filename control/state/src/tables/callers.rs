//! Indexes of what callers have: for budgets, and for shares of the audit trail.

use proto_types::AuditPhase;

use super::index::{Index, Indexed, insert, remove};
use crate::audit::entity::AuditEntry;
use crate::tenancy::entity::{Invite, Tenant};

impl Indexed for Tenant {
    fn add_to(&self, index: &mut Index) {
        if self.created_by != self.login.as_str() {
            let maker = self.created_by.clone();
            insert(&mut index.maker_tenants, maker, self.login.clone());
        }
    }
    fn remove_from(&self, index: &mut Index) {
        if self.created_by != self.login.as_str() {
            remove(&mut index.maker_tenants, &self.created_by, &self.login);
        }
    }
}

impl Indexed for Invite {
    fn add_to(&self, index: &mut Index) {
        let inviter = self.invited_by.clone();
        insert(&mut index.inviter_invites, inviter, self.id.clone());
    }
    fn remove_from(&self, index: &mut Index) {
        remove(&mut index.inviter_invites, &self.invited_by, &self.id);
    }
}

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
