//! A tenant: it claims hosts, uses and changes them, and gives them back; it uses machines that others
//! lease to it, some beyond the end of their lease.

use std::ops::Range;
use std::sync::Arc;

use control_state::{
    Claim, ClaimState, CreateClaim, DeleteClaim, HoldClaim, Labels, RebootClaim, RebootMode, Reply,
    StateError, Tables, UpdateClaim, query,
};
use proto_types::ProjectId;

use super::{Person, leases, snoop, wishes};
use crate::node::Shared;
use crate::tenants::ids;
use crate::tenants::work::TenantWork;

/// Pause of a tenant between two calls, milliseconds.
const PAUSE_MS: Range<u64> = 4_000..25_000;
/// The same while it gives everything back.
const DRAIN_PAUSE_MS: Range<u64> = 1_000..6_000;
/// Names of claims, which are the keys of a client.
const NAMES: u64 = 4;
/// Creations of a hundred that the client repeats although it got its answer.
const REPEATED_PERCENT: u64 = 15;

/// A tenant and its project.
pub(super) struct Tenant {
    pub(super) person: Person,
    pub(super) number: u64,
    pub(super) project: ProjectId,
}

/// Lives as tenant `number` until the run ends.
pub(crate) async fn run(world: Shared<TenantWork>, number: u64) {
    let mut tenant = Tenant {
        person: Person::new(world, format!("tenant {number}"), number),
        number,
        project: ids::project(number),
    };
    if !tenant.person.wait_for_set_up().await {
        return;
    }
    let mut pause = PAUSE_MS;
    while tenant.person.pause(pause.clone()).await {
        let Some(tables) = tenant.person.view() else {
            continue;
        };
        if tenant.person.is_draining() {
            pause = DRAIN_PAUSE_MS;
            tenant.give_back(&tables).await;
        } else {
            tenant.act(&tables).await;
        }
    }
}

impl Tenant {
    async fn act(&mut self, tables: &Tables) {
        match self.person.random.within(0..100) {
            0..36 => self.create().await,
            36..52 => self.delete(tables).await,
            52..64 => self.change(tables).await,
            64..69 => self.hold(tables).await,
            69..73 => self.reboot(tables).await,
            73..78 => snoop::pry(self, tables).await,
            _ => leases::use_leased(self, tables).await,
        }
    }

    async fn give_back(&mut self, tables: &Tables) {
        for claim in self.claims(tables) {
            self.end(&claim).await;
        }
        leases::give_back(self, tables).await;
    }

    /// Its claims that are neither over nor about to be.
    fn claims(&self, tables: &Tables) -> Vec<Arc<Claim>> {
        let claims = query::project_claims(tables, self.project);
        let is_live =
            |claim: &&Arc<Claim>| !matches!(claim.state, ClaimState::Releasing | ClaimState::Gone);
        claims.filter(is_live).cloned().collect()
    }

    fn some_claim(&mut self, tables: &Tables) -> Option<Arc<Claim>> {
        let claims = self.claims(tables);
        self.person.random.pick(&claims).cloned()
    }

    async fn create(&mut self) {
        let name = format!("web-{}", self.person.random.within(0..NAMES));
        let wanted = CreateClaim {
            id: self.person.fresh.claim(),
            project: self.project,
            name,
            labels: Labels::new(),
            spec: wishes::spec(&mut self.person.random, self.number),
            adopt: None,
        };
        let answer = self.person.call(wanted.clone()).await;
        let made = self.own_claim(&wanted.name, answer);
        let repeats = self.person.random.chance(REPEATED_PERCENT);
        let Some(made) = made.filter(|_| repeats) else {
            return;
        };
        let again = CreateClaim {
            id: self.person.fresh.claim(),
            ..wanted
        };
        let name = again.name.clone();
        let answer = self.person.call(again).await;
        let same = self.own_claim(&name, answer);
        // One that was on its way out may be over by now, and its name free.
        let is_ending = made.state == ClaimState::Releasing;
        if same.is_some_and(|same| same.id != made.id) && !is_ending {
            self.person.complain("the same key made two claims");
        }
    }

    /// The claim of an answer, which has to be its own.
    fn own_claim(
        &self,
        name: &str,
        answer: Option<Result<Reply, StateError>>,
    ) -> Option<Arc<Claim>> {
        let claim = answer?.ok()?.claim().ok()?;
        if claim.project != self.project || claim.name != name {
            self.person
                .complain("it was shown a claim of another tenant");
        }
        Some(claim)
    }

    async fn delete(&mut self, tables: &Tables) {
        if let Some(claim) = self.some_claim(tables) {
            self.end(&claim).await;
        }
    }

    async fn end(&mut self, claim: &Claim) {
        let call = DeleteClaim {
            id: claim.id,
            project: self.project,
            epoch: None,
        };
        let answer = self.person.call(call).await;
        self.own_claim(&claim.name, answer);
    }

    async fn change(&mut self, tables: &Tables) {
        let Some(claim) = self.some_claim(tables) else {
            return;
        };
        let random = &mut self.person.random;
        let mut spec = claim.spec.clone();
        match random.within(0..6) {
            0 if spec.image.is_some() => wishes::uninstall(&mut spec),
            0 | 1 => wishes::install(&mut spec, self.number),
            2 => spec.paused = !spec.paused,
            3 => spec.powered_on = !spec.powered_on,
            4 => spec.priority = 100,
            _ => spec.selector = wishes::selector(random),
        }
        let is_strict = random.chance(30);
        let call = UpdateClaim {
            id: claim.id,
            expected: is_strict.then_some(claim.meta.generation),
            project: self.project,
            epoch: None,
            spec: Some(spec),
            labels: None,
        };
        let answer = self.person.call(call).await;
        self.own_claim(&claim.name, answer);
    }

    async fn hold(&mut self, tables: &Tables) {
        let Some(claim) = self.some_claim(tables) else {
            return;
        };
        let call = HoldClaim {
            id: claim.id,
            project: self.project,
            epoch: None,
            key: "job".to_owned(),
            is_held: claim.holds.is_empty(),
            reason: String::new(),
        };
        let answer = self.person.call(call).await;
        self.own_claim(&claim.name, answer);
    }

    async fn reboot(&mut self, tables: &Tables) {
        let Some(claim) = self.some_claim(tables) else {
            return;
        };
        let random = &mut self.person.random;
        let call = RebootClaim {
            id: claim.id,
            project: self.project,
            epoch: claim.binding.as_ref().map(|binding| binding.epoch),
            request: format!("r-{}", random.next()),
            mode: match random.chance(50) {
                true => RebootMode::Hard,
                false => RebootMode::Soft,
            },
        };
        let answer = self.person.call(call).await;
        self.own_claim(&claim.name, answer);
    }
}
