//! The next free address or prefix of a network.

use ipnet::{IpNet, Ipv4Net};
use proto_errors::{Error, ErrorCode};
use proto_types::{ProjectId, Timestamp};

use crate::network::apply::pool::{advance, cooling, cursor, take};
use crate::network::entity::{CoolingNumber, Family, IpKey, Network, PoolNumber};
use crate::network::ipam::{self, Range};
use crate::reply::CheckResult;
use crate::tables::{Tables, Tx};

/// Most addresses of one network that cool down for one project. Beyond it the project gets its
/// oldest one again, so that creating and deleting in a loop does not exhaust a shared network.
const COOLING_IPS_MAX: u64 = 16;
/// Most prefixes of one network that cool down for one project. Beyond it the project gets one of
/// them again.
const COOLING_PREFIXES_MAX: u64 = 4;
/// Divisor of a network's size: at most this part of it, an eighth, cools down for one project. In
/// small networks it is below the bounds above.
const COOLING_PART: u64 = 8;

/// The next free address of a network for a project.
pub(crate) fn next_ip(
    tx: &mut Tx<'_>,
    network: &Network,
    family: Family,
    project: ProjectId,
) -> Result<std::net::IpAddr, Error> {
    let (tables, now) = (tx.tables(), tx.now);
    let pool = format!("ip/{}/{}", network.id, family.as_str());
    let ranges = ipam::host_ranges(&network.prefixes, family);
    let key_of = |at: u128| IpKey {
        namespace: network.namespace,
        ip: ipam::to_ip(at, family),
    };
    let is_taken = |at: u128| {
        let key = key_of(at);
        tables.get::<crate::network::entity::Ip>(&key).is_some()
            || cooling(tables, &PoolNumber::Ip(key), now).is_some()
    };
    let own = own_ips(tables, &ranges, key_of, project, now);
    let of_family = network
        .prefixes
        .iter()
        .filter(|net| Family::of_net(net) == family);
    let share = share(of_family.map(ipam::host_count), COOLING_IPS_MAX);
    let next = || ipam::first_free(&ipam::next_fit(&ranges, cursor(tables, &pool)), is_taken);
    let found = match own.first() {
        Some(oldest) if own.len() >= share => Some(*oldest),
        oldest => next().or_else(|| oldest.copied()),
    };
    let found = found.ok_or_else(|| {
        let message = format!(
            "network \"{}\" has no free {family:?} address left",
            network.id
        );
        Error::new(ErrorCode::AddressesExhausted, message).object("network", &network.id)
    })?;
    take(tx, &PoolNumber::Ip(key_of(found)), Some(project))?;
    advance(tx, &pool, found);
    Ok(ipam::to_ip(found, family))
}

/// Refuses an address by name while the project's share of the network cools down, unless it is one
/// of these: otherwise a project could name and release one address after the other. The owner of a
/// network may do so.
pub(crate) fn check_share(
    tx: &Tx<'_>,
    network: &Network,
    ip: std::net::IpAddr,
    project: ProjectId,
) -> CheckResult {
    if network.project == Some(project) {
        return Ok(());
    }
    let family = Family::of(ip);
    let ranges = ipam::host_ranges(&network.prefixes, family);
    let key_of = |at: u128| IpKey {
        namespace: network.namespace,
        ip: ipam::to_ip(at, family),
    };
    let own = own_ips(tx.tables(), &ranges, key_of, project, tx.now);
    let nets = network.prefixes.iter();
    let of_family = nets.filter(|net| Family::of_net(net) == family);
    let share = share(of_family.map(ipam::host_count), COOLING_IPS_MAX);
    if own.len() < share || own.contains(&ipam::to_number(ip)) {
        return Ok(());
    }
    let message = format!(
        "{} addresses of network \"{}\" cool down for the project, as many as may",
        own.len(),
        network.id
    );
    let error = Error::new(ErrorCode::NumberCooling, message).object("network", &network.id);
    Err(error.hint("take one of these again, or wait until they are free"))
}

/// Most numbers of a network that may cool down for one project, at least 1.
fn share(room: impl Iterator<Item = u64>, max: u64) -> usize {
    let room = room.fold(0, u64::saturating_add);
    usize::try_from((room / COOLING_PART).clamp(1, max)).unwrap_or(usize::MAX)
}

