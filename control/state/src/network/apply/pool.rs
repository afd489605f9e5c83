//! Pools of numbers: next fit, and a cooldown after the release.
//!
//! Rule: a number is released only after the switches reported that no port of its last owner uses
//! it. Then its cooldown starts, in which its last owner can take it again by name, and others
//! cannot.

use proto_errors::{Error, ErrorCode};
use proto_types::{ASN_BASE, Asn, PartitionId, ProjectId, Timestamp, Vni};

use crate::catalog::entity::Partition;
use crate::cluster::read::restored;
use crate::levels::{SHARED_BOUNDS, feature_level};
use crate::network::entity::{CoolingNumber, Network, PoolCursor, PoolNumber};
use crate::network::ipam;
use crate::switch::entity::{Switch, SwitchPort};
use crate::tables::{Tables, Tx};

/// Highest VRF id that the pool gives to child networks; the lowest is 1. When all are taken, new
/// child networks are refused.
const VRF_POOL_MAX: u32 = 131_072;
/// Number of AS numbers in the pool, from [`ASN_BASE`] + 1 on. When all are taken, new allocations
/// are refused.
const ASN_POOL_MAX: u32 = 131_072;
/// Most VRF ids, and most AS numbers, that cool down for one project before it gets the oldest one
/// again: creating and deleting in a loop does not exhaust the pool, which all tenants share.
const COOLING_NUMBERS_MAX: usize = 16;

/// Releases a number. Its cooldown is that of its partition; without a partition the longest of all
/// partitions, because the number may have been in use in each of them.
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

/// The cooldown that a number is in. `None` means that anybody can take it.
pub(crate) fn cooling<'a>(
    tables: &'a Tables,
    number: &PoolNumber,
    now: Timestamp,
) -> Option<&'a CoolingNumber> {
    let found = tables.get::<CoolingNumber>(number).map(AsRef::as_ref);
    found.filter(|cooling| now < cooling.until)
}

/// Takes a number by name.
///
/// # Errors
/// `NumberCooling` while it cools down for another owner.
pub(crate) fn take(
    tx: &mut Tx<'_>,
    number: &PoolNumber,
    project: Option<ProjectId>,
) -> Result<(), Error> {
    // Switches and neighbours may still hold routes and entries of the last owner: a new owner
    // would get its traffic.
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
pub(crate) fn next_vrf(tx: &mut Tx<'_>, project: ProjectId) -> Result<u32, Error> {
    let pool = Pool {
        name: "vrf",
        first: 1,
        last: VRF_POOL_MAX,
        number: PoolNumber::Vrf,
    };
    // A switch that was away may still have a port in the segment of a deleted network: its number
    // is taken until the switch reports otherwise.
    let now = tx.now;
    let is_used = |tables: &Tables, vrf| {
        is_vrf_used(tables, vrf) || observed_port(tables, vrf, now).is_some()
    };
    next_of(tx, &pool, project, is_used)?
        .ok_or_else(|| Error::new(ErrorCode::NumbersExhausted, "no VRF id is left"))
}

/// The next free AS number for a machine of a project.
pub(crate) fn next_asn(tx: &mut Tx<'_>, project: ProjectId) -> Result<Asn, Error> {
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

/// A port that its switch reports in the segment of this number, as `<switch>/<port>`.
///
/// Only a port counts that control wanted there, or that a restore pinned there: with any other
/// report a switch would keep every number from everybody. After a restore each counts, because the
/// backup does not know what control wanted since.
pub(crate) fn observed_port(tables: &Tables, vrf: u32, now: Timestamp) -> Option<String> {
    if !tables.index().observed_vnis.contains_key(&vrf) {
        return None;
    }
    let counts_all = feature_level(tables) < SHARED_BOUNDS || restored(tables).is_some();
    let vni = Vni::try_from(vrf).ok()?;
    let holds = |port: &SwitchPort| {
        let seen = port.observed.as_ref();
        let is_placed = || {
            let placed = port.placed.as_ref();
            port.kept == Some(vni) || placed.is_some_and(|placed| placed.holds(vni, now))
        };
        seen.is_some_and(|seen| seen.vni == vni) && (counts_all || is_placed())
    };
    tables.all::<Switch>().find_map(|switch| {
        let mut ports = switch.ports.iter();
        let (name, _) = ports.find(|(_, port)| holds(port))?;
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
) -> Result<Option<u32>, Error> {
    let (tables, now) = (tx.tables(), tx.now);
    let number_of = |at: u128| u32::try_from(at).unwrap_or(u32::MAX);
    let ranges = [(u128::from(pool.first), u128::from(pool.last))];
    let ranges = ipam::next_fit(&ranges, cursor(tables, pool.name));
    let is_taken = |at: u128| {
        let number = number_of(at);
        is_used(tables, number) || cooling(tables, &(pool.number)(number), now).is_some()
    };
    // Second choice, when no number is free: one that cools down for this project. It gets its own
    // traffic at worst.
    let is_foreign = |at: u128| {
        let number = number_of(at);
        let held = cooling(tables, &(pool.number)(number), now);
        is_used(tables, number) || held.is_some_and(|held| held.project != Some(project))
    };
    let free =
        || ipam::first_free(&ranges, is_taken).or_else(|| ipam::first_free(&ranges, is_foreign));
    let own = own_numbers(tables, pool, project, now);
    let oldest = own.iter().find(|at| !is_used(tables, **at)).copied();
    let found = match oldest {
        Some(oldest) if own.len() >= COOLING_NUMBERS_MAX => Some(u128::from(oldest)),
        _ => free(),
    };
    let Some(found) = found else { return Ok(None) };
    let number = number_of(found);
    take(tx, &(pool.number)(number), Some(project))?;
    advance(tx, pool.name, found);
    Ok(Some(number))
}

/// Numbers of a pool that cool down for a project, in the order of their release.
fn own_numbers(tables: &Tables, pool: &Pool, project: ProjectId, now: Timestamp) -> Vec<u32> {
    let range = (pool.number)(pool.first)..=(pool.number)(pool.last);
    let table = tables.table::<CoolingNumber>().range(range);
    let cooling = table.map(|(_, slot)| slot.value.as_ref());
    let mut own: Vec<(Timestamp, u32)> = cooling
        .filter(|cooling| cooling.project == Some(project) && now < cooling.until)
        .filter_map(|cooling| match cooling.number {
            PoolNumber::Vrf(number) | PoolNumber::Asn(number) => {
                Some((cooling.released_at, number))
            }
            PoolNumber::Ip(_) | PoolNumber::Prefix { .. } => None,
        })
        .collect();
    own.sort_unstable();
    own.into_iter().map(|(_, number)| number).collect()
}

pub(crate) fn cursor(tables: &Tables, pool: &str) -> Option<u128> {
    let cursor = tables.get::<PoolCursor>(&pool.to_owned())?;
    cursor.last.parse().ok()
}

pub(crate) fn advance(tx: &mut Tx<'_>, pool: &str, last: u128) {
    tx.save(PoolCursor {
        pool: pool.to_owned(),
        last: last.to_string(),
    });
}

/// Releases the numbers of a deleted network: its VRF id, and the prefixes of a child. Prefixes of
/// other networks are assigned by administrators, not by a pool.
pub(crate) fn release_network(tx: &mut Tx<'_>, network: &Network) {
    let partition = network.partition.as_ref();
    // Children of a super network with a VRF share its id: the last network releases it.
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
