//! The end of a run: when everything was given back, as many claims are served as there are hosts.

use std::time::Duration;

use control_state::{ClaimSpec, CreateClaim, Labels};

use super::Person;
use crate::node::Shared;
use crate::tenants::ids;
use crate::tenants::site::{HOSTS, TENANTS};
use crate::tenants::work::TenantWork;

/// Claims at the end: some more than there are hosts.
pub(crate) const LAST_CLAIMS: u64 = HOSTS + 12;
/// Name of the claims at the end.
pub(crate) const LAST: &str = "last";

/// Waits for the end, and makes the last claims.
pub(crate) async fn run(world: Shared<TenantWork>) {
    const LOOK_EVERY: Duration = Duration::from_millis(500);
    let mut person = Person::new(world.clone(), "finale".to_owned(), TENANTS * 3);
    while !world.borrow().work.is_finale {
        if world.borrow().is_calm {
            return;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    for tenant in 1..=LAST_CLAIMS {
        let call = CreateClaim {
            id: person.fresh.claim(),
            project: ids::project(tenant),
            name: LAST.to_owned(),
            labels: Labels::new(),
            spec: ClaimSpec {
                powered_on: true,
                ..ClaimSpec::default()
            },
            adopt: None,
        };
        if let Some(Err(error)) = person.call(call).await {
            person.complain(&format!("a last claim of tenant {tenant}: {error}"));
        }
    }
    world.borrow_mut().work.is_over = true;
}
