//! A machine's life in the initramfs: network, identity, inventory, then orders until it reboots.

use std::time::Duration;

use agents_kit::{Agent, Roots, enrol_once};
use anyhow::{Context, Result, ensure};
use proto_mesh::{
    InstallReport, MachineOrder, MachineOrdersRequest, MachineServiceClient, WipeReport,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::calls::persistent;
use crate::cmdline::Cmdline;
use crate::events::Events;
use crate::install::{self, Installed, StepError, Tools};
use crate::inventory::{self, Sys};
use crate::lldp::Lldp;
use crate::log::Tail;
use crate::net::http::Http;
use crate::net::{self, Network, clock, links};
use crate::orders::{Action, Ledger};
use crate::{ticket, wipe};

/// For the last events before a reboot.
const FLUSH_LIMIT: Duration = Duration::from_secs(10);
/// Control orders the reboot when the BMC's boot order is set; without word for so long after a
/// good installation the machine goes by itself.
const REBOOT_WAIT_LIMIT: Duration = Duration::from_secs(60);

/// What the process does when life ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Reboot,
}

/// Lives until control orders a reboot.
///
/// # Errors
/// What keeps the machine from joining; whoever called reboots then.
pub async fn run(cmdline: &Cmdline, tail: &Tail) -> Result<End> {
    agents_kit::install_crypto_provider();
    let sys = Sys::default();
    let uuid = sys.uuid();
    ensure!(
        !uuid.is_empty(),
        "the firmware gives no UUID (SMBIOS type 1)"
    );
    let pixie = cmdline
        .pixie
        .as_deref()
        .context("no metalmesh.pixie=… on the kernel command line")?;

    let network = net::bring_up(cmdline).await.context("network")?;
    let (nic, address) = (&network.link.name, network.address);
    tracing::info!(nic, %address, "network up");
    let mut background = JoinSet::new();
    if let Some(lease) = network.lease.clone() {
        background.spawn(net::run_renewal(network.link.clone(), lease));
    }
    let lldp = Lldp::spawn(&links::list(), &uuid);

    let http = Http::new(network.resolver.clone());
    let agent = join(&http, &network, pixie, &sys).await?;
    let events = Events::spawn(&agent);
    events.send("Preparing", "");
    let life = Life {
        sys,
        http,
        agent,
        events,
        tail: tail.clone(),
        mac: network.link.mac.to_string(),
        inherited: cmdline.inherited.clone(),
    };
    let end = async {
        life.register(&network, &lldp, cmdline.lldp_wait).await?;
        life.follow_orders().await
    };
    let end = end.await;
    if let Err(error) = &end {
        life.events.send("Crashed", format!("{error:#}"));
        life.events.flush(FLUSH_LIMIT).await;
    }
    end
}

async fn join(http: &Http, network: &Network, pixie: &str, sys: &Sys) -> Result<Agent> {
    let mac = network.link.mac.to_string();
    let mut ticket = ticket::ask(http, pixie, &sys.uuid(), &mac)
        .await
        .context("ticket")?;
    ticket.claim.nonce = Some(inventory::nonce_reader(sys));
    if ticket.time_ms > 0 && clock::set(ticket.time_ms).context("clock")? {
        tracing::info!("clock set");
    }
    clock::sync(&network.ntp).await;
    let mut control = Vec::new();
    for endpoint in &ticket.control {
        control.push(
            network
                .resolver
                .resolve_endpoint(endpoint)
                .await?
                .to_string(),
        );
    }
    let roots = Roots::Certificates(ticket.roots.into_iter().map(Into::into).collect());
    let credential = enrol_once(&control, roots, &ticket.claim)
        .await
        .context("join")?;
    let agent = Agent::from_credential(credential, control).context("session")?;
    tracing::info!(identity = %agent.identity().spiffe, "joined");
    Ok(agent)
}

struct Life {
    sys: Sys,
    http: Http,
    agent: Agent,
    events: Events,
    tail: Tail,
    mac: String,
    inherited: Vec<String>,
}

impl Life {
    async fn register(&self, network: &Network, lldp: &Lldp, lldp_wait: Duration) -> Result<()> {
        let bmc = inventory::bmc(&self.sys).await;
        lldp.wait(lldp_wait).await;
        let request = inventory::collect(&self.sys, &network.link.name, &lldp.neighbours(), &bmc);
        for nic in &request.nics {
            for n in &nic.neighbours {
                tracing::info!(
                    nic = nic.name,
                    switch = n.system_name,
                    port = n.port_id,
                    "neighbour"
                );
            }
        }
        self.events.send("Registering", "");
        let client: MachineServiceClient = self.agent.client();
        let answer = persistent("Register", || client.register(request.clone()))
            .await
            .context("register")?;
        tracing::info!(
            size = answer.size,
            partition = answer.partition,
            "registered"
        );
        Ok(())
    }

