//! Owners and leases of machines.

use control_gate::refusal::invalid;
use control_state::{
    Availability, ClassChange, ExtendLease, ExtensionLimit, GrantLease, Lease, Machine, Tables,
    TraitsChange,
};
use proto_public::metalmesh::admin::v1 as wire;
use proto_types::{LeaseId, ProjectId, Timestamp};
use tonic::Status;

use super::{duration, from_time, parse, parse_all, parse_opt, required, time};

/// A lease for the wire.
pub fn lease(lease: &Lease) -> wire::Lease {
    wire::Lease {
        id: lease.id.to_string(),
        machine: lease.machine.to_string(),
        owner: lease.owner.to_string(),
        lessee: lease.lessee.to_string(),
        granted_at: time(lease.granted_at),
        updated_at: time(lease.updated_at),
        expires_at: time(lease.expires_at),
        extendable_until: lease.extendable_until.and_then(time),
        warning: Some(duration(lease.warning_ms)),
        warned_at: lease.warned_at.and_then(time),
        transfer_to: text(lease.transfer_to.as_ref()),
        comment: lease.comment.clone(),
    }
}

/// A machine as a project that owns or leases it sees it. `None` means an administrator.
///
/// A project is not told which other one used the machine before: the use that is being wiped off may
/// be of a time in which the machine was not its own.
pub fn tenured_machine(
    tables: &Tables,
    machine: &Machine,
    viewer: Option<ProjectId>,
) -> wire::TenuredMachine {
    let relation = viewer.and_then(|viewer| machine.tenure.relation(viewer));
    let user = machine.allocation.as_ref().map(|used| used.project);
    let user = user.filter(|_| viewer.is_none() || !machine.is_leaving());
    let class = machine.capability.resource_class.as_ref();
    let traits = machine.capability.traits.iter();
    wire::TenuredMachine {
        machine: machine.id.to_string(),
        partition: text(machine.partition.as_ref()),
        size: text(machine.size.as_ref()),
        owner: text(machine.tenure.owner.as_ref()),
        relation: relation.map_or("", |relation| relation.as_str()).to_owned(),
        lease: tables.get::<Lease>(&machine.id).map(|found| lease(found)),
        resource_class: text(class),
        traits: traits.map(ToString::to_string).collect(),
        phase: machine.phase.to_string(),
        state: state(machine.condition.state).to_owned(),
        used_by: text(user.as_ref()),
        node_allocation: text(machine.tenure.reserved_by.as_ref()),
    }
}

fn text(value: Option<&impl ToString>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

const fn state(state: Availability) -> &'static str {
    match state {
        Availability::Available => "available",
        Availability::Tainted => "tainted",
        Availability::Locked => "locked",
    }
}

/// The command that grants a lease.
///
/// # Errors
/// `invalid_argument`.
pub fn from_grant(
    id: LeaseId,
    request: wire::LeaseServiceGrantRequest,
) -> Result<GrantLease, Status> {
    Ok(GrantLease {
        id,
        machine: parse("machine", &request.machine)?,
        project: parse("project", &request.project)?,
        lessee: parse("lessee", &request.lessee)?,
        expires_at: required("expires_at", request.expires_at.as_ref().map(from_time))?,
        extendable_until: request.extendable_until.as_ref().map(from_time),
        warning_ms: request.warning.map(from_warning).transpose()?,
        comment: request.comment,
    })
}

fn from_warning(warning: prost_types::Duration) -> Result<u64, Status> {
    let seconds = u64::try_from(warning.seconds);
    let ms = u64::try_from(warning.nanos / 1_000_000);
    match (seconds, ms) {
        (Ok(seconds), Ok(ms)) => Ok(seconds.saturating_mul(1000).saturating_add(ms)),
        _ => Err(invalid("warning", "must not be negative")),
    }
}

