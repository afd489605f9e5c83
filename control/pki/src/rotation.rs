//! Begins the rotation to the next generation of the authority.

use std::time::Duration;

use control_state::{BeginCaRotation, CaRecord};
use proto_identity::profile::Purpose;

use crate::generations::{Authorities, CaRole, Generation, record, unseal};
use crate::validity::after;
use crate::{Pki, PkiError};

impl Pki {
    /// Creates the next generation of the authority and the command that begins the rotation to it.
    /// Both generations are trusted until `overlap` has passed. A forced rotation asks every agent
    /// to renew now, and ends once all have, at the latest after `overlap`.
    ///
    /// # Errors
    /// When the state cannot be read, or the current authority cannot be unsealed.
    pub fn next_generation(
        &self,
        overlap: Duration,
        is_forced: bool,
    ) -> Result<BeginCaRotation, PkiError> {
        let now = self.now();
        let seal = &self.inner.seal;
        let (from, root) = self.inner.store.read_local(|tables| {
            let from = Authorities::newest(tables);
            let root = tables.require::<CaRecord>(&CaRole::Root.id(from)).cloned();
            (from, root)
        })?;
        let old_root = unseal(seal, &*root?)?;
        let made = Generation::make(self.trust_domain(), now.ms())?;
        // Agents that know only the old root must be able to connect to nodes of the new
        // generation.
        let crossed = old_root.cross(&made.nodes, Purpose::Nodes, now.ms())?;
        let mut authorities = Vec::new();
        for (role, authority) in made.in_order() {
            let mut record = record(seal, role, from.saturating_add(1), authority, now)?;
            if role == CaRole::Nodes {
                record.crossed = crossed.to_vec();
            }
            authorities.push(record);
        }
        Ok(BeginCaRotation {
            authorities,
            until: after(now, overlap),
            is_forced,
        })
    }
}
