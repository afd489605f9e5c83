//! The operations that a permit covers: the changes that a method of the public API, or an actor of
//! the system, may make.
//!
//! Invariant: a command whose permit does not cover its operation is refused before it is proposed.
//! So a mistake in a handler cannot change more than its method allows, whoever calls it. A method
//! that is not listed changes nothing.

use control_authz::{Actor, Permit, SystemActor};
use control_state::{ErrorCode, Op, StateError};

use crate::facade_operations::FACADE_METHODS;
use crate::method_operations::METHODS;

/// The operation that changes the members of the cluster; it is no command of the state.
pub(crate) const CHANGE_MEMBERS: &str = "ChangeMembers";

/// The operations of an actor of the system.
const fn of_system(actor: SystemActor) -> &'static [&'static str] {
    match actor {
        SystemActor::Audit => &["AppendAudit", "MarkAuditExport"],
        SystemActor::Bootstrap => &[
            "AnnounceNode",
            "ChangeMembers",
            "CreateTenant",
            "CreateToken",
            "PutCa",
            "PutSigningKey",
        ],
        SystemActor::Gate => &["TouchToken"],
        SystemActor::Gateway => &[
            "BmcOrderDone",
            "ChangeMembers",
            "InstallDone",
            "MachineEvent",
            "MachineSeen",
            "PhoneHome",
            "RegisterMachine",
            "RegisterSwitch",
            "ReportAgent",
            "ReportBmc",
            "ReportFirewall",
            "ReportSwitch",
            "TakeBmcOrder",
            "WipeDone",
        ],
        SystemActor::Login => &["LogIn"],
        SystemActor::Pki => &[
            "IssueBootTicket",
            "IssueCertificate",
            "JoinNode",
            "RedeemBootTicket",
            "RedeemJoinTicket",
            "RevokeCertificates",
        ],
        SystemActor::Reconcile => &["ForgetVpn", "ReportVpn", "StepRollout", "Tick"],
    }
}

/// The operations of a method. `path` begins with a slash, as gRPC has it.
fn of_method(path: &str) -> &'static [&'static str] {
    let name = path.trim_start_matches('/');
    // The tables are sorted, which a test checks. A method that is missing in both covers nothing.
    [METHODS, FACADE_METHODS]
        .into_iter()
        .find_map(|table| {
            let found = table.binary_search_by_key(&name, |(method, _)| method);
            found.ok().map(|at| table[at].1)
        })
        .unwrap_or_default()
}

/// The operations of a permit. A permit of neither an actor nor a method covers nothing.
fn of_permit(permit: &Permit) -> &'static [&'static str] {
    match (permit.actor(), permit.path()) {
        (Actor::System(actor), _) => of_system(*actor),
        (_, Some(path)) => of_method(path),
        (_, None) => &[],
    }
}

/// Checks that a permit covers the operation of a command.
///
/// # Errors
/// [`ErrorCode::Internal`] if it does not: the code that proposes the command has the wrong permit.
pub fn check_covers(permit: &Permit, operation: &Op) -> Result<(), StateError> {
    check(permit, operation.name())
}

/// Checks that a permit covers changes of the members of the cluster.
///
/// # Errors
/// As [`check_covers`].
pub(crate) fn check_covers_members(permit: &Permit) -> Result<(), StateError> {
    check(permit, CHANGE_MEMBERS)
}

fn check(permit: &Permit, operation: &str) -> Result<(), StateError> {
    if of_permit(permit).contains(&operation) {
        return Ok(());
    }
    let message = match (permit.actor(), permit.path()) {
        (Actor::System(actor), _) => format!("{actor:?} does not cover {operation}"),
        (_, path) => format!("{} does not cover {operation}", path.unwrap_or_default()),
    };
    Err(StateError::new(ErrorCode::Internal, message))
}

/// The operations of a facade's method. Facades test their tables of methods with it.
#[must_use]
pub fn facade_operations(path: &str) -> &'static [&'static str] {
    of_method(path)
}

/// The methods, those of facades last, and the actors of the system that cover an operation, by its
/// name. Tests find a permit for their commands with it.
#[must_use]
pub fn coverers(operation: &str) -> (Vec<&'static str>, Vec<SystemActor>) {
    let methods = METHODS.iter().chain(FACADE_METHODS);
    let methods = methods.filter(|(_, operations)| operations.contains(&operation));
    let actors = SystemActor::ALL.iter().copied();
    (
        methods.map(|(method, _)| *method).collect(),
        actors
            .filter(|actor| of_system(*actor).contains(&operation))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn methods_and_operations_are_those_of_the_contracts_and_the_state() {
        let names = METHODS.iter().map(|(method, _)| *method);
        assert!(names.clone().is_sorted(), "found by binary search");
        for name in names {
            let path = format!("/{name}");
            assert!(proto_public::method(&path).is_some(), "{name}");
        }
        let of_facades = FACADE_METHODS.iter().map(|(method, _)| *method);
        assert!(of_facades.clone().is_sorted(), "found by binary search");
        let of_systems = SystemActor::ALL.iter().map(|actor| of_system(*actor));
        let of_methods = METHODS.iter().chain(FACADE_METHODS);
        let of_methods = of_methods.map(|(_, operations)| *operations);
        let covered: BTreeSet<&str> = of_systems.chain(of_methods).flatten().copied().collect();
        let known = Op::NAMES.iter().copied().chain([CHANGE_MEMBERS]);
        assert_eq!(
            covered,
            known.collect(),
            "each operation has somebody who may"
        );
    }

    #[test]
    fn methods_that_only_read_are_not_listed() {
        for method in proto_public::methods() {
            let (service, name) = method.path.rsplit_once('/').unwrap();
            let reads = ["Get", "List"].iter().any(|read| name.starts_with(read));
            let covers = !of_method(&method.path).is_empty();
            assert!(!(reads && covers), "{service}/{name}");
        }
    }

    #[test]
    fn a_part_of_the_system_covers_its_own_operations_only() {
        let tick = Op::from(control_state::Tick::default());
        let duties = Permit::system(SystemActor::Reconcile);
        assert!(check_covers(&duties, &tick).is_ok());
        for actor in SystemActor::ALL {
            let permit = Permit::system(*actor);
            let is_duty = *actor == SystemActor::Reconcile;
            assert_eq!(check_covers(&permit, &tick).is_ok(), is_duty, "{actor:?}");
        }
        let refused = check_covers(&Permit::system(SystemActor::Gate), &tick).unwrap_err();
        assert_eq!(refused.code, ErrorCode::Internal);
        assert!(refused.to_string().contains("Gate does not cover Tick"));
    }
}
