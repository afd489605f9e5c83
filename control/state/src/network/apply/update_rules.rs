//! Rules for updates of networks.

use ipnet::IpNet;
use proto_errors::{Error, ErrorCode};

use crate::network::apply::network_rules::{
    Rule, check_canonical, check_destinations, check_field, check_lengths, check_new_prefixes,
    fields,
};
use crate::network::command::UpdateNetwork;
use crate::network::entity::{Ip, Network};
use crate::reply::CheckResult;
use crate::tables::Tables;

pub(crate) fn check_update(tables: &Tables, network: &Network, op: &UpdateNetwork) -> CheckResult {
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

/// Checks lengths against prefixes if either changes. A network of an older program may break the
/// rule; its other fields can still be changed.
fn check_changed_lengths(network: &Network, op: &UpdateNetwork) -> CheckResult {
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

/// The given value, if it differs from the current one.
fn changed<'a, T: PartialEq>(given: Option<&'a T>, current: &T) -> Option<&'a T> {
    given.filter(|given| *given != current)
}

/// Refuses to change a field that the network's type does not have. Its current value is accepted,
/// so that a caller can write back what it read.
fn check_changed_fields(network: &Network, op: &UpdateNetwork) -> CheckResult {
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
        if rule == Rule::Never && is_changed {
            check_field(network.kind, field, Rule::Never, true)?;
        }
    }
    Ok(())
}

fn check_announcable(network: &Network, cidrs: &[IpNet], force: bool) -> CheckResult {
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

fn check_prefix_change(tables: &Tables, network: &Network, prefixes: &[IpNet]) -> CheckResult {
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
