//! Indexes of tickets, certificates and tokens.

use proto_types::MachineId;

use crate::identity::entity::{BootTicket, Certificate, Token};
use crate::tables::index::{Index, Indexed, insert, remove};

impl Indexed for BootTicket {
    fn add_to(&self, index: &mut Index) {
        insert(&mut index.machine_boot_tickets, self.machine, self.id);
    }
    fn remove_from(&self, index: &mut Index) {
        remove(&mut index.machine_boot_tickets, &self.machine, &self.id);
    }
}

impl Indexed for Certificate {
    fn add_to(&self, index: &mut Index) {
        if let Some(machine) = self.machine {
            insert(
                &mut index.machine_certificates,
                machine,
                self.serial.clone(),
            );
        }
    }
    fn remove_from(&self, index: &mut Index) {
        if let Some(machine) = self.machine {
            remove(&mut index.machine_certificates, &machine, &self.serial);
        }
    }
}

/// The subjects of a token that have the form of a machine id.
fn machines_of(token: &Token) -> impl Iterator<Item = MachineId> {
    let roles = token.machine_roles.keys();
    let permissions = token
        .permissions
        .iter()
        .map(|permission| &permission.subject);
    roles
        .chain(permissions)
        .filter_map(|subject| subject.parse().ok())
}

impl Indexed for Token {
    fn add_to(&self, index: &mut Index) {
        for machine in machines_of(self) {
            insert(&mut index.machine_tokens, machine, self.id);
        }
        if let Some(holder) = self.holder() {
            insert(&mut index.holder_tokens, holder, self.id);
        }
    }
    fn remove_from(&self, index: &mut Index) {
        for machine in machines_of(self) {
            remove(&mut index.machine_tokens, &machine, &self.id);
        }
        if let Some(holder) = self.holder() {
            remove(&mut index.holder_tokens, &holder, &self.id);
        }
    }
}
