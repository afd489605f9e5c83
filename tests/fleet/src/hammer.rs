//! The installer on a simulated machine: hammer's calls, events and ledger over simulated disks.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use agents_hammer::calls::persistent;
use agents_hammer::events::Events;
use agents_hammer::orders::{Action, Ledger};
use agents_hammer::ticket::Ticket;
use agents_kit::{Agent, Credential, Key, Roots, enrol_once, run_desired};
use anyhow::{Context, Result};
use proto_mesh::{
    BlockDevice, Cpu, DiskWipe, Firmware, Install, InstallReport, MachineOrder,
    MachineOrdersRequest, MachineRegisterRequest, MachineServiceClient, Nic,
    ProjectIdentityRequest, WipeReport, nic,
};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::delays::pass;
use crate::machine::{DISKS, Machine, Stage, System};
use crate::nonce;
use crate::plan::leaf_name;
use crate::world::World;

/// For the last events before a reboot.
const FLUSH: Duration = Duration::from_secs(10);
/// Without word for so long after an installation the machine reboots by itself.
const REBOOT_WAIT: Duration = Duration::from_secs(60);

/// Lives until the machine is to reboot.
///
/// # Errors
/// What keeps the machine from going on; it reboots then, too.
pub(crate) async fn run(world: &World, machine: &Machine, ticket: Ticket) -> Result<()> {
    let agent = join(world, machine, ticket).await?;
    let events = Events::spawn(&agent);
    events.send("Preparing", "");
    let life = Life {
        world,
        machine,
        boot: Uuid::new_v4(),
        agent,
        events,
    };
    life.register().await?;
    let (sender, orders) = watch::channel(None);
    tokio::select! {
        () = life.receive(sender) => Ok(()),
        ended = life.follow(orders) => ended,
    }
}

async fn join(world: &World, machine: &Machine, mut ticket: Ticket) -> Result<Agent> {
    let (began, number) = (Instant::now(), machine.plan.number);
    let shown = world.bmc_nonce.then(|| nonce::shown(world, machine));
    ticket.claim.nonce = shown.as_ref().map(|shown| Arc::clone(&shown.reader));
    let roots = Roots::Certificates(ticket.roots.into_iter().map(Into::into).collect());
    let credential = enrol_once(&ticket.control, roots, &ticket.claim)
        .await
        .context("join")?;
    world.times.add("join", began.elapsed());
    if let Some(shown) = shown {
        let text = shown.last.lock().unwrap_or_else(PoisonError::into_inner);
        world.truth.joined(number, &text, &machine.tag.text());
    }
    let socket = world.socket(number)?;
    Ok(Agent::from_credential_on(
        credential,
        ticket.control,
        socket,
    )?)
}

struct Life<'a> {
    world: &'a World,
    machine: &'a Machine,
    boot: Uuid,
    agent: Agent,
    events: Events,
}

/// What was reported, to say it again when control asks.
#[derive(Default)]
struct Reports {
    wipe: WipeReport,
    install: Option<InstallReport>,
}

