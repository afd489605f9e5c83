//! Rules of networks: the fields of each type, and the prefixes that may exist side by side.

use ipnet::IpNet;
use proto_errors::{Error, ErrorCode};
use proto_types::NetworkId;

use crate::network::command::CreateNetwork;
use crate::network::entity::{ChildLength, Family, Network, NetworkType};
use crate::network::ipam;
use crate::reply::CheckResult;
use crate::tables::Tables;

use Rule::{May, Must, Never};

/// The rule of one field: it must, may or must not be given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Must,
    May,
    Never,
}

/// Rules of one type, field by field.
pub(crate) struct Fields {
    pub(crate) partition: Rule,
    pub(crate) project: Rule,
    pub(crate) prefixes: Rule,
    pub(crate) destination_prefixes: Rule,
    pub(crate) child_length: Rule,
    pub(crate) nat: Rule,
    pub(crate) vrf: Rule,
    pub(crate) parent: Rule,
    pub(crate) announcable: Rule,
    pub(crate) length: Rule,
}

pub(crate) const fn fields(kind: NetworkType) -> Fields {
    const NONE: Fields = Fields {
        partition: Never,
        project: Never,
        prefixes: Must,
        destination_prefixes: Never,
        child_length: Never,
        nat: Never,
        vrf: Never,
        parent: Never,
        announcable: Never,
        length: Never,
    };
    match kind {
        NetworkType::External => Fields {
            partition: May,
            project: May,
            destination_prefixes: May,
            nat: May,
            vrf: Must,
            ..NONE
        },
        NetworkType::Underlay => Fields {
            partition: Must,
            ..NONE
        },
        NetworkType::Super => Fields {
            partition: May,
            project: May,
            destination_prefixes: May,
            child_length: Must,
            nat: May,
            vrf: May,
            announcable: May,
            ..NONE
        },
        NetworkType::SuperNamespaced => Fields {
            project: May,
            destination_prefixes: May,
            child_length: Must,
            nat: May,
            vrf: May,
            announcable: May,
            ..NONE
        },
        NetworkType::Child | NetworkType::ChildShared => Fields {
            partition: May,
            project: Must,
            prefixes: Never,
            parent: May,
            length: May,
            ..NONE
        },
    }
}

pub(crate) fn check_fields(op: &CreateNetwork) -> CheckResult {
    let rules = fields(op.kind);
    let length_given = |length: &ChildLength| length.v4.is_some() || length.v6.is_some();
    for (field, rule, given) in [
        ("partition", rules.partition, op.partition.is_some()),
        ("project", rules.project, op.project.is_some()),
        ("prefixes", rules.prefixes, !op.prefixes.is_empty()),
        (
            "destination_prefixes",
            rules.destination_prefixes,
            !op.destination_prefixes.is_empty(),
        ),
        (
            "default_child_prefix_length",
            rules.child_length,
            length_given(&op.default_child_length),
        ),
        (
            "min_child_prefix_length",
            if rules.child_length == Never {
                Never
            } else {
                May
            },
            length_given(&op.min_child_length),
        ),
        (
            "nat_type",
            rules.nat,
            op.nat
                .is_some_and(|nat| nat != crate::network::entity::NatType::None),
        ),
        ("vrf", rules.vrf, op.vrf.is_some()),
        ("parent_network", rules.parent, op.parent.is_some()),
        (
            "additional_announcable_cidrs",
            rules.announcable,
            !op.additional_announcable_cidrs.is_empty(),
        ),
        ("length", rules.length, length_given(&op.length)),
        ("address_family", rules.length, op.family.is_some()),
    ] {
        check_field(op.kind, field, rule, given)?;
    }
    check_values(op)
}

/// Checks the given values against each other.
fn check_values(op: &CreateNetwork) -> CheckResult {
    if op.kind == NetworkType::Underlay
        && op
            .prefixes
            .iter()
            .any(|net| Family::of_net(net) == Family::V6)
    {
        return Err(Error::invalid(
            "prefixes",
            "of an underlay network must be IPv4",
        ));
    }
    if op.kind == NetworkType::SuperNamespaced && op.vrf.is_some() && op.project.is_none() {
        // Its children may have the same addresses as those of other projects, and would clash in
        // the common VRF.
        return Err(Error::invalid(
            "vrf",
            "of a namespaced super network needs a project that it is for",
        ));
    }
    if op.kind.is_super() {
        check_lengths(&op.prefixes, &op.default_child_length, &op.min_child_length)?;
    }
    check_canonical("destination_prefixes", &op.destination_prefixes)?;
    if op.kind == NetworkType::External {
        check_destinations(&op.destination_prefixes, &op.prefixes)?;
    }
    check_canonical(
        "additional_announcable_cidrs",
        &op.additional_announcable_cidrs,
    )
}

