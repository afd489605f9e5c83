//! A run from the empty control to the last count.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use control_client::Client;
use proto_public::admin::v2::{MachineServiceListBmcRequest, MachineServiceListRequest};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::agents::Agents;
use crate::chaos::Chaos;
use crate::control::Control;
use crate::machine::Stage;
use crate::options::Options;
use crate::plan::Plan;
use crate::report::{Part, Report};
use crate::tenants::{self, Deeds, Tenants};
use crate::world::World;
use crate::world_start::{build, spawn};
use crate::{catalogue, drawn};

/// Interval of the lines of progress.
const PROGRESS: Duration = Duration::from_secs(5);
/// Interval of the reads of the power states from the public API.
const POWER_LOOK: Duration = Duration::from_millis(500);

/// Plays the data centre; `tell` gets a line of progress now and then.
///
/// It has to be called on the thread that lives as long as the run: the kernel ends control with
/// the thread that started it.
///
/// # Errors
/// Something did not come in time, or an invariant was violated: then with the machine's history.
pub async fn run(options: &Options, tell: impl Fn(String)) -> Result<Report> {
    agents_kit::install_crypto_provider();
    let plan = options.plan()?;
    let control = Control::start(options.metalmeshd.clone(), options.otlp.as_deref()).await?;
    let admin = control.admin()?;
    let tenant = catalogue::set_up(&admin, plan, options.bmc_nonce).await?;
    let (world, listener) = build(options, plan).await?;
    let stop = world.stop.clone().drop_guard();
    let mut tasks = JoinSet::new();
    spawn(&mut tasks, &world, listener);
    let mut agents = Agents::start(&world, &admin, &control.place("agents"), plan).await?;
    let patience = Duration::from_secs(options.patience_s);
    let up = timeout(patience, agents.all_up()).await;
    up.context("not all agents came up in time")?;
    tell(format!("{} agents are up", agents.len()));

    let tenants = Tenants {
        world: Arc::clone(&world),
        client: control.client(&tenant.token)?,
        tenant,
        deeds: Arc::new(Deeds::default()),
        patience,
    };
    let control = Mutex::new(control);
    let seed = options.seed.unwrap_or_else(rand::random);
    if options.chaos {
        tell(format!("chaos with --seed {seed}"));
    }
    let every = options
        .chaos
        .then_some(Duration::from_millis(options.chaos_every_ms.max(1)));
    let run = Run {
        options,
        plan,
        patience,
        world: &world,
        control: &control,
        admin: &admin,
        tell: &tell,
    };
    let mut chaos = Chaos::new(&world, &mut agents, (&control, &admin), (seed, every));
    let deeds = Arc::clone(&tenants.deeds);
    let parts = run.all(tenants, &mut chaos).await;
    let parts = parts.with_context(|| match options.chaos {
        true => format!("with --chaos --seed {seed}"),
        false => "without chaos".to_owned(),
    })?;
    let faults = options
        .chaos
        .then(|| (seed, std::mem::take(&mut chaos.counts)));
    let report = run.report(parts, &deeds, faults).await?;
    drop(stop);
    if options.otlp.is_some() {
        // All send what they have not sent yet.
        let ended = timeout(patience, agents.all_ended()).await;
        ended.context("not all agents ended in time")?;
        control.lock().await.end().await?;
    }
    Ok(report)
}

/// Machines are delivered and switched on, until control has all of them on offer.
async fn ingest(world: &World, rate: u64, patience: Duration) -> Result<()> {
    let mut due = interval(Duration::from_micros(1_000_000 / rate.max(1)));
    due.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for machine in &world.machines {
        if rate > 0 {
            due.tick().await;
        }
        machine.switch(true);
    }
    for machine in &world.machines {
        let mut stage = machine.stage.subscribe();
        let ready = stage.wait_for(|stage| *stage == Stage::Ready);
        if timeout(patience, ready).await.is_err() {
            let history = world.truth.history(machine.plan.number).join("\n  ");
            bail!(
                "machine {} is not ready in time:\n  {history}",
                machine.plan.uuid
            );
        }
    }
    Ok(())
}

struct Run<'a, T> {
    options: &'a Options,
    plan: Plan,
    patience: Duration,
    world: &'a World,
    control: &'a Mutex<Control>,
    admin: &'a Client,
    tell: &'a T,
}