impl Life<'_> {
    fn number(&self) -> usize {
        self.machine.plan.number
    }

    async fn register(&self) -> Result<()> {
        let plan = &self.machine.plan;
        if let Some(fabric) = self.world.fabrics.get(plan.partition) {
            fabric.hear(plan);
        }
        self.events.send("Registering", "");
        let began = Instant::now();
        let client: MachineServiceClient = self.agent.client();
        let request = inventory(self.machine, self.boot);
        let answer = persistent("Register", || client.register(request.clone())).await;
        let answer = answer.context("register")?;
        anyhow::ensure!(
            !answer.size.is_empty(),
            "control found no size for the machine"
        );
        self.world.times.add("register", began.elapsed());
        self.world.truth.note(self.number(), "registered");
        Ok(())
    }

    /// Keeps the newest order at hand.
    async fn receive(&self, sender: watch::Sender<Option<MachineOrder>>) {
        let client: MachineServiceClient = self.agent.client();
        let open = || {
            let (client, boot_id) = (client.clone(), self.boot.to_string());
            async move { client.orders(MachineOrdersRequest { boot_id }).await }
        };
        let on = |order: MachineOrder, _| {
            sender.send_replace(Some(order));
            std::future::ready(())
        };
        run_desired(&self.agent, open, None, on, CancellationToken::new()).await;
    }

    /// Carries out orders, always the newest.
    async fn follow(&self, mut orders: watch::Receiver<Option<MachineOrder>>) -> Result<()> {
        let mut ledger = Ledger::default();
        let mut done = Reports::default();
        loop {
            let order = orders.borrow_and_update().clone();
            let Some(order) = order else {
                orders.changed().await.context("order stream ended")?;
                continue;
            };
            let action = ledger.decide(&order);
            if action == Action::Reboot {
                return self.reboot().await;
            }
            self.carry_out(action, &order, &mut ledger, &mut done)
                .await?;
            let is_installed = done.install.as_ref().is_some_and(|r| r.error.is_empty());
            let wait = if is_installed {
                REBOOT_WAIT
            } else {
                Duration::MAX
            };
            match timeout(wait, orders.changed()).await {
                Ok(changed) => changed.context("order stream ended")?,
                Err(_) => return self.reboot().await,
            }
        }
    }

    async fn carry_out(
        &self,
        action: Action,
        order: &MachineOrder,
        ledger: &mut Ledger,
        done: &mut Reports,
    ) -> Result<()> {
        match action {
            // The disks of this world know no tables: all of them go.
            Action::Wipe | Action::WipeMetadata => {
                self.machine.stage.send_replace(Stage::Away);
                done.wipe = self.wipe().await;
                ledger.wiped(order);
                self.report_wipe(&done.wipe).await
            }
            Action::WipeAgainReported => self.report_wipe(&done.wipe).await,
            Action::Wait => {
                self.events.send("Waiting", "");
                self.events.flush(FLUSH).await;
                if let Some(took) = self.machine.since_power() {
                    self.world.times.add("power on to ready", took);
                }
                self.machine.stage.send_replace(Stage::Ready);
                Ok(())
            }
            Action::Install(install) => {
                done.install = Some(self.install(&install).await?);
                ledger.installed(&install);
                self.report_install(done).await
            }
            Action::InstallAgainReported => self.report_install(done).await,
            Action::Hold(reason) => {
                self.machine.stage.send_replace(Stage::Held);
                self.world
                    .truth
                    .note(self.number(), format!("held: {reason}"));
                Ok(())
            }
            Action::Reboot | Action::Nothing => Ok(()),
        }
    }

    /// All disks at once, as hammer does.
    async fn wipe(&self) -> WipeReport {
        let began = Instant::now();
        pass(self.world.delays.wipe_ms).await;
        let disk = |(disk, name): (usize, &&str)| {
            let is_broken = self.machine.is_broken(disk);
            if is_broken {
                self.world
                    .truth
                    .note(self.number(), format!("disk {disk} failed"));
            } else {
                self.machine.wiped(disk);
                self.world.truth.wiped(self.number(), disk);
            }
            DiskWipe {
                name: (*name).to_owned(),
                serial: serial(self.machine, disk),
                method: "nvme-format".into(),
                error: if is_broken {
                    "medium error".into()
                } else {
                    String::new()
                },
                duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or_default(),
            }
        };
        let disks = DISKS.iter().enumerate().map(disk).collect();
        WipeReport { disks }
    }

    async fn report_wipe(&self, report: &WipeReport) -> Result<()> {
        let began = Instant::now();
        let client: MachineServiceClient = self.agent.client();
        persistent("WipeDone", || client.wipe_done(report.clone()))
            .await
            .context("wipe")?;
        self.world.times.add("wipe report", began.elapsed());
        Ok(())
    }

    async fn install(&self, install: &Install) -> Result<InstallReport> {
        self.events.send("Installing", "");
        let allocation: Uuid = install.allocation_uuid.parse().context("allocation")?;
        self.machine
            .stage
            .send_replace(Stage::Installing(allocation));
        self.world
            .truth
            .installs(self.number(), (allocation, install.attempt), self.boot);
        pass(self.world.delays.install_ms).await;
        let client: MachineServiceClient = self.agent.client();
        let key = Key::generate()?;
        let request = ProjectIdentityRequest {
            csr: key.request()?,
        };
        let answer = persistent("ProjectIdentity", || {
            client.project_identity(request.clone())
        });
        let answer = answer.await.context("identity of the installed system")?;
        self.machine.install(System {
            allocation,
            credential: Credential {
                key,
                chain: answer.chain.into_iter().map(Into::into).collect(),
                roots: answer.roots.into_iter().map(Into::into).collect(),
            },
            control: install.control.clone(),
        });
        Ok(InstallReport {
            allocation_uuid: install.allocation_uuid.clone(),
            console_password: "simulated".into(),
            primary_disk: DISKS[0].into(),
            ..InstallReport::default()
        })
    }

    async fn report_install(&self, done: &Reports) -> Result<()> {
        let Some(report) = &done.install else {
            return Ok(());
        };
        let client: MachineServiceClient = self.agent.client();
        persistent("InstallDone", || client.install_done(report.clone())).await?;
        self.world.truth.note(self.number(), "installed");
        Ok(())
    }

    async fn reboot(&self) -> Result<()> {
        self.events.send("Booting New Kernel", "");
        self.events.flush(FLUSH).await;
        self.agent.close().await;
        Ok(())
    }
}

fn serial(machine: &Machine, disk: usize) -> String {
    format!("D{}-{disk}", machine.plan.number)
}

fn inventory(machine: &Machine, boot: Uuid) -> MachineRegisterRequest {
    let plan = &machine.plan;
    let disk = |(disk, name): (usize, &&str)| BlockDevice {
        name: (*name).to_owned(),
        size: 960 << 30,
        serial: serial(machine, disk),
        model: "simulated".into(),
        ..BlockDevice::default()
    };
    let nic = |(side, cable): (usize, &crate::plan::Cable)| {
        let leaf = leaf_name(plan.partition, cable.leaf);
        Nic {
            name: format!("eth{side}"),
            mac: cable.mac.to_string(),
            identifier: cable.mac.to_string(),
            vendor: "Fleet".into(),
            model: "25G".into(),
            speed: 25_000,
            neighbours: vec![nic::Neighbour {
                chassis_id: leaf.clone(),
                port_id: cable.port.clone(),
                system_name: leaf,
            }],
            boot: side == 0,
        }
    };
    let cpu = Cpu {
        vendor: "Fleet".into(),
        model: "32 cores".into(),
        cores: 32,
        threads: 64,
    };
    MachineRegisterRequest {
        hammer_version: env!("CARGO_PKG_VERSION").into(),
        memory: 512 << 30,
        cpus: vec![cpu.clone(), cpu],
        disks: DISKS.iter().enumerate().map(disk).collect(),
        nics: plan.cables.iter().enumerate().map(nic).collect(),
        bios_vendor: "Fleet".into(),
        bios_version: "1.0".into(),
        bios_date: "01/02/2026".into(),
        firmware: Firmware::Uefi.into(),
        fru: None,
        bmc_address: String::new(),
        bmc_mac: String::new(),
        bmc_version: String::new(),
        boot_id: boot.to_string(),
        ..MachineRegisterRequest::default()
    }
}
