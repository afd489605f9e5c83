//! One agent speaks for one thing: what an agent of the mesh serves is not for the published
//! stack's.
//!
//! An infra token is good for a whole partition, and names no agent. Machines are handed over by
//! what agents report, so that the identity of an agent of ours counts more than such a token.

use control_state::{ErrorCode, Identity, StateError, Tables};
use proto_identity::{AgentRole, SpiffeId, Subject};
use proto_types::{PartitionId, SwitchId};

use crate::Upstream;

impl Upstream {
    /// Lets a published agent speak for a switch that has no core agent, or whose core agent's
    /// identity was revoked.
    ///
    /// # Errors
    /// [`ErrorCode::HasMeshAgent`].
    pub(crate) fn alone_at_switch(
        &self,
        tables: &Tables,
        id: &SwitchId,
        partition: &PartitionId,
    ) -> Result<(), StateError> {
        let identity = self.agent(tables, partition, AgentRole::Core, id.as_str());
        if identity.is_none_or(|identity| identity.revoked_at.is_some()) {
            return Ok(());
        }
        let message = format!("metalmesh-core speaks for switch \"{id}\"");
        Err(StateError::new(ErrorCode::HasMeshAgent, message).object("switch", id))
    }

    /// Lets published agents serve a partition in a role for which no agent of the mesh has a good
    /// certificate.
    ///
    /// # Errors
    /// [`ErrorCode::HasMeshAgent`].
    pub(crate) fn alone_in_partition(
        &self,
        tables: &Tables,
        partition: &PartitionId,
        role: AgentRole,
    ) -> Result<(), StateError> {
        let now = self.gate.now();
        let Some(first) = self.name(partition, role, "") else {
            return Ok(());
        };
        let identities = tables.table::<Identity>().range(first.clone()..);
        let mut of_role = identities.take_while(|(name, _)| name.starts_with(&first));
        let Some((name, _)) = of_role.find(|(_, identity)| identity.value.is_live(now)) else {
            return Ok(());
        };
        let message = format!("an agent of the mesh serves this in the partition: {name}");
        Err(StateError::new(ErrorCode::HasMeshAgent, message).object("partition", partition))
    }

    fn agent<'a>(
        &self,
        tables: &'a Tables,
        partition: &PartitionId,
        role: AgentRole,
        id: &str,
    ) -> Option<&'a Identity> {
        let name = self.name(partition, role, id)?;
        tables.get::<Identity>(&name).map(AsRef::as_ref)
    }

    /// The name of an agent's identity; without an id the beginning of all of that role.
    fn name(&self, partition: &PartitionId, role: AgentRole, id: &str) -> Option<String> {
        let subject = Subject::Agent {
            partition: partition.to_string(),
            role,
            id: if id.is_empty() { "x" } else { id }.to_owned(),
        };
        let name = SpiffeId::new(self.pki.trust_domain(), subject).ok()?;
        let name = name.to_string();
        match id {
            "" => name.strip_suffix('x').map(str::to_owned),
            _ => Some(name),
        }
    }
}
