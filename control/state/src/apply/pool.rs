//! Numbers for new owners: next fit, and never one that still cools down for another.
//!
//! Rule: a number is released only after the switches reported that no port of its last owner uses
//! it. From then on it cools down: its last owner gets it back by name at once, others later.

use ipnet::{IpNet, Ipv4Net};
use proto_errors::{Error, ErrorCode};
use proto_types::{ASN_BASE, Asn, PartitionId, ProjectId, Timestamp};

use crate::catalog::entity::Partition;
use crate::entities::{CoolingNumber, Family, IpKey, Network, PoolCursor, PoolNumber, Switch};
use crate::ipam::{self, Range};
use crate::tables::{Tables, Tx};

/// VRF ids of child networks come out of 1..=131072.
const VRF_POOL_MAX: u32 = 131_072;
/// AS numbers come out of 1..=131072 above [`ASN_BASE`].
const ASN_POOL_MAX: u32 = 131_072;
/// Addresses of one network that cool down for one project: beyond that the project gets its own
/// ones again, so that creating and deleting in a loop does not use up a shared network.
const COOLING_IPS_MAX: u64 = 16;
/// Prefixes of one network that cool down for one project, likewise.
const COOLING_PREFIXES_MAX: u64 = 4;
/// In a small network one project has at most so much of it cooling: an eighth.
const COOLING_PART: u64 = 8;

type Result<T> = std::result::Result<T, Error>;

/// Releases a number: it cools down for as long as the partition says. A number of no partition
/// cools down for the longest time of all partitions.
pub(crate) fn release(
    tx: &mut Tx<'_>,
    number: PoolNumber,
    project: Option<ProjectId>,
    partition: Option<&PartitionId>,
) {
    let cooldown_ms = cooldown_ms(tx.tables(), partition);
    if cooldown_ms > 0 {
        tx.save(CoolingNumber {
            number,
            project,
            released_at: tx.now,
            until: tx.now.plus_ms(cooldown_ms),
        });
    }
}

fn cooldown_ms(tables: &Tables, partition: Option<&PartitionId>) -> u64 {
    let known = partition.and_then(|id| tables.get::<Partition>(id));
    let longest = || {
        let all = tables.all::<Partition>();
        all.map(|partition| partition.number_cooldown_ms()).max()
    };
    known
        .map(|partition| partition.number_cooldown_ms())
        .or_else(longest)
        .unwrap_or_default()
}

fn cooling<'a>(
    tables: &'a Tables,
    number: &PoolNumber,
    now: Timestamp,
) -> Option<&'a CoolingNumber> {
    let found = tables.get::<CoolingNumber>(number).map(AsRef::as_ref);
    found.filter(|cooling| now < cooling.until)
}

/// Takes a number that is asked for by name: refused while it cools down for another owner.
pub(crate) fn take(tx: &mut Tx<'_>, number: &PoolNumber, project: Option<ProjectId>) -> Result<()> {
    let foreign = cooling(tx.tables(), number, tx.now).filter(|cooling| cooling.project != project);
    if let Some(foreign) = foreign {
        let message = format!(
            "{number} was released at {} and cools down until {}",
            foreign.released_at, foreign.until
        );
        return Err(Error::new(ErrorCode::NumberCooling, message).object("number", number));
    }
    tx.delete::<CoolingNumber>(number);
    Ok(())
}

/// The next free VRF id for a child network of a project.
pub(crate) fn next_vrf(tx: &mut Tx<'_>, project: ProjectId) -> Result<u32> {
    let pool = Pool {
        name: "vrf",
        first: 1,
        last: VRF_POOL_MAX,
        number: PoolNumber::Vrf,
    };
    let is_used = |tables: &Tables, vrf| is_vrf_used(tables, vrf) || is_observed(tables, vrf);
    next_of(tx, &pool, project, is_used)?
        .ok_or_else(|| Error::new(ErrorCode::NumbersExhausted, "no VRF id is left"))
}

/// The next free AS number for a machine of a project.
pub(crate) fn next_asn(tx: &mut Tx<'_>, project: ProjectId) -> Result<Asn> {
    let pool = Pool {
        name: "asn",
        first: ASN_BASE + 1,
        last: ASN_BASE + ASN_POOL_MAX,
        number: PoolNumber::Asn,
    };
    let is_used = |tables: &Tables, asn| tables.index().asn_machine.contains_key(&asn);
    next_of(tx, &pool, project, is_used)?
        .map(Asn)
        .ok_or_else(|| Error::new(ErrorCode::NumbersExhausted, "no AS number is left"))
}

/// `true` if a network has the VRF id, or a partition boots its machines in the segment of that
/// number.
pub(crate) fn is_vrf_used(tables: &Tables, vrf: u32) -> bool {
    let is_provisioning = || {
        let mut all = tables.all::<Partition>();
        all.any(|partition| partition.provisioning_vni().get() == vrf)
    };
    tables.index().vrf_networks.contains_key(&vrf) || is_provisioning()
}

/// `true` if a switch reports a port in the segment of this number.
pub(crate) fn is_observed(tables: &Tables, vrf: u32) -> bool {
    tables.index().observed_vnis.contains_key(&vrf)
}

