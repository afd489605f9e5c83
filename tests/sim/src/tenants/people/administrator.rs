//! The administrator of the site: repairs what is broken, and changes rules under the tenants.

use std::collections::BTreeMap;
use std::ops::Range;

use control_state::{
    Availability, CleanHost, HoldActor, HoldCause, HoldHost, HostPool, Machine, Op, Phase,
    PoolHost, RemovePoolHost, SetMachineState, SetPoolHost, Tables,
};
use proto_types::MachineId;
use tests_support::objects::text;

use super::Person;
use crate::node::Shared;
use crate::tenants::site::{self, HOSTS, KINDS, POOLS, TENANTS};
use crate::tenants::work::TenantWork;
use crate::tenants::{ids, set_up};

/// Pause between two rounds, milliseconds.
const PAUSE_MS: Range<u64> = 2_000..9_000;
/// Time that a host gets for a wipe before it is ordered again, milliseconds.
const CLEAN_MS: u64 = 120_000;
/// Key of the administrator's holds.
const HOLD: &str = "job";

/// The administrator.
struct Administrator {
    person: Person,
    /// Virtual time at which a host was last ordered to be wiped, milliseconds.
    cleaned: BTreeMap<MachineId, u64>,
}

/// Looks after the site until the run ends.
pub(crate) async fn run(world: Shared<TenantWork>) {
    let number = TENANTS * 2;
    let mut administrator = Administrator {
        person: Person::new(world, "administrator".to_owned(), number),
        cleaned: BTreeMap::new(),
    };
    while administrator.person.pause(PAUSE_MS).await {
        let Some(tables) = administrator.person.view() else {
            continue;
        };
        let mut calls = administrator.repairs(&tables);
        if administrator.person.is_draining() {
            calls.extend(restorations(&tables));
        } else if administrator.person.is_set_up() {
            calls.extend(administrator.disturbance(&tables));
        }
        for call in calls {
            administrator.person.call(call).await;
        }
    }
}

impl Administrator {
    /// Calls that bring machines and hosts back into service.
    fn repairs(&mut self, tables: &Tables) -> Vec<Op> {
        let held = tables.all::<Machine>().filter(|machine| is_held(machine));
        let mut calls: Vec<Op> = held
            .map(|machine| {
                Op::from(SetMachineState {
                    id: machine.id,
                    state: Availability::Available,
                    description: String::new(),
                })
            })
            .collect();
        let now_ms = self.person.world.borrow().now_ms;
        for host in tables.all::<PoolHost>() {
            let machine = tables.get::<Machine>(&host.machine);
            let is_due = machine.is_some_and(|machine| needs_wipe(host, machine));
            let last = self.cleaned.get(&host.machine).copied();
            let is_long_ago = last.is_none_or(|last| now_ms >= last + CLEAN_MS);
            if is_due && is_long_ago {
                self.cleaned.insert(host.machine, now_ms);
                let machine = host.machine;
                calls.push(CleanHost { machine }.into());
            }
        }
        calls.extend(missing_hosts(tables));
        calls
    }

    /// A change of rules, or of a host. `None` in many rounds.
    fn disturbance(&mut self, tables: &Tables) -> Option<Op> {
        let random = &mut self.person.random;
        let number = random.within(1..HOSTS + 1);
        let tenant = random.within(1..TENANTS + 1);
        let machine = ids::machine(number);
        let is_host = tables.get::<PoolHost>(&machine).is_some();
        Some(match random.within(0..20) {
            0 if is_host => SetPoolHost {
                cordon: Some("fan".to_owned()),
                ..site::host(number)
            }
            .into(),
            1 | 2 if is_host => site::host(number).into(),
            3 if is_host => relabelled(number, random.within(0..3)).into(),
            4 => site::pool("night", random.within(0..2)).into(),
            5 => set_up::tier(tenant, random.chance(50)).into(),
            6 => set_up::quota(tenant, random.within(1..4)).into(),
            7 if random.chance(40) => RemovePoolHost {
                machine,
                force: random.chance(50),
            }
            .into(),
            8 | 9 if is_host => hold(machine, random.chance(30)).into(),
            _ => return None,
        })
    }
}

fn hold(machine: MachineId, is_held: bool) -> HoldHost {
    HoldHost {
        machine,
        actor: HoldActor::Remediation,
        key: HOLD.to_owned(),
        is_held,
        reason: String::new(),
    }
}

/// The same host as another kind.
fn relabelled(number: u64, kind: u64) -> SetPoolHost {
    let mut host = site::host(number);
    let kind = KINDS[(kind % 3) as usize];
    host.labels.insert("kind".to_owned(), kind.to_owned());
    host
}

/// Is it out of service until somebody says otherwise?
fn is_held(machine: &Machine) -> bool {
    matches!(
        machine.phase,
        Phase::Held(HoldCause::Bmc | HoldCause::Ports | HoldCause::Wipe)
    )
}

/// Is it a host that nobody gets before it is wiped again?
fn needs_wipe(host: &PoolHost, machine: &Machine) -> bool {
    let waits = machine.phase == Phase::Waiting && machine.allocation.is_none();
    host.binding.is_none() && waits && (host.quarantine.is_some() || machine.dirty)
}

/// Hosts that were taken out of their pool, and go back.
fn missing_hosts(tables: &Tables) -> impl Iterator<Item = Op> {
    (1..=HOSTS).filter_map(move |number| {
        let id = ids::machine(number);
        let is_host = tables.get::<PoolHost>(&id).is_some();
        let machine = tables.get::<Machine>(&id)?;
        let is_free = machine.allocation.is_none() && machine.phase == Phase::Waiting;
        (!is_host && is_free).then(|| site::host(number).into())
    })
}

/// Calls that take every restriction away, so that each tenant may get each host.
fn restorations(tables: &Tables) -> Vec<Op> {
    let closed = POOLS.into_iter().filter(|name| {
        let pool = tables.get::<HostPool>(&text(name));
        pool.is_none_or(|pool| !pool.policies.iter().any(|policy| policy.allow_all))
    });
    let mut calls: Vec<Op> = closed.map(|name| site::open_pool(name).into()).collect();
    for host in tables.all::<PoolHost>() {
        if !host.holds.is_empty() {
            calls.push(hold(host.machine, false).into());
        }
        let is_plain = host.cordon.is_none() && host.taints.is_empty();
        if let Some(number) = ids::number_of(host.machine).filter(|_| !is_plain) {
            calls.push(site::plain_host(number).into());
        }
    }
    calls
}
