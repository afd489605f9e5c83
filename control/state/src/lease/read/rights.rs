//! The table of what a project may do with a machine by its relation to it.
//!
//! The roles that a caller needs in the project are in the contract's options; this table is the other
//! half. A project without a relation is told that there is no such machine, one with another relation
//! why it may not.

use proto_errors::{Error, ErrorCode};
use proto_types::{MachineId, ProjectId};

use crate::machine::entity::{Machine, TenureRelation};
use crate::tables::Tables;

/// An action of a project on a machine that it owns or leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TenureAction {
    /// Give the machine to a lessee.
    Grant,
    /// Make the lease longer.
    Extend,
    /// Change the limit up to which the lessee may extend the lease.
    SetLimit,
    /// End the lease before its date.
    End,
    /// Give the machine to another owner.
    TransferMachine,
    /// Ask for another lessee.
    RequestTransfer,
    /// Consent to another lessee.
    DecideTransfer,
    /// Set resource class and traits.
    SetCapability,
}

impl TenureAction {
    /// The relations that may take the action.
    const fn permitted(self) -> &'static [TenureRelation] {
        use TenureRelation::{Lessee, Owner};
        match self {
            Self::Grant
            | Self::SetLimit
            | Self::TransferMachine
            | Self::DecideTransfer
            | Self::SetCapability => &[Owner],
            Self::RequestTransfer => &[Lessee],
            Self::Extend | Self::End => &[Owner, Lessee],
        }
    }

    /// The action in messages, after "may".
    const fn phrase(self) -> &'static str {
        match self {
            Self::Grant => "lease it to a project",
            Self::Extend => "extend its lease",
            Self::SetLimit => "change how far its lessee may extend the lease",
            Self::End => "end its lease",
            Self::TransferMachine => "give it to another owner",
            Self::RequestTransfer => "ask for another lessee",
            Self::DecideTransfer => "consent to another lessee",
            Self::SetCapability => "set its resource class and traits",
        }
    }
}

/// The relation of a project to a machine.
///
/// # Errors
/// `NotFound` without a relation, as for a machine that does not exist.
pub(crate) fn relation(
    tables: &Tables,
    machine: MachineId,
    project: ProjectId,
) -> Result<TenureRelation, Error> {
    let found = tables.get::<Machine>(&machine);
    let relation = found.and_then(|found| found.tenure.relation(project));
    relation.ok_or_else(|| Error::not_found("machine", machine))
}

/// The relation of a project to a machine, if it permits the action.
///
/// # Errors
/// `NotFound` without a relation, `TenureRefused` with another one.
pub(crate) fn check_action(
    tables: &Tables,
    machine: MachineId,
    project: ProjectId,
    action: TenureAction,
) -> Result<TenureRelation, Error> {
    let relation = relation(tables, machine, project)?;
    if action.permitted().contains(&relation) {
        return Ok(relation);
    }
    let permitted = action
        .permitted()
        .iter()
        .map(|permitted| permitted.as_str());
    let permitted: Vec<&str> = permitted.collect();
    let message = format!(
        "project \"{project}\" is the {} of machine \"{machine}\": only its {} may {}",
        relation.as_str(),
        permitted.join(" or "),
        action.phrase()
    );
    Err(Error::new(ErrorCode::TenureRefused, message).object("machine", machine))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proto_types::Timestamp;
    use uuid::Uuid;

    use super::*;
    use crate::machine::entity::Tenure;

    const ACTIONS: [(TenureAction, bool, bool); 8] = [
        (TenureAction::Grant, true, false),
        (TenureAction::Extend, true, true),
        (TenureAction::SetLimit, true, false),
        (TenureAction::End, true, true),
        (TenureAction::TransferMachine, true, false),
        (TenureAction::RequestTransfer, false, true),
        (TenureAction::DecideTransfer, true, false),
        (TenureAction::SetCapability, true, false),
    ];

    fn with_machine(tenure: Tenure) -> (Tables, MachineId) {
        let id = MachineId::new(Uuid::from_u128(9));
        let machine = Machine {
            tenure,
            ..Machine::seen(id, None, Timestamp::ZERO)
        };
        let mut tables = Tables::new();
        tables.put_raw(Arc::new(machine), 1);
        (tables, id)
    }

    #[test]
    fn every_action_by_every_relation() {
        let project = |number| ProjectId::new(Uuid::from_u128(number));
        let (tables, machine) = with_machine(Tenure {
            owner: Some(project(1)),
            lessee: Some(project(2)),
            ..Tenure::default()
        });
        for (action, owner, lessee) in ACTIONS {
            for (by, permitted) in [(1, owner), (2, lessee)] {
                let decided = check_action(&tables, machine, project(by), action);
                match decided {
                    Ok(_) => assert!(permitted, "{action:?} by {by}"),
                    Err(error) => {
                        assert!(!permitted, "{action:?} by {by}");
                        assert_eq!(error.code, ErrorCode::TenureRefused);
                        // The refused project is told its relation, and never who the other one is.
                        assert!(error.message.contains(action.phrase()), "{error}");
                        let other = project(3 - by).to_string();
                        assert!(!error.message.contains(&other), "{error}");
                    }
                }
            }
            let stranger = check_action(&tables, machine, project(3), action).unwrap_err();
            let absent = MachineId::new(Uuid::from_u128(8));
            let nothing = check_action(&tables, absent, project(3), action).unwrap_err();
            assert_eq!(stranger.code, ErrorCode::NotFound);
            let same = |error: &Error, id: MachineId| error.message.replace(&id.to_string(), "");
            assert_eq!(same(&stranger, machine), same(&nothing, absent));
        }
    }

    #[test]
    fn nobody_has_a_relation_to_a_machine_of_the_site() {
        let (tables, machine) = with_machine(Tenure::default());
        for (action, ..) in ACTIONS {
            let nil = ProjectId::new(Uuid::nil());
            let refused = check_action(&tables, machine, nil, action).unwrap_err();
            assert_eq!(refused.code, ErrorCode::NotFound);
        }
    }
}