/// A port that its switch reports in the segment of this number, as `<switch>/<port>`.
pub(crate) fn observed_port(tables: &Tables, vrf: u32) -> Option<String> {
    if !is_observed(tables, vrf) {
        return None;
    }
    tables.all::<Switch>().find_map(|switch| {
        let mut ports = switch.ports.iter();
        let (name, _) = ports.find(|(_, port)| {
            let seen = port.observed.as_ref();
            seen.is_some_and(|seen| seen.vni.get() == vrf)
        })?;
        Some(format!("{}/{name}", switch.id))
    })
}

/// A pool of plain numbers.
struct Pool {
    name: &'static str,
    first: u32,
    last: u32,
    number: fn(u32) -> PoolNumber,
}

fn next_of(
    tx: &mut Tx<'_>,
    pool: &Pool,
    project: ProjectId,
    is_used: impl Fn(&Tables, u32) -> bool,
) -> Result<Option<u32>> {
    let (tables, now) = (tx.tables(), tx.now);
    let number_of = |at: u128| u32::try_from(at).unwrap_or(u32::MAX);
    let ranges = [(u128::from(pool.first), u128::from(pool.last))];
    let ranges = ipam::next_fit(&ranges, cursor(tables, pool.name));
    let is_taken = |at: u128| {
        let number = number_of(at);
        is_used(tables, number) || cooling(tables, &(pool.number)(number), now).is_some()
    };
    // When all the rest is in use, the project gets back what it released.
    let is_foreign = |at: u128| {
        let number = number_of(at);
        let held = cooling(tables, &(pool.number)(number), now);
        is_used(tables, number) || held.is_some_and(|held| held.project != Some(project))
    };
    let found =
        ipam::first_free(&ranges, is_taken).or_else(|| ipam::first_free(&ranges, is_foreign));
    let Some(found) = found else { return Ok(None) };
    let number = number_of(found);
    take(tx, &(pool.number)(number), Some(project))?;
    advance(tx, pool.name, found);
    Ok(Some(number))
}

/// The next free address of a network for a project.
pub(crate) fn next_ip(
    tx: &mut Tx<'_>,
    network: &Network,
    family: Family,
    project: ProjectId,
) -> Result<std::net::IpAddr> {
    let (tables, now) = (tx.tables(), tx.now);
    let pool = format!("ip/{}/{}", network.id, name_of(family));
    let ranges = ipam::host_ranges(&network.prefixes, family);
    let key_of = |at: u128| IpKey {
        namespace: network.namespace,
        ip: ipam::to_ip(at, family),
    };
    let is_taken = |at: u128| {
        let key = key_of(at);
        tables.get::<crate::entities::Ip>(&key).is_some()
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

/// How many numbers of a network may cool down for one project.
fn share(room: impl Iterator<Item = u64>, max: u64) -> usize {
    let room = room.fold(0, u64::saturating_add);
    usize::try_from((room / COOLING_PART).clamp(1, max)).unwrap_or(usize::MAX)
}

/// Addresses of the ranges that cool down for the project, the longest released first.
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
pub(crate) fn next_prefix(tx: &mut Tx<'_>, wanted: &Wanted<'_>) -> Result<IpNet> {
    let Wanted { parent, family, .. } = *wanted;
    let (tables, now) = (tx.tables(), tx.now);
    let pool = prefix_pool(parent, wanted.namespace, family);
    let live = siblings(tables, parent, wanted.namespace);
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
    let family = name_of(family);
    match namespace {
        Some(namespace) => format!("prefix/{}/{family}/{namespace}", parent.id),
        None => format!("prefix/{}/{family}", parent.id),
    }
}

const fn name_of(family: Family) -> &'static str {
    match family {
        Family::V4 => "v4",
        Family::V6 => "v6",
    }
}

fn cursor(tables: &Tables, pool: &str) -> Option<u128> {
    let cursor = tables.get::<PoolCursor>(&pool.to_owned())?;
    cursor.last.parse().ok()
}

fn advance(tx: &mut Tx<'_>, pool: &str, last: u128) {
    tx.save(PoolCursor {
        pool: pool.to_owned(),
        last: last.to_string(),
    });
}

/// Releases what a network has, once it is deleted: its VRF id, and the prefixes of a child. The
/// prefixes of other networks are an administrator's to give.
pub(crate) fn release_network(tx: &mut Tx<'_>, network: &Network) {
    let partition = network.partition.as_ref();
    if let Some(vrf) = network.vrf
        && !tx.tables().index().vrf_networks.contains_key(&vrf)
    {
        release(tx, PoolNumber::Vrf(vrf), network.project, partition);
    }
    let prefixes = network.prefixes.iter().filter(|_| network.kind.is_child());
    for net in prefixes.copied() {
        let namespace = network.namespace;
        let number = PoolNumber::Prefix { namespace, net };
        release(tx, number, network.project, partition);
    }
    forget_cursors(tx, &format!("ip/{}/", network.id));
    forget_cursors(tx, &format!("prefix/{}/", network.id));
}

fn forget_cursors(tx: &mut Tx<'_>, pools: &str) {
    let table = tx.tables().table::<PoolCursor>();
    let names: Vec<String> = table
        .range(pools.to_owned()..)
        .map(|(name, _)| name.clone())
        .take_while(|name| name.starts_with(pools))
        .collect();
    for name in names {
        tx.delete::<PoolCursor>(&name);
    }
}
