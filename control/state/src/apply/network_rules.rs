//! Which fields belong to which type of network, and which prefixes may stand side by side.

use ipnet::IpNet;
use proto_errors::{Error, ErrorCode};
use proto_types::NetworkId;

use crate::command::{CreateNetwork, UpdateNetwork};
use crate::entities::{ChildLength, Family, Ip, Network, NetworkType};
use crate::ipam;
use crate::tables::Tables;

type Check = Result<(), Error>;

/// Whether a field must, may or must not be given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Must,
    May,
    Never,
}
use Rule::{May, Must, Never};

/// Rules of one type, field by field.
struct Fields {
    partition: Rule,
    project: Rule,
    prefixes: Rule,
    destination_prefixes: Rule,
    child_length: Rule,
    nat: Rule,
    vrf: Rule,
    parent: Rule,
    announcable: Rule,
    length: Rule,
}

const fn fields(kind: NetworkType) -> Fields {
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

pub(crate) fn check_fields(op: &CreateNetwork) -> Check {
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
                .is_some_and(|nat| nat != crate::entities::NatType::None),
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

/// Whether what is given fits together.
fn check_values(op: &CreateNetwork) -> Check {
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
        // Its children may have the same addresses, and would meet in that VRF.
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

fn check_field(kind: NetworkType, field: &str, rule: Rule, given: bool) -> Check {
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

/// Through a network without IPv6 nothing of IPv6 is reached, and the same of IPv4.
fn check_destinations(destinations: &[IpNet], prefixes: &[IpNet]) -> Check {
    let has = |family| prefixes.iter().any(|net| Family::of_net(net) == family);
    let stray = destinations.iter().find(|net| !has(Family::of_net(net)));
    stray.map_or(Ok(()), |net| {
        let family = Family::of_net(net);
        let rule = format!("has {net}, and the network has no prefix of {family:?}");
        Err(Error::invalid("destination_prefixes", rule))
    })
}

/// A super network has a default for each version that it has; a child's prefix is longer than
/// each of the prefixes that it may come out of.
fn check_lengths(prefixes: &[IpNet], default: &ChildLength, min: &ChildLength) -> Check {
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

fn check_canonical(field: &str, nets: &[IpNet]) -> Check {
    match nets.iter().find(|net| !ipam::is_canonical(net)) {
        None => Ok(()),
        Some(net) => {
            let rule = format!("{net} has bits beyond its length; write {}", net.trunc());
            Err(Error::invalid(field, rule))
        }
    }
}

/// Prefixes of a network that is not a child: canonical, apart from each other and from those
/// of every other such network in the same space.
pub(crate) fn check_new_prefixes(
    tables: &Tables,
    id: &NetworkId,
    kind: NetworkType,
    prefixes: &[IpNet],
) -> Check {
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

pub(crate) fn check_update(tables: &Tables, network: &Network, op: &UpdateNetwork) -> Check {
    check_changed_fields(network, op)?;
    let prefixes = op.prefixes.as_ref().unwrap_or(&network.prefixes);
    if network.kind.is_super() {
        check_changed_lengths(network, op)?;
    }
    if let Some(prefixes) = changed(op.prefixes.as_ref(), &network.prefixes) {
        check_prefix_change(tables, network, prefixes)?;
    }
    let destinations = op.destination_prefixes.as_ref();
    if let Some(destinations) = changed(destinations, &network.destination_prefixes) {
        check_canonical("destination_prefixes", destinations)?;
        check_destinations(destinations, prefixes)?;
    }
    let cidrs = op.additional_announcable_cidrs.as_ref();
    match changed(cidrs, &network.additional_announcable_cidrs) {
        Some(cidrs) => check_announcable(network, cidrs, op.force),
        None => Ok(()),
    }
}

/// Checks lengths against prefixes when either changes: a network that older programs made may
/// break the rule, and can still get another name.
fn check_changed_lengths(network: &Network, op: &UpdateNetwork) -> Check {
    let default = op.default_child_length.as_ref();
    let min = op.min_child_length.as_ref();
    let changes = changed(op.prefixes.as_ref(), &network.prefixes).is_some()
        || changed(default, &network.default_child_length).is_some()
        || changed(min, &network.min_child_length).is_some();
    if !changes {
        return Ok(());
    }
    check_lengths(
        op.prefixes.as_ref().unwrap_or(&network.prefixes),
        default.unwrap_or(&network.default_child_length),
        min.unwrap_or(&network.min_child_length),
    )
}

/// A value that is given and is not there yet.
fn changed<'a, T: PartialEq>(given: Option<&'a T>, current: &T) -> Option<&'a T> {
    given.filter(|given| *given != current)
}

/// A field that the network's type does not have may be given as it is: what was read can be
/// written back.
fn check_changed_fields(network: &Network, op: &UpdateNetwork) -> Check {
    let rules = fields(network.kind);
    let lengths = (op.default_child_length, op.min_child_length);
    for (field, rule, is_changed) in [
        (
            "prefixes",
            rules.prefixes,
            changed(op.prefixes.as_ref(), &network.prefixes).is_some(),
        ),
        (
            "destination_prefixes",
            rules.destination_prefixes,
            changed(
                op.destination_prefixes.as_ref(),
                &network.destination_prefixes,
            )
            .is_some(),
        ),
        (
            "default_child_prefix_length",
            rules.child_length,
            changed(lengths.0.as_ref(), &network.default_child_length).is_some(),
        ),
        (
            "min_child_prefix_length",
            rules.child_length,
            changed(lengths.1.as_ref(), &network.min_child_length).is_some(),
        ),
        (
            "nat_type",
            rules.nat,
            changed(op.nat.as_ref(), &network.nat).is_some(),
        ),
        (
            "additional_announcable_cidrs",
            rules.announcable,
            changed(
                op.additional_announcable_cidrs.as_ref(),
                &network.additional_announcable_cidrs,
            )
            .is_some(),
        ),
    ] {
        if rule == Never && is_changed {
            check_field(network.kind, field, Never, true)?;
        }
    }
    Ok(())
}

fn check_announcable(network: &Network, cidrs: &[IpNet], force: bool) -> Check {
    check_canonical("additional_announcable_cidrs", cidrs)?;
    let mut before = network.additional_announcable_cidrs.iter();
    let removed = before.find(|cidr| !cidrs.contains(cidr));
    match removed.filter(|_| !force) {
        None => Ok(()),
        Some(removed) => {
            let message = format!("{removed} may still be announced by machines");
            Err(Error::new(ErrorCode::StillInUse, message).hint("repeat it with force"))
        }
    }
}

fn check_prefix_change(tables: &Tables, network: &Network, prefixes: &[IpNet]) -> Check {
    if prefixes.is_empty() {
        return Err(Error::invalid(
            "prefixes",
            "cannot all be removed: give the full list",
        ));
    }
    check_new_prefixes(tables, &network.id, network.kind, prefixes)?;
    let kept = |net: &IpNet| prefixes.iter().any(|new| new.contains(net));
    let ips = tables
        .index()
        .network_ips
        .get(&network.id)
        .into_iter()
        .flatten();
    let children = tables
        .index()
        .children
        .get(&network.id)
        .into_iter()
        .flatten();
    let lost_ip = ips
        .filter_map(|key| tables.get::<Ip>(key))
        .find(|ip| !prefixes.iter().any(|net| net.contains(&ip.ip)));
    if let Some(ip) = lost_ip {
        let message = format!("address {} is in a prefix that would go", ip.ip);
        return Err(Error::new(ErrorCode::StillInUse, message).object("network", &network.id));
    }
    let lost_child = children
        .filter_map(|id| tables.get::<Network>(id))
        .find(|child| !child.prefixes.iter().all(kept));
    lost_child.map_or(Ok(()), |child| {
        let message = format!("network \"{}\" is in a prefix that would go", child.id);
        Err(Error::new(ErrorCode::StillInUse, message).object("network", &network.id))
    })
}
