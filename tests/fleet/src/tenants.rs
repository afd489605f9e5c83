//! Tenants: allocate machines, wait until they run, give them back, wait until they are clean.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use control_client::Client;
use proto_public::api::v2::{
    Machine as Shown, MachineAllocationNetwork, MachineAllocationType, MachineServiceCreateRequest,
    MachineServiceDeleteRequest,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status};
use uuid::Uuid;

use crate::catalogue::{IMAGE, SIZE, Tenant};
use crate::machine::{Machine, Stage};
use crate::plan::partition_name;
use crate::world::World;

/// Tenants at work at once.
const CLIENTS: usize = 16;
/// Between two tries of a call that control did not answer, or of one for want of machines.
const AGAIN: Duration = Duration::from_millis(250);

/// What tenants did.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    pub(crate) allocated: AtomicUsize,
    pub(crate) ran: AtomicUsize,
    pub(crate) freed: AtomicUsize,
    /// Allocations that never came to run: their machine failed under them.
    pub(crate) failed: AtomicUsize,
}

/// All tenants.
#[derive(Debug, Clone)]
pub(crate) struct Tenants {
    pub(crate) world: Arc<World>,
    pub(crate) client: Client,
    pub(crate) tenant: Tenant,
    pub(crate) deeds: Arc<Deeds>,
    /// The longest that nothing may come of something.
    pub(crate) patience: Duration,
}

impl Tenants {
    /// So many allocations in all, each from its wish to the clean machine afterwards.
    ///
    /// # Errors
    /// Something did not come in time.
    pub(crate) async fn run(self, allocations: usize) -> Result<()> {
        let next = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS.min(allocations) {
            let (this, next) = (self.clone(), Arc::clone(&next));
            clients.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= allocations {
                        return anyhow::Ok(());
                    }
                    this.rent(number).await?;
                }
            });
        }
        while let Some(ended) = clients.join_next().await {
            ended??;
        }
        Ok(())
    }

    async fn rent(&self, number: usize) -> Result<()> {
        let (machine, allocation) = self.allocate(number).await?;
        let at = machine.plan.number;
        let began = Instant::now();
        let mut stage = machine.stage.subscribe();
        let runs = stage.wait_for(|stage| *stage == Stage::Running(allocation));
        if timeout(self.patience, runs).await.is_ok() {
            self.world
                .times
                .add("allocation to phoned home", began.elapsed());
            self.deeds.ran.fetch_add(1, Ordering::Relaxed);
        } else {
            self.world.truth.note(at, "never phoned home");
            self.deeds.failed.fetch_add(1, Ordering::Relaxed);
        }
        self.free(machine).await?;
        let began = Instant::now();
        let ready = stage.wait_for(|stage| *stage != Stage::Running(allocation));
        timeout(self.patience, ready).await.ok();
        let ready = stage.wait_for(|stage| matches!(stage, Stage::Ready | Stage::Installing(_)));
        if timeout(self.patience, ready).await.is_err() {
            let history = self.world.truth.history(at).join("\n  ");
            bail!(
                "machine {} did not come back clean:\n  {history}",
                machine.plan.uuid
            );
        }
        self.world.times.add("freed to ready", began.elapsed());
        self.deeds.freed.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn allocate(&self, number: usize) -> Result<(&Machine, Uuid)> {
        let key = Uuid::new_v4().to_string();
        let began = Instant::now();
        let shown = self
            .persistent("allocate", || self.ask(number, &key))
            .await?;
        self.world.times.add("allocation call", began.elapsed());
        let machine = self
            .world
            .find(&shown.uuid)
            .context("control gave an unknown machine")?;
        let allocation = shown
            .allocation
            .context("control gave a machine without allocation")?;
        let allocation: Uuid = allocation.uuid.parse().context("allocation")?;
        self.world.truth.allocated(machine.plan.number, allocation);
        self.deeds.allocated.fetch_add(1, Ordering::Relaxed);
        Ok((machine, allocation))
    }

    /// With a key, so that asking again is the same wish.
    async fn ask(&self, number: usize, key: &str) -> Result<Shown, Status> {
        let partition = number % self.tenant.networks.len();
        let network = self
            .tenant
            .networks
            .get(partition)
            .cloned()
            .unwrap_or_default();
        let message = MachineServiceCreateRequest {
            project: self.tenant.project.clone(),
            name: format!("rented-{number}"),
            partition: Some(partition_name(partition)),
            size: Some(SIZE.into()),
            image: IMAGE.into(),
            filesystem_layout: Some("default".into()),
            networks: vec![MachineAllocationNetwork {
                network,
                ips: Vec::new(),
            }],
            allocation_type: MachineAllocationType::Machine.into(),
            ..Default::default()
        };
        let mut request = Request::new(message);
        let value = MetadataValue::try_from(key).map_err(|e| Status::internal(e.to_string()))?;
        request.metadata_mut().insert("idempotency-key", value);
        let answer = self.client.machines().create(request).await?.into_inner();
        answer
            .machine
            .ok_or_else(|| Status::internal("no machine in the answer"))
    }

    async fn free(&self, machine: &Machine) -> Result<()> {
        self.world.truth.leaves(machine.plan.number);
        let request = MachineServiceDeleteRequest {
            uuid: machine.plan.uuid.to_string(),
            project: self.tenant.project.clone(),
        };
        let began = Instant::now();
        self.persistent("free", || async {
            match self.client.machines().delete(request.clone()).await {
                // Freed by a call whose answer was lost.
                Err(e) if e.code() == Code::NotFound => Ok(()),
                answer => answer.map(drop),
            }
        })
        .await?;
        self.world.times.add("free call", began.elapsed());
        Ok(())
    }

    /// Repeats what control did not answer, or could not do yet for want of machines.
    async fn persistent<T, F>(&self, what: &str, mut call: impl FnMut() -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let end = Instant::now() + self.patience;
        loop {
            let status = match call().await {
                Ok(done) => return Ok(done),
                Err(status) => status,
            };
            let may_pass = matches!(
                status.code(),
                Code::Unavailable
                    | Code::Unknown
                    | Code::Cancelled
                    | Code::DeadlineExceeded
                    | Code::Aborted
                    | Code::ResourceExhausted
                    | Code::FailedPrecondition
            );
            if !may_pass || Instant::now() > end {
                return Err(status).with_context(|| what.to_owned());
            }
            sleep(AGAIN).await;
        }
    }
}

/// Machines whose allocation control shows although no tenant has it, and the other way round.
pub(crate) fn compare(world: &World, shown: &[Shown]) {
    let by_uuid: BTreeSet<&str> = shown.iter().map(|m| m.uuid.as_str()).collect();
    for machine in &world.machines {
        let uuid = machine.plan.uuid.to_string();
        let wrong = (!by_uuid.contains(uuid.as_str())).then(|| "control lost it".to_owned());
        world.truth.settled(machine.plan.number, wrong);
    }
    for shown in shown {
        let Some(machine) = world.find(&shown.uuid) else {
            continue;
        };
        let number = machine.plan.number;
        let (theirs, ours) = (shown.allocation.is_some(), world.truth.is_taken(number));
        let wrong = (theirs != ours)
            .then(|| format!("control says allocated: {theirs}, its tenants say: {ours}"));
        world.truth.settled(number, wrong);
    }
}
