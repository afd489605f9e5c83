//! Indexes of tenants, projects and invites.

use crate::tables::index::{Index, Indexed, insert, remove};
use crate::tenancy::entity::{Invite, Project, Tenant};

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

impl Indexed for Project {
    fn add_to(&self, index: &mut Index) {
        insert(&mut index.tenant_projects, self.tenant.clone(), self.id);
        for member in self.members.keys() {
            insert(&mut index.member_projects, member.clone(), self.id);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        remove(&mut index.tenant_projects, &self.tenant, &self.id);
        for member in self.members.keys() {
            remove(&mut index.member_projects, member, &self.id);
        }
    }
}