/// The command that extends a lease.
///
/// # Errors
/// `invalid_argument`.
pub fn from_extension(request: &wire::LeaseServiceExtendRequest) -> Result<ExtendLease, Status> {
    let until = request.extendable_until.as_ref().map(from_time);
    let limit = match (until, request.not_extendable) {
        (None, false) => ExtensionLimit::Keep,
        (None, true) => ExtensionLimit::Clear,
        (Some(until), false) => ExtensionLimit::Until(until),
        (Some(_), true) => {
            let rule = "excludes a limit up to which the lessee may extend the lease";
            return Err(invalid("not_extendable", rule));
        }
    };
    Ok(ExtendLease {
        machine: parse("machine", &request.machine)?,
        project: parse("project", &request.project)?,
        lease: parse_opt("lease", request.lease.as_ref())?,
        expires_at: request.expires_at.as_ref().map(from_time),
        limit,
    })
}

/// A change of resource class and traits.
///
/// # Errors
/// `invalid_argument`.
pub fn from_capability(
    change: Option<wire::CapabilityChange>,
) -> Result<(ClassChange, Option<TraitsChange>), Status> {
    let change = required("change", change)?;
    let class = match change.resource_class.as_deref() {
        None => ClassChange::Keep,
        Some("") => ClassChange::Clear,
        Some(class) => ClassChange::Set(parse("change.resource_class", class)?),
    };
    let add = parse_all("change.add_traits", &change.add_traits)?;
    let remove = parse_all("change.remove_traits", &change.remove_traits)?;
    let is_kept = change.add_traits.is_empty() && change.remove_traits.is_empty();
    let traits = match (change.clear_traits, is_kept) {
        (true, _) => Some(TraitsChange::Replace(add)),
        (false, true) => None,
        (false, false) => Some(TraitsChange::Patch { add, remove }),
    };
    Ok((class, traits))
}

/// The label of a time: RFC 3339.
pub(super) fn label_time(at: Timestamp) -> String {
    time(at).map(|at| at.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_capabilities() {
        let change = |class: Option<&str>, clear, add: &[&str], remove: &[&str]| {
            let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            from_capability(Some(wire::CapabilityChange {
                resource_class: class.map(str::to_owned),
                clear_traits: clear,
                add_traits: names(add),
                remove_traits: names(remove),
            }))
        };
        let keep = (ClassChange::Keep, None);
        assert_eq!(change(None, false, &[], &[]).unwrap(), keep);
        let cleared = change(Some(""), true, &[], &[]).unwrap();
        let none = TraitsChange::Replace([].into());
        assert_eq!(cleared, (ClassChange::Clear, Some(none)));
        let (class, traits) = change(Some("gold"), false, &["CUSTOM_A"], &["HW_B"]).unwrap();
        assert_eq!(class, ClassChange::Set("gold".parse().unwrap()));
        let patch = TraitsChange::Patch {
            add: ["CUSTOM_A".parse().unwrap()].into(),
            remove: ["HW_B".parse().unwrap()].into(),
        };
        assert_eq!(traits, Some(patch));
        assert!(from_capability(None).is_err());
        assert!(change(Some("a b"), false, &[], &[]).is_err());
        assert!(change(None, false, &["GOLD"], &[]).is_err());
    }

    #[test]
    fn limits_and_warnings() {
        let stamp = time(Timestamp::from_ms(5_000));
        let id = uuid::Uuid::nil().to_string();
        for (until, never, wanted) in [
            (None, false, Some(ExtensionLimit::Keep)),
            (None, true, Some(ExtensionLimit::Clear)),
            (
                stamp,
                false,
                Some(ExtensionLimit::Until(Timestamp::from_ms(5_000))),
            ),
            (stamp, true, None),
        ] {
            let request = wire::LeaseServiceExtendRequest {
                project: id.clone(),
                machine: id.clone(),
                extendable_until: until,
                not_extendable: never,
                ..Default::default()
            };
            let limit = from_extension(&request).ok().map(|op| op.limit);
            assert_eq!(limit, wanted, "{until:?} {never}");
        }
        let warning = |seconds, nanos| from_warning(prost_types::Duration { seconds, nanos }).ok();
        assert_eq!(warning(2, 5_000_000), Some(2005));
        assert_eq!(warning(-1, 0), None);
        assert_eq!(warning(0, -2_000_000), None);
    }
}
