//! The kinds of callers and the roles of agents, with their names on the wire.

use std::fmt;

use strum::{EnumString, IntoStaticStr};

use crate::IdentityError;

/// The agents that serve a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EnumString, IntoStaticStr)]
#[strum(
    serialize_all = "lowercase",
    parse_err_ty = IdentityError,
    parse_err_fn = unknown_role
)]
pub enum AgentRole {
    /// One per switch.
    Core,
    /// Power and consoles of a partition.
    Bmc,
    /// The boot server of a partition.
    Pixie,
}

/// The kinds of callers, as the proto option `callers` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CallerKind {
    /// No certificate.
    Anonymous,
    /// The core agent of a switch.
    Core,
    /// The BMC agent of a partition.
    Bmc,
    /// The boot server of a partition.
    Pixie,
    /// hammer.
    Machine,
    /// An installed machine.
    ProjectMachine,
    /// A control node; calls nothing on the mesh.
    Node,
    /// A member of the control cluster; has no business on the mesh.
    Peer,
}

impl CallerKind {
    /// Short name for people and monitoring.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl AgentRole {
    /// The path segment.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn unknown_role(_: &str) -> IdentityError {
    IdentityError::Spiffe("unknown agent role")
}

impl fmt::Display for AgentRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_roles_and_callers_do_not_change() {
        for (role, name) in [
            (AgentRole::Core, "core"),
            (AgentRole::Bmc, "bmc"),
            (AgentRole::Pixie, "pixie"),
        ] {
            assert_eq!(role.as_str(), name);
            assert_eq!(name.parse(), Ok(role));
        }
        assert!("Core".parse::<AgentRole>().is_err());
        for (kind, name) in [
            (CallerKind::Anonymous, "anonymous"),
            (CallerKind::Core, "core"),
            (CallerKind::Bmc, "bmc"),
            (CallerKind::Pixie, "pixie"),
            (CallerKind::Machine, "machine"),
            (CallerKind::ProjectMachine, "project_machine"),
            (CallerKind::Node, "node"),
            (CallerKind::Peer, "peer"),
        ] {
            assert_eq!(kind.as_str(), name);
        }
    }
}