pub(crate) fn check_field(kind: NetworkType, field: &str, rule: Rule, given: bool) -> CheckResult {
    let kind = kind.as_str();
    match (rule, given) {
        (Must, false) => Err(Error::new(
            ErrorCode::NetworkFieldMissing,
            format!("{field} is missing for a network of type {kind}"),
        )),
        (Never, true) => Err(Error::new(
            ErrorCode::NetworkFieldNotAllowed,
            format!("{field} does not belong to a network of type {kind}"),
        )),
        _ => Ok(()),
    }
}

/// Refuses a destination of an IP version of which the network has no prefix: nothing could be
/// routed to it.
pub(crate) fn check_destinations(destinations: &[IpNet], prefixes: &[IpNet]) -> CheckResult {
    let has = |family| prefixes.iter().any(|net| Family::of_net(net) == family);
    let stray = destinations.iter().find(|net| !has(Family::of_net(net)));
    stray.map_or(Ok(()), |net| {
        let family = Family::of_net(net);
        let rule = format!("has {net}, and the network has no prefix of {family:?}");
        Err(Error::invalid("destination_prefixes", rule))
    })
}

/// Checks the lengths of child prefixes: a super network has a default for each of its IP versions,
/// and the prefix of a child is longer than each prefix of the parent.
pub(crate) fn check_lengths(
    prefixes: &[IpNet],
    default: &ChildLength,
    min: &ChildLength,
) -> CheckResult {
    for net in prefixes {
        let family = Family::of_net(net);
        let length = default.get(family).ok_or_else(|| {
            Error::new(
                ErrorCode::NetworkFieldMissing,
                format!("default_child_prefix_length is missing for {family:?}"),
            )
        })?;
        let longer = net.prefix_len() + 1;
        let shortest = min.get(family).unwrap_or(longer);
        for (field, length, shortest) in [
            ("min_child_prefix_length", shortest, longer),
            ("default_child_prefix_length", length, shortest.max(longer)),
        ] {
            if !(shortest..=net.max_prefix_len()).contains(&length) {
                let rule = format!("{length} must be in {shortest}..={}", net.max_prefix_len());
                return Err(Error::invalid(field, rule));
            }
        }
    }
    for (field, lengths) in [
        ("default_child_prefix_length", default),
        ("min_child_prefix_length", min),
    ] {
        let has = |family| prefixes.iter().any(|net| Family::of_net(net) == family);
        let given = |family: &Family| lengths.get(*family).is_some();
        let mut families = [Family::V4, Family::V6].into_iter().filter(given);
        if let Some(family) = families.find(|family| !has(*family)) {
            let rule = format!("is given for {family:?}, of which there is no prefix");
            return Err(Error::invalid(field, rule));
        }
    }
    Ok(())
}

pub(crate) fn check_canonical(field: &str, nets: &[IpNet]) -> CheckResult {
    match nets.iter().find(|net| !ipam::is_canonical(net)) {
        None => Ok(()),
        Some(net) => {
            let rule = format!("{net} has bits beyond its length; write {}", net.trunc());
            Err(Error::invalid(field, rule))
        }
    }
}

/// Checks the prefixes of a network that is not a child: canonical, and disjoint from each other
/// and from those of every other such network in the same address space.
pub(crate) fn check_new_prefixes(
    tables: &Tables,
    id: &NetworkId,
    kind: NetworkType,
    prefixes: &[IpNet],
) -> CheckResult {
    check_canonical("prefixes", prefixes)?;
    for (at, net) in prefixes.iter().enumerate() {
        if let Some(other) = prefixes
            .iter()
            .skip(at + 1)
            .find(|other| ipam::overlap(net, other))
        {
            let message = format!("prefix {net} overlaps {other} of the same network");
            return Err(Error::new(ErrorCode::PrefixOverlap, message));
        }
    }
    if kind == NetworkType::SuperNamespaced {
        return Ok(());
    }
    let others = tables.all::<Network>().filter(|other| {
        other.id != *id && !other.kind.is_child() && other.kind != NetworkType::SuperNamespaced
    });
    for other in others {
        let clash = prefixes
            .iter()
            .find_map(|net| Some((net, other.prefixes.iter().find(|o| ipam::overlap(net, o))?)));
        if let Some((net, theirs)) = clash {
            return Err(Error::new(
                ErrorCode::PrefixOverlap,
                format!("prefix {net} overlaps {theirs} of network \"{}\"", other.id),
            )
            .object("network", &other.id));
        }
    }
    Ok(())
}
