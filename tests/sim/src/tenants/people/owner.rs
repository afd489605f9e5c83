//! A project that owns machines and leases them to others, for minutes.

use std::ops::Range;

use control_state::{DecideLeaseTransfer, GrantLease, Lease, Machine, Op, Tables};

use super::Person;
use crate::node::Shared;
use crate::tenants::ids;
use crate::tenants::site::{self, HOSTS, MACHINES, OWNERS, TENANTS};
use crate::tenants::work::TenantWork;

/// Pause between two looks at a machine, milliseconds.
const PAUSE_MS: Range<u64> = 2_000..9_000;
/// Length of a lease, milliseconds: many are shorter than the use of the machine.
const LEASE_MS: Range<u64> = 15_000..150_000;
/// Time between the warning and the end, milliseconds.
const WARNING_MS: u64 = 10_000;

/// Leases the machines of owner `number` until the run ends.
pub(crate) async fn run(world: Shared<TenantWork>, number: u64) {
    // Its ids differ from those of the tenant of the same number.
    let ids_of = TENANTS + number;
    let mut owner = Person::new(world, format!("owner {number}"), ids_of);
    if !owner.wait_for_set_up().await {
        return;
    }
    let own = HOSTS + 1..=MACHINES;
    let own: Vec<u64> = own
        .filter(|machine| site::owner_of(*machine) == number)
        .collect();
    while owner.pause(PAUSE_MS).await {
        let machine = owner.random.pick(&own).copied();
        let (Some(machine), Some(tables)) = (machine, owner.view()) else {
            continue;
        };
        if owner.is_draining() {
            continue;
        }
        if let Some(call) = choose(&mut owner, &tables, number, machine) {
            owner.call(call).await;
        }
    }
}

/// The owner's next call about a machine. `None` means that there is none to make.
fn choose(owner: &mut Person, tables: &Tables, number: u64, machine: u64) -> Option<Op> {
    let project = ids::project(number);
    let id = ids::machine(machine);
    let found = tables.get::<Machine>(&id)?;
    if let Some(lease) = tables.get::<Lease>(&id) {
        let decision = DecideLeaseTransfer {
            machine: id,
            project,
            lease: None,
            to: lease.transfer_to?,
            consent: owner.random.chance(60),
        };
        return Some(decision.into());
    }
    let is_used = found.allocation.is_some() && !found.is_leaving();
    let lessee = owner.random.within(OWNERS + 1..TENANTS + 1);
    let expires_at = owner.now().plus_ms(owner.random.within(LEASE_MS));
    let grant = GrantLease {
        id: owner.fresh.lease(),
        machine: id,
        project,
        lessee: ids::project(lessee),
        expires_at,
        extendable_until: owner.random.chance(50).then(|| expires_at.plus_ms(120_000)),
        warning_ms: Some(WARNING_MS),
        comment: String::new(),
    };
    (!is_used).then(|| grant.into())
}
