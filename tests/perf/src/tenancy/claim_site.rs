//! A pool with very many hosts, as the pure state machine has it: no log, no disk, no network.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use control_state::{
    Budgets, ClaimSelector, ClaimSpec, Command, CreateClaim, CreateImage, CreatePartition,
    CreateSize, DeleteClaim, DeployPolicy, EventKind, Labels, MachineEvent, MachineSeen, Meta,
    MetadataRules, Op, Partition, RevokeRule, SetPool, SetPoolHost, SetSettings, Tables,
    UNKNOWN_MACHINES_MAX, WipeDone, WipeLevel, apply, label, query,
};
use proto_types::{ClaimId, Timestamp};
use tests_support::announcement;
use tests_support::objects::{
    IMAGE, PARTITION, child, id, image, network, partition, project, registration, size, tenant,
    text, wiped,
};

/// Network of the project that installs images.
pub(super) const NETWORK: &str = "private";
/// Value of the label of the one host that many projects wait for.
pub(super) const RARE: &str = "rare";
/// Most projects of the tenant, more than wait for the rare host.
const PROJECTS_MAX: u32 = 2_000;
const TENANT: &str = "acme";
const POOL: &str = "shared";
/// Kinds of the other hosts.
const KINDS: u128 = 4;

/// The tables.
pub(super) struct ClaimSite {
    tables: Tables,
    now: Timestamp,
    /// Claims that were created: the number of the last one.
    claims: u128,
}

/// A claim of a project, by the project's number.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldClaim {
    id: ClaimId,
    pub(super) project: u128,
}

/// An intent that asks for a label of hosts, without an image.
pub(super) fn asking(kind: &str) -> ClaimSpec {
    ClaimSpec {
        selector: ClaimSelector {
            labels: kind_of(kind),
            terms: Vec::new(),
        },
        powered_on: true,
        ..ClaimSpec::default()
    }
}

fn kind_of(kind: &str) -> Labels {
    [("kind".to_owned(), kind.to_owned())].into()
}

impl ClaimSite {
    /// Projects 1 and 2, and a pool that admits everybody. The last host is the rare one; the
    /// others are of four kinds.
    pub(super) fn new(hosts: u32) -> Result<Self> {
        let mut site = Self {
            tables: Tables::new(),
            now: Timestamp::from_ms(1_000_000_000),
            claims: 0,
        };
        site.run(announcement(1))?;
        site.run(SetSettings {
            audit: None,
            budgets: Some(Budgets {
                projects_per_tenant: PROJECTS_MAX,
                ..Budgets::default()
            }),
        })?;
        site.run(tenant(TENANT, Some(TENANT)))?;
        for number in [1, 2] {
            site.add_project(number)?;
        }
        site.catalogue()?;
        site.run(pool())?;
        let hosts = u128::from(hosts);
        for number in 1..=hosts {
            let kind = match number == hosts {
                true => RARE.to_owned(),
                false => (number % KINDS).to_string(),
            };
            site.add_host(number, &kind)?;
        }
        Ok(site)
    }

    /// Applies a command, which must be accepted; the time that it took.
    fn run(&mut self, op: impl Into<Op>) -> Result<Duration> {
        let op = op.into();
        let name = op.name();
        let command = Command::new(self.now, "bench", op);
        let began = Instant::now();
        let outcome = apply(&mut self.tables, &command);
        let took = began.elapsed();
        outcome.result.with_context(|| name.to_owned())?;
        Ok(took)
    }

    pub(super) fn add_project(&mut self, number: u128) -> Result<()> {
        self.run(project(number, TENANT)).map(drop)
    }

    /// A partition without switches, so that no cables are needed, and what an installation takes.
    fn catalogue(&mut self) -> Result<()> {
        let unbounded = (
            label::UNKNOWN_MACHINES.to_owned(),
            UNKNOWN_MACHINES_MAX.to_string(),
        );
        self.run(CreatePartition(Partition {
            meta: Meta::labelled([unbounded].into()),
            ..partition(PARTITION)
        }))?;
        self.run(CreateSize(size()))?;
        self.run(CreateImage(image(IMAGE)))?;
        self.run(network("super"))?;
        self.run(child(NETWORK, 1)).map(drop)
    }

    /// A machine on its way until it is a free host.
    fn add_host(&mut self, number: u128, kind: &str) -> Result<()> {
        let seen_at = self.now;
        self.run(MachineSeen {
            id: id(number),
            partition: text(PARTITION),
            mac: None,
            seen_at,
            to_disk: false,
            stated_at: None,
            relayed: None,
        })?;
        let mut machine = registration(1, "boot-1");
        machine.id = id(number);
        machine.hardware.nics.clear();
        self.run(machine)?;
        self.run(WipeDone {
            id: id(number),
            disks: vec![wiped("/dev/vda", None)],
        })?;
        self.run(MachineEvent {
            id: id(number),
            kind: EventKind::Waiting,
            message: String::new(),
            time: seen_at,
        })?;
        let mut labels = kind_of(kind);
        labels.insert("disk".to_owned(), "ssd".to_owned());
        self.run(SetPoolHost {
            machine: id(number),
            expected: None,
            pool: text(POOL),
            labels,
            annotations: Labels::new(),
            taints: [].into(),
            domain: String::new(),
            only: Vec::new(),
            cordon: None,
        })?;
        Ok(())
    }

    /// Creates a claim of a project; the claim, and the time that the command took.
    pub(super) fn claim(
        &mut self,
        project: u128,
        spec: &ClaimSpec,
    ) -> Result<(HeldClaim, Duration)> {
        self.claims += 1;
        let number = self.claims;
        let claim = HeldClaim {
            id: id(number),
            project,
        };
        let took = self.run(CreateClaim {
            id: claim.id,
            project: id(project),
            name: format!("claim-{number}"),
            labels: Labels::new(),
            spec: spec.clone(),
            adopt: None,
        })?;
        Ok((claim, took))
    }

    /// Deletes a claim; the time that the command took.
    pub(super) fn release(&mut self, claim: HeldClaim) -> Result<Duration> {
        self.run(DeleteClaim {
            id: claim.id,
            project: id(claim.project),
            epoch: None,
        })
    }

    /// `true` if the claim has a host.
    pub(super) fn is_bound(&self, claim: HeldClaim) -> bool {
        query::host_of_claim(&self.tables, claim.id).is_some()
    }

    /// `true` if the machine of the claim's host is allocated, to be installed.
    pub(super) fn is_allocated(&self, claim: HeldClaim) -> bool {
        let machine = query::machine_of_claim(&self.tables, claim.id);
        machine.is_some_and(|machine| machine.allocation.is_some())
    }
}

/// The pool, which admits every project and publishes every label.
fn pool() -> SetPool {
    let everybody = DeployPolicy {
        name: "all".into(),
        allow_all: true,
        ..DeployPolicy::default()
    };
    SetPool {
        id: text(POOL),
        expected: None,
        labels: Labels::new(),
        description: String::new(),
        policies: vec![everybody],
        published: ["*".to_owned()].into(),
        floor: WipeLevel::Erase,
        reuse_max_ms: 0,
        reuse_floor: None,
        metadata: MetadataRules::default(),
        on_revoke: RevokeRule::Keep,
    }
}