/// Addresses of the ranges that cool down for the project, in the order of their release.
fn own_ips(
    tables: &Tables,
    ranges: &[Range],
    key_of: impl Fn(u128) -> IpKey,
    project: ProjectId,
    now: Timestamp,
) -> Vec<u128> {
    let table = tables.table::<CoolingNumber>();
    let mut own: Vec<(Timestamp, u128)> = ranges
        .iter()
        .flat_map(|(first, last)| {
            table.range(PoolNumber::Ip(key_of(*first))..=PoolNumber::Ip(key_of(*last)))
        })
        .map(|(_, slot)| slot.value.as_ref())
        .filter(|cooling| cooling.project == Some(project) && now < cooling.until)
        .filter_map(|cooling| match cooling.number {
            PoolNumber::Ip(key) => Some((cooling.released_at, ipam::to_number(key.ip))),
            _ => None,
        })
        .collect();
    own.sort_unstable();
    own.into_iter().map(|(_, at)| at).collect()
}

/// A child prefix to carve.
pub(crate) struct Wanted<'a> {
    pub(crate) parent: &'a Network,
    pub(crate) family: Family,
    pub(crate) length: u8,
    pub(crate) namespace: Option<ProjectId>,
    pub(crate) project: ProjectId,
}

/// The next free prefix of a network for a child network of a project.
pub(crate) fn next_prefix(tx: &mut Tx<'_>, wanted: &Wanted<'_>) -> Result<IpNet, Error> {
    let Wanted { parent, family, .. } = *wanted;
    let (tables, now) = (tx.tables(), tx.now);
    let pool = prefix_pool(parent, wanted.namespace, family);
    let live = siblings(tables, parent, wanted.namespace);
    // `all` is avoided by a new prefix. `own` are the cooling prefixes that this project may have
    // again, where only the live ones are avoided.
    let (mut own, mut all) = (Vec::new(), live.clone());
    for (net, cooling) in cooling_prefixes(tables, wanted.namespace, now) {
        all.push(net);
        let is_inside = parent.prefixes.iter().any(|above| above.contains(&net));
        if is_inside && cooling.project == Some(wanted.project) {
            own.push(net);
        }
    }
    let of = |parents: &[IpNet], used: &[IpNet], last| {
        ipam::carve(parents, family, wanted.length, used, last)
    };
    let next = || of(&parent.prefixes, &all, cursor(tables, &pool));
    let again = || of(&own, &live, None);
    let above = parent.prefixes.iter();
    let above = above.filter(|net| Family::of_net(net) == family);
    let room = above.map(|net| ipam::prefix_count(net, wanted.length));
    let found = if own.len() >= share(room, COOLING_PREFIXES_MAX) {
        again().or_else(next)
    } else {
        next().or_else(again)
    };
    let (net, last) = found.ok_or_else(|| {
        let message = format!(
            "network \"{}\" has no free /{} left",
            parent.id, wanted.length
        );
        Error::new(ErrorCode::PrefixesExhausted, message).object("network", &parent.id)
    })?;
    let namespace = wanted.namespace;
    take(
        tx,
        &PoolNumber::Prefix { namespace, net },
        Some(wanted.project),
    )?;
    advance(tx, &pool, last);
    Ok(net)
}

/// Prefixes of the children of a network, in one namespace.
fn siblings(tables: &Tables, parent: &Network, namespace: Option<ProjectId>) -> Vec<IpNet> {
    let children = tables.index().children.get(&parent.id);
    children
        .into_iter()
        .flatten()
        .filter_map(|id| tables.get::<Network>(id))
        .filter(|sibling| sibling.namespace == namespace)
        .flat_map(|sibling| sibling.prefixes.iter().copied())
        .collect()
}

fn cooling_prefixes(
    tables: &Tables,
    namespace: Option<ProjectId>,
    now: Timestamp,
) -> impl Iterator<Item = (IpNet, &CoolingNumber)> {
    let first = PoolNumber::Prefix {
        namespace,
        net: IpNet::V4(Ipv4Net::default()),
    };
    let table = tables.table::<CoolingNumber>();
    table
        .range(first..)
        .map(|(_, slot)| slot.value.as_ref())
        .map_while(move |cooling| match cooling.number {
            PoolNumber::Prefix { namespace: of, net } if of == namespace => Some((net, cooling)),
            _ => None,
        })
        .filter(move |(_, cooling)| now < cooling.until)
}

fn prefix_pool(parent: &Network, namespace: Option<ProjectId>, family: Family) -> String {
    let family = family.as_str();
    match namespace {
        Some(namespace) => format!("prefix/{}/{family}/{namespace}", parent.id),
        None => format!("prefix/{}/{family}", parent.id),
    }
}