    /// Carries out orders, always the newest; an order to reboot interrupts what runs.
    async fn follow_orders(&self) -> Result<End> {
        let (sender, mut orders) = watch::channel(None);
        let mut task = JoinSet::new();
        task.spawn(receive(self.agent.clone(), self.sys.boot_id(), sender));
        let mut ledger = Ledger::default();
        let mut done = Reports::default();
        loop {
            let order: Option<MachineOrder> = orders.borrow_and_update().clone();
            let Some(order) = order else {
                orders.changed().await.context("order stream ended")?;
                continue;
            };
            let action = ledger.decide(&order);
            let is_reboot = matches!(action, Action::Reboot);
            let mut watcher = orders.clone();
            tokio::select! {
                result = self.carry_out(action, &order, &mut ledger, &mut done) => result?,
                () = reboot_ordered(&mut watcher) => {
                    tracing::warn!("reboot ordered while working");
                    return Ok(self.reboot().await);
                }
            }
            if is_reboot {
                return Ok(self.reboot().await);
            }
            let limit = if done.is_installed() {
                REBOOT_WAIT_LIMIT
            } else {
                Duration::MAX
            };
            match tokio::time::timeout(limit, orders.changed()).await {
                Ok(changed) => changed.context("order stream ended")?,
                Err(_) => {
                    tracing::warn!("no reboot order; going by myself");
                    return Ok(self.reboot().await);
                }
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
            Action::Wipe => {
                tracing::info!("order: wipe");
                done.wipe = WipeReport {
                    disks: wipe::run(self.sys.disks()).await,
                };
                ledger.wiped(order);
                self.report_wipe(&done.wipe).await
            }
            Action::WipeAgainReported => self.report_wipe(&done.wipe).await,
            Action::Wait => {
                self.events.send("Waiting", "");
                Ok(())
            }
            Action::Install(install) => {
                tracing::info!(
                    host = install.hostname,
                    attempt = install.attempt,
                    "order: install"
                );
                self.events.send("Installing", "");
                let cx = Tools {
                    sys: &self.sys,
                    http: &self.http,
                    agent: &self.agent,
                    mac: &self.mac,
                    inherited: &self.inherited,
                };
                let result = install::run(&cx, &install).await;
                done.install = Some(self.install_report(&install.allocation_uuid, result));
                ledger.installed(&install);
                self.report_install(done).await
            }
            Action::InstallAgainReported => self.report_install(done).await,
            Action::Hold(reason) => {
                tracing::warn!(reason, "held");
                Ok(())
            }
            Action::Reboot | Action::Nothing => Ok(()),
        }
    }

    async fn report_wipe(&self, report: &WipeReport) -> Result<()> {
        let client: MachineServiceClient = self.agent.client();
        persistent("WipeDone", || client.wipe_done(report.clone()))
            .await
            .context("report wipe")?;
        Ok(())
    }

    async fn report_install(&self, done: &Reports) -> Result<()> {
        let Some(report) = &done.install else {
            return Ok(());
        };
        let client: MachineServiceClient = self.agent.client();
        persistent("InstallDone", || client.install_done(report.clone()))
            .await
            .context("report installation")?;
        Ok(())
    }

    fn install_report(&self, uuid: &str, result: Result<Installed, StepError>) -> InstallReport {
        let mut report = InstallReport {
            allocation_uuid: uuid.to_string(),
            ..InstallReport::default()
        };
        match result {
            Ok(done) => {
                tracing::info!("installed");
                report.console_password = done.console_password;
                report.primary_disk = done.primary_disk;
            }
            Err(failure) => {
                report.error = format!("{:#}", failure.error);
                report.step = failure.step.to_string();
                report.retryable = failure.retryable;
                let (step, error) = (failure.step, &report.error);
                tracing::error!(step, error, "installation failed");
            }
        }
        report.log_tail = self.tail.text();
        report
    }

    async fn reboot(&self) -> End {
        self.events.send("Booting New Kernel", "");
        self.events.flush(FLUSH_LIMIT).await;
        self.agent.close().await;
        End::Reboot
    }
}

/// What was reported, to say it again when control asks.
#[derive(Default)]
struct Reports {
    wipe: WipeReport,
    install: Option<InstallReport>,
}

impl Reports {
    fn is_installed(&self) -> bool {
        self.install.as_ref().is_some_and(|r| r.error.is_empty())
    }
}

/// Keeps the newest order at hand.
async fn receive(agent: Agent, boot_id: String, sender: watch::Sender<Option<MachineOrder>>) {
    let client: MachineServiceClient = agent.client();
    let open = || {
        let (client, boot_id) = (client.clone(), boot_id.clone());
        async move { client.orders(MachineOrdersRequest { boot_id }).await }
    };
    let on = |order: MachineOrder, _| {
        sender.send_replace(Some(order));
        std::future::ready(())
    };
    agents_kit::run_desired(&agent, open, None, on, CancellationToken::new()).await;
}

/// Ends when a newer order is to reboot.
async fn reboot_ordered(orders: &mut watch::Receiver<Option<MachineOrder>>) {
    use proto_mesh::machine_order::Order;
    loop {
        if orders.changed().await.is_err() {
            return std::future::pending().await;
        }
        let is_reboot = |o: &MachineOrder| matches!(o.order, Some(Order::Reboot(_)));
        if orders.borrow_and_update().as_ref().is_some_and(is_reboot) {
            return;
        }
    }
}