impl<T: Fn(String)> Run<'_, T> {
    /// Ingest, tenancies, and the rest afterwards.
    async fn all(&self, tenants: Tenants, chaos: &mut Chaos<'_>) -> Result<[Part; 3]> {
        let allocations = self.plan.machines * self.options.tenants_percent / 100;
        let ingest = ingest(self.world, self.options.rate, self.patience);
        let ingest = self.part(ingest, chaos.stir()).await?;
        let idle = self.options.idle_s;
        let idle = if idle > 0 {
            let look = async {
                sleep(Duration::from_secs(idle)).await;
                Ok(())
            };
            self.part(look, pending()).await?
        } else {
            Part::default()
        };
        let tenancies = self.part(tenants.run(allocations), chaos.stir()).await?;
        self.part(self.settle(), chaos.calm()).await?;
        Ok([ingest, idle, tenancies])
    }

    /// Does one part of the run while `beside` goes on, watches over it, and measures it.
    async fn part(
        &self,
        work: impl Future<Output = Result<()>>,
        beside: impl Future<Output = Result<()>>,
    ) -> Result<Part> {
        let (began, before) = (Instant::now(), self.control.lock().await.usage()?);
        let mut progress = interval(PROGRESS);
        progress.tick().await;
        tokio::pin!(work);
        tokio::pin!(beside);
        loop {
            tokio::select! {
                ended = &mut work => break ended?,
                () = self.world.truth.violated.cancelled() => return Err(self.violation()),
                ended = &mut beside => ended?,
                line = async {
                    progress.tick().await;
                    self.line(began).await
                } => (self.tell)(line?),
            }
        }
        Ok(Part {
            took_s: began.elapsed().as_secs_f64(),
            cpu_s: self.control.lock().await.usage()?.cpu_s - before.cpu_s,
        })
    }

    async fn line(&self, began: Instant) -> Result<String> {
        let count = |of: fn(&Stage) -> bool| {
            self.world
                .machines
                .iter()
                .filter(|m| of(&m.stage.borrow()))
                .count()
        };
        let mut control = self.control.lock().await;
        control.check()?;
        let usage = control.usage()?;
        Ok(format!(
            "{:5.0} s: {} ready, {} installing, {} running, {} held, {} on their way; control \
             {:.1} s CPU, {:.0} MiB",
            began.elapsed().as_secs_f64(),
            count(|stage| *stage == Stage::Ready),
            count(|stage| matches!(stage, Stage::Installing(_))),
            count(|stage| matches!(stage, Stage::Running(_))),
            count(|stage| *stage == Stage::Held),
            count(|stage| *stage == Stage::Away),
            usage.cpu_s,
            usage.rss_mib
        ))
    }

    fn violation(&self) -> anyhow::Error {
        match self.world.truth.violation() {
            Some(violation) => anyhow::anyhow!(
                "INVARIANT VIOLATED on machine {}: {}\n  {}",
                violation.machine,
                violation.what,
                violation.history.join("\n  ")
            ),
            None => anyhow::anyhow!("an invariant was violated"),
        }
    }

    /// Everything comes to rest, and is counted.
    async fn settle(&self) -> Result<()> {
        for machine in &self.world.machines {
            let mut stage = machine.stage.subscribe();
            let rest = stage.wait_for(|stage| matches!(stage, Stage::Ready | Stage::Running(_)));
            if timeout(self.patience, rest).await.is_err() {
                let history = self.world.truth.history(machine.plan.number).join("\n  ");
                bail!(
                    "machine {} does not come to rest:\n  {history}",
                    machine.plan.uuid
                );
            }
        }
        let request = MachineServiceListRequest { query: None };
        let answer = self
            .admin
            .admin_machines()
            .list(request)
            .await?
            .into_inner();
        ensure!(
            answer.machines.len() == self.plan.machines,
            "control knows {} machines of {}",
            answer.machines.len(),
            self.plan.machines
        );
        tenants::compare(self.world, &answer.machines);
        // After faults a BMC may be unread until its agent's next round.
        if !self.options.chaos {
            self.compare_power().await?;
        }
        if self.world.truth.violated.is_cancelled() {
            return Err(self.violation());
        }
        Ok(())
    }

    /// Waits until the public API shows what each BMC tells of power.
    async fn compare_power(&self) -> Result<()> {
        let end = Instant::now() + self.patience;
        loop {
            let request = MachineServiceListBmcRequest::default();
            let answer = self.admin.admin_machines().list_bmc(request).await?;
            let Some(difference) = drawn::difference(self.world, &answer.into_inner().bmc_details)
            else {
                self.world.truth.power_is_shown();
                return Ok(());
            };
            ensure!(
                Instant::now() < end,
                "power is not shown in time: {difference}"
            );
            sleep(POWER_LOOK).await;
        }
    }

    async fn report(
        &self,
        [ingest, idle, tenancies]: [Part; 3],
        deeds: &Deeds,
        faults: Option<(u64, BTreeMap<&'static str, u64>)>,
    ) -> Result<Report> {
        let of = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        Ok(Report {
            machines: self.plan.machines,
            partitions: self.plan.partitions,
            leaves: (0..self.plan.partitions)
                .map(|p| self.plan.leaves_of(p))
                .sum(),
            delays: self.options.delays,
            ingest,
            idle,
            tenancies,
            deeds: [
                of(&deeds.allocated),
                of(&deeds.ran),
                of(&deeds.freed),
                of(&deeds.failed),
            ],
            faults,
            steps: self.world.times.spreads(),
            control: self.control.lock().await.usage()?,
            checks: self.world.truth.checks(),
        })
    }
}
