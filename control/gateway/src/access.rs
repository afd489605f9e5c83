//! The one place where an identity is held against an object.
//!
//! The link has checked the kind of caller; here it becomes the object that the caller may speak
//! for. Requests name no switch, partition or machine of their own where the identity does.

use control_state::{AgentKey, Certificate, ErrorCode, Machine, RolloutKind, StateError, Tables};
use proto_identity::{AgentRole, SpiffeId, Subject};
use proto_link::{LinkStatus, Peer};
use proto_types::{MachineId, PartitionId, ProjectId, SwitchId};

use crate::status;

/// The caller's name in the records of a command: its SPIFFE id, or `anonymous`.
pub(crate) fn actor(peer: &Peer) -> String {
    peer.id()
        .map_or_else(|| "anonymous".to_owned(), ToString::to_string)
}

fn refused() -> LinkStatus {
    let code = ErrorCode::PermissionDenied;
    status::refused(&StateError::new(code, code.title()))
}

fn subject(peer: &Peer) -> Result<&Subject, LinkStatus> {
    peer.id().map(SpiffeId::subject).ok_or_else(refused)
}

fn agent(peer: &Peer, wanted: AgentRole) -> Result<(PartitionId, &str), LinkStatus> {
    match subject(peer)? {
        Subject::Agent {
            partition,
            role,
            id,
        } if *role == wanted => Ok((partition.parse().map_err(status::parse)?, id)),
        _ => Err(refused()),
    }
}

/// A core agent speaks for the switch that it is named after, in its partition.
pub(crate) fn switch(peer: &Peer) -> Result<(PartitionId, SwitchId), LinkStatus> {
    let (partition, id) = agent(peer, AgentRole::Core)?;
    Ok((partition, id.parse().map_err(status::parse)?))
}

/// A BMC agent speaks for its partition.
pub(crate) fn bmc(peer: &Peer) -> Result<PartitionId, LinkStatus> {
    Ok(agent(peer, AgentRole::Bmc)?.0)
}

/// A boot server speaks for its partition.
pub(crate) fn pixie(peer: &Peer) -> Result<PartitionId, LinkStatus> {
    Ok(agent(peer, AgentRole::Pixie)?.0)
}

/// The agent of a switch, of BMCs or of a boot server speaks for its own program.
pub(crate) fn agent_of_rollouts(peer: &Peer) -> Result<(RolloutKind, AgentKey), LinkStatus> {
    let Subject::Agent {
        partition,
        role,
        id,
    } = subject(peer)?
    else {
        return Err(refused());
    };
    let kind = match role {
        AgentRole::Core => RolloutKind::Core,
        AgentRole::Bmc => RolloutKind::Bmc,
        AgentRole::Pixie => RolloutKind::Pixie,
    };
    let partition: PartitionId = partition.parse().map_err(status::parse)?;
    Ok((kind, AgentKey::named(&partition, id)))
}

/// hammer speaks for the machine that it runs on.
pub(crate) fn machine(peer: &Peer) -> Result<MachineId, LinkStatus> {
    match subject(peer)? {
        Subject::Machine { uuid } => Ok(MachineId::new(*uuid)),
        _ => Err(refused()),
    }
}

/// An installed machine speaks for itself, in the name of a project.
pub(crate) fn project_machine(peer: &Peer) -> Result<(ProjectId, MachineId), LinkStatus> {
    match subject(peer)? {
        Subject::ProjectMachine { project, uuid } => Ok((
            project.parse().map_err(status::parse)?,
            MachineId::new(*uuid),
        )),
        _ => Err(refused()),
    }
}

/// An installed machine speaks only for the allocation that its certificate was made for: the same
/// project may have the machine again, and that is another system.
pub(crate) fn owns(
    tables: &Tables,
    peer: &Peer,
    project: ProjectId,
    machine: MachineId,
) -> Result<(), LinkStatus> {
    let allocation = tables
        .get::<Machine>(&machine)
        .and_then(|m| m.allocation.as_ref());
    let certificate = peer
        .identity()
        .and_then(|identity| tables.get::<Certificate>(&identity.serial));
    let made_for = certificate.and_then(|certificate| certificate.allocation);
    match allocation {
        Some(allocation) if allocation.project == project && made_for == Some(allocation.id) => {
            Ok(())
        }
        _ => {
            let code = ErrorCode::MachineForeign;
            let message = format!("project \"{project}\" does not have machine \"{machine}\"");
            Err(status::refused(&StateError::new(code, message)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";

    fn peer(id: &str) -> Peer {
        let identity = proto_link::PeerIdentity {
            id: id.parse().unwrap(),
            serial: "01".into(),
            fingerprint: String::new(),
            not_before_ms: 0,
            not_after_ms: 0,
        };
        Peer::new(Some(identity), "127.0.0.1:1".parse().unwrap())
    }

    /// Which of the five an identity may speak for.
    fn may(peer: &Peer) -> [bool; 5] {
        [
            switch(peer).is_ok(),
            bmc(peer).is_ok(),
            pixie(peer).is_ok(),
            machine(peer).is_ok(),
            project_machine(peer).is_ok(),
        ]
    }

    #[test]
    fn each_identity_speaks_for_one_kind_of_object() {
        let machine_id = format!("spiffe://m/machine/{UUID}");
        let installed = format!("spiffe://m/project/{UUID}/machine/{UUID}");
        for (id, place) in [
            ("spiffe://m/partition/p1/core/leaf1", 0),
            ("spiffe://m/partition/p1/bmc/b1", 1),
            ("spiffe://m/partition/p1/pixie/x1", 2),
            (&machine_id, 3),
            (&installed, 4),
            ("spiffe://m/node/1", 9),
        ] {
            let allowed = may(&peer(id));
            for (at, allowed) in allowed.into_iter().enumerate() {
                assert_eq!(allowed, at == place, "{id} at {at}");
            }
        }
        assert_eq!(
            may(&Peer::new(None, "127.0.0.1:1".parse().unwrap())),
            [false; 5]
        );
    }

    #[test]
    fn the_object_comes_from_the_identity() {
        let core = peer("spiffe://m/partition/p1/core/leaf1");
        let (partition, id) = switch(&core).unwrap();
        assert_eq!((partition.as_str(), id.as_str()), ("p1", "leaf1"));
        assert_eq!(actor(&core), "spiffe://m/partition/p1/core/leaf1");
    }

    #[test]
    fn agents_speak_for_their_own_programs() {
        for (id, expected) in [
            ("spiffe://m/partition/p1/core/leaf1", Some("core p1/leaf1")),
            ("spiffe://m/partition/p1/bmc/b1", Some("bmc p1/b1")),
            ("spiffe://m/partition/p1/pixie/x1", Some("pixie p1/x1")),
            ("spiffe://m/node/1", None),
        ] {
            let found = agent_of_rollouts(&peer(id)).ok();
            let found = found.map(|(kind, agent)| format!("{} {agent}", kind.as_str()));
            assert_eq!(found.as_deref(), expected, "{id}");
        }
    }

    #[test]
    fn a_machine_that_nobody_has_is_nobodys() {
        let id: uuid::Uuid = UUID.parse().unwrap();
        let installed = peer(&format!("spiffe://m/project/{UUID}/machine/{UUID}"));
        let owned = owns(
            &Tables::new(),
            &installed,
            ProjectId::new(id),
            MachineId::new(id),
        );
        let e = owned.unwrap_err();
        assert_eq!(e.catalogue(), Some(1208));
    }
}
