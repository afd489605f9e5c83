//! A tenant that tries the ids of others: the answer is the one for an object that does not exist.

use control_state::{
    Claim, ClaimState, DeleteClaim, ErrorCode, FreeMachine, HoldClaim, Op, StateError, Tables,
};
use proto_types::ClaimId;

use super::tenant::Tenant;
use crate::tenants::ids;
use crate::tenants::site::HOSTS;

/// Number of a machine that is not there.
const NO_MACHINE: u64 = 900;

/// Tries an id of somebody else, and one of nobody.
pub(super) async fn pry(tenant: &mut Tenant, tables: &Tables) {
    match tenant.person.random.within(0..3) {
        0 => pry_machine(tenant).await,
        kind => pry_claim(tenant, tables, kind == 1).await,
    }
}

async fn pry_claim(tenant: &mut Tenant, tables: &Tables, deletes: bool) {
    let project = tenant.project;
    let others = tables
        .all::<Claim>()
        .filter(|claim| claim.project != project && claim.state != ClaimState::Gone);
    let others: Vec<ClaimId> = others.map(|claim| claim.id).collect();
    let Some(other) = tenant.person.random.pick(&others).copied() else {
        return;
    };
    let nobodys = tenant.person.fresh.claim();
    let call = |id: ClaimId| match deletes {
        true => Op::from(DeleteClaim {
            id,
            project,
            epoch: None,
        }),
        false => Op::from(HoldClaim {
            id,
            project,
            epoch: None,
            key: "job".to_owned(),
            is_held: true,
            reason: String::new(),
        }),
    };
    let (other, nobodys) = (
        Tried::of(other, call(other)),
        Tried::of(nobodys, call(nobodys)),
    );
    compare(tenant, other, nobodys).await;
}

/// A machine of a pool is nobody's by its id, not even the one that a claim of its own has.
async fn pry_machine(tenant: &mut Tenant) {
    let project = Some(tenant.project);
    let number = tenant.person.random.within(1..HOSTS + 1);
    let [other, nobodys] = [number, NO_MACHINE].map(|number| {
        let id = ids::machine(number);
        Tried::of(id, FreeMachine { id, project })
    });
    compare(tenant, other, nobodys).await;
}

/// A call, and the id that it names.
struct Tried {
    id: String,
    op: Op,
}

impl Tried {
    fn of(id: impl ToString, op: impl Into<Op>) -> Self {
        Self {
            id: id.to_string(),
            op: op.into(),
        }
    }
}

async fn compare(tenant: &mut Tenant, other: Tried, nobodys: Tried) {
    let name = other.op.name();
    let first = tenant.person.call(other.op).await;
    let second = tenant.person.call(nobodys.op).await;
    match (first, second) {
        (Some(Err(first)), Some(Err(second))) => {
            let is_alike = without(&first, &other.id) == without(&second, &nobodys.id);
            if first.code != ErrorCode::NotFound || !is_alike {
                let what = format!("{name} tells others' objects from none: {first}, {second}");
                tenant.person.complain(&what);
            }
        }
        (Some(Ok(_)), _) | (_, Some(Ok(_))) => {
            let what = format!("{name} reaches others' objects");
            tenant.person.complain(&what);
        }
        // The run ended.
        (None, _) | (_, None) => {}
    }
}

/// All that an error says, but for an id.
fn without(error: &StateError, id: &str) -> String {
    format!("{} {} {}", error.message, error.object, error.hint).replace(id, "ID")
}
