//! The search for the host of one claim.

use std::collections::BTreeMap;

use proto_types::{MachineId, Timestamp};

use super::needs::ClaimNeeds;
use super::score::{ShapeRank, candidates};
use crate::claim::entity::{Claim, PendingReason};
use crate::cluster::read::restored;
use crate::holdings::{MachineRoom, machine_room};
use crate::machine::entity::Machine;
use crate::machine::read::obstacle;
use crate::pool::entity::{HostPool, HostShape, PoolHost};
use crate::tables::{ShapeHosts, Tables};

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClaimSurvey {
    /// The host. `None` means that none was found.
    pub(crate) host: Option<MachineId>,
    /// Why none was found.
    pub(crate) reason: PendingReason,
    /// Number of hosts that fit, free or not.
    pub(crate) matching: u32,
    /// Hosts that the index has for free, and that are not ready.
    pub(crate) unready: Vec<MachineId>,
}

impl ClaimSurvey {
    fn without(reason: PendingReason) -> Self {
        Self {
            host: None,
            reason,
            matching: 0,
            unready: Vec::new(),
        }
    }
}

/// Searches a host for a claim.
pub(crate) fn survey(tables: &Tables, claim: &Claim, now: Timestamp) -> ClaimSurvey {
    // A machine that is free in the backup may be a tenant's since.
    if restored(tables).is_some() {
        return ClaimSurvey::without(PendingReason::NotReconciled);
    }
    let needs = ClaimNeeds::of(tables, claim, now);
    let pools = admitted_pools(&needs, tables);
    if pools.is_empty() {
        return ClaimSurvey::without(PendingReason::NoPolicy);
    }
    match earlier_host(&needs, tables) {
        EarlierHost::Ready(host) => {
            let room = machine_room(tables, claim.project);
            let size = tables.get::<PoolHost>(&host);
            if !room.takes(size.and_then(|host| host.seen.size.as_ref())) {
                return ClaimSurvey::without(PendingReason::QuotaExceeded);
            }
            ClaimSurvey {
                host: Some(host),
                matching: 1,
                ..ClaimSurvey::without(PendingReason::Queued)
            }
        }
        EarlierHost::Awaited => ClaimSurvey::without(PendingReason::WaitingForReuse),
        EarlierHost::Missing => {
            let is_required = claim
                .spec
                .reuse
                .as_ref()
                .is_some_and(|reuse| reuse.required);
            match is_required {
                true => ClaimSurvey::without(PendingReason::NoMatch),
                false => among(&needs, tables, &pools),
            }
        }
    }
}

/// The pools that admit the claim.
fn admitted_pools<'a>(needs: &ClaimNeeds<'_>, tables: &'a Tables) -> Vec<&'a HostPool> {
    let pools = tables.all::<HostPool>().map(AsRef::as_ref);
    let admits = |pool: &&HostPool| needs.admitted(&pool.id).is_some();
    pools.filter(admits).collect()
}

/// The host of an earlier claim, by the claim's key.
enum EarlierHost {
    /// It can be bound.
    Ready(MachineId),
    /// It is reserved for the project, and being wiped.
    Awaited,
    /// Nothing is reserved, or it does not fit.
    Missing,
}

fn earlier_host(needs: &ClaimNeeds<'_>, tables: &Tables) -> EarlierHost {
    let Some(reuse) = &needs.spec().reuse else {
        return EarlierHost::Missing;
    };
    let key = (needs.claim.project, reuse.key.clone());
    let reserved = tables.index().hosts.reserved.get(&key);
    let hosts = reserved.into_iter().flatten();
    let hosts = hosts.filter_map(|id| tables.get::<PoolHost>(id));
    let mut is_awaited = false;
    for host in hosts {
        let Some(pool) = tables.get::<HostPool>(&host.pool) else {
            continue;
        };
        let shape = HostShape::of(host);
        let fits = needs.admitted(&pool.id).is_some()
            && needs.fits(pool, &shape)
            && needs.is_in_domain(&shape)
            && needs.can_be_installed(&shape);
        if !fits || host.cordon.is_some() || host.quarantine.is_some() {
            continue;
        }
        if host.is_open() && is_ready(tables, host.machine) {
            return EarlierHost::Ready(host.machine);
        }
        is_awaited = true;
    }
    match is_awaited {
        true => EarlierHost::Awaited,
        false => EarlierHost::Missing,
    }
}

/// `true` if nothing keeps the machine from being allocated.
fn is_ready(tables: &Tables, machine: MachineId) -> bool {
    let machine = tables.get::<Machine>(&machine);
    machine.is_some_and(|machine| obstacle(tables, machine).is_none())
}

/// Counts of the hosts that fit.
#[derive(Default)]
struct FitCounts {
    matching: usize,
    cordoned: usize,
    elsewhere: usize,
    has_free: bool,
}

impl FitCounts {
    /// Why no host was found among these.
    fn reason(&self) -> PendingReason {
        match self.matching {
            0 if self.elsewhere > 0 => PendingReason::FailureDomainFull,
            0 => PendingReason::NoMatch,
            matching if matching == self.cordoned => PendingReason::Cordoned,
            _ if self.has_free => PendingReason::QuotaExceeded,
            _ if self.elsewhere > 0 => PendingReason::FailureDomainFull,
            _ => PendingReason::AllBusy,
        }
    }
}

/// Searches the best free host of pools.
fn among(needs: &ClaimNeeds<'_>, tables: &Tables, pools: &[&HostPool]) -> ClaimSurvey {
    let mut counts = FitCounts::default();
    let mut room: Option<MachineRoom> = None;
    let mut ranked: BTreeMap<ShapeRank, Vec<&ShapeHosts>> = BTreeMap::new();
    for pool in pools {
        for (shape, hosts) in tables.index().hosts.shapes_of(&pool.id) {
            if !needs.fits(pool, shape) || !needs.can_be_installed(shape) {
                continue;
            }
            if !needs.is_in_domain(shape) {
                counts.elsewhere += hosts.members;
                continue;
            }
            counts.matching += hosts.members;
            counts.cordoned += hosts.cordoned;
            if hosts.free.is_empty() {
                continue;
            }
            counts.has_free = true;
            let room = room.get_or_insert_with(|| machine_room(tables, needs.claim.project));
            if room.takes(shape.size.as_ref()) {
                let rank = ShapeRank::of(needs, pool, shape);
                ranked.entry(rank).or_default().push(hosts);
            }
        }
    }
    let mut unready = Vec::new();
    let mut host = None;
    'ranks: for shapes in ranked.into_values() {
        for id in candidates(tables, needs.claim, shapes.into_iter()) {
            if is_ready(tables, id) {
                host = Some(id);
                break 'ranks;
            }
            unready.push(id);
        }
    }
    let is_busy = host.is_none() && !unready.is_empty();
    ClaimSurvey {
        host,
        reason: match is_busy {
            true => PendingReason::AllBusy,
            false => counts.reason(),
        },
        matching: u32::try_from(counts.matching).unwrap_or(u32::MAX),
        unready,
    }
}
