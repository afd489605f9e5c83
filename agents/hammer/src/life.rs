//! The machine's run in the initramfs: network, identity, inventory, then orders until a reboot.

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
use crate::install::{self, InstallTools, Installed, StepError};
use crate::inventory::{self, Sys};
use crate::lldp::Lldp;
use crate::log::Tail;
use crate::net::http::Http;
use crate::net::{self, Network, clock, links};
use crate::orders::{Action, BindingFence, Ledger};
use crate::{ticket, wipe};

/// Longest wait for queued events to reach control before a reboot. Events that are still queued
/// then are lost.
const FLUSH_LIMIT: Duration = Duration::from_secs(10);
/// Longest wait for control's reboot order after a successful installation. Control gives the
/// order once the BMC's boot order is set; after this time hammer reboots on its own.
const REBOOT_WAIT_LIMIT: Duration = Duration::from_secs(60);

/// The outcome of a run that ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Control ordered a reboot, or the wait for that order ran out.
    Reboot,
}

/// Joins, registers and carries out orders until control orders a reboot.
///
/// # Errors
/// When the machine cannot join or register, or control finally refuses a report. The caller
/// reboots the machine then.
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
    // Before the join: switches send a frame every 30 s, so that listening while the ticket and
    // the certificate are fetched saves most of that time at registration.
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
    // After an error process 1 reboots, which ends this identity and empties the event queue: the
    // reason must reach control now or is lost.
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
    // Before the first TLS handshake: an empty battery starts the clock years off, and then every
    // certificate of control is expired or not yet valid. Pixie's time comes first because it is
    // always there; NTP refines it where DHCP names a server.
    if ticket.time_ms > 0 && clock::set(ticket.time_ms).context("clock")? {
        tracing::info!("clock set from pixie");
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
    // `enrol_once` and `from_credential` keep key and certificate in memory only: a copy on a disk
    // would outlive this boot, and the disks belong to tenants.
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
        // The request claims the machine's switch ports, so it waits for the switches' frames,
        // within the limit.
        lldp.wait(lldp_wait).await;
        let request = inventory::collect(&self.sys, &network.link.name, &lldp.neighbours(), &bmc);
        for nic in &request.nics {
            for n in &nic.neighbours {
                tracing::info!(
                    nic = nic.name,
                    switch = n.system_name,
                    port = n.port_id,
                    "LLDP neighbour"
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

    /// Carries out orders, always the newest; a reboot order interrupts the running one.
    async fn follow_orders(&self) -> Result<End> {
        let (sender, mut orders) = watch::channel(None);
        let mut task = JoinSet::new();
        task.spawn(receive(self.agent.clone(), self.sys.boot_id(), sender));
        let mut ledger = Ledger::default();
        let mut done = Reports::default();
        loop {
            // The watch channel holds the newest order only. That is enough because orders are
            // level-triggered: each carries the whole desired state, an older one is obsolete.
            let order: Option<MachineOrder> = orders.borrow_and_update().clone();
            let Some(order) = order else {
                orders.changed().await.context("order stream ended")?;
                continue;
            };
            let action = ledger.decide(&order);
            let is_reboot = matches!(action, Action::Reboot);
            // A clone has its own "seen" mark: the main receiver still reports a change that
            // arrives during the work, so that no order is lost.
            let mut watcher = orders.clone();
            tokio::select! {
                result = self.carry_out(action, &order, &mut ledger, &mut done) => result?,
                // Only a reboot interrupts. Dropping a wipe or an installation half-way is safe
                // then, since the next boot starts with control's order again.
                () = reboot_ordered(&mut watcher) => {
                    tracing::warn!("reboot ordered while another order was running");
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
                // An installed machine is the tenant's: it must come up even if control is gone.
                Err(_) => {
                    tracing::warn!("no reboot order after the installation; rebooting anyway");
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
                // Noted before the report: the report waits for control as long as it takes, and
                // control may repeat the order meanwhile. That must repeat the report, not the
                // wipe.
                ledger.wiped(order);
                self.report_wipe(&done.wipe).await
            }
            Action::WipeMetadata => {
                tracing::info!("order: remove partition tables and signatures");
                done.wipe = WipeReport {
                    disks: wipe::run_metadata(&self.sys).await,
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
                let cx = InstallTools {
                    sys: &self.sys,
                    http: &self.http,
                    agent: &self.agent,
                    mac: &self.mac,
                    inherited: &self.inherited,
                };
                let result = install::run(&cx, &install).await;
                // Failed attempts are noted too: another try is control's decision, and comes as
                // an order with a higher attempt number.
                done.install = Some(self.install_report(&install.allocation_uuid, result));
                ledger.installed(&install);
                self.report_install(done).await
            }
            Action::InstallAgainReported => self.report_install(done).await,
            Action::Hold(reason) => {
                tracing::warn!(reason, "order: hold");
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
                tracing::info!("installation succeeded");
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
        // Last, so that the tail holds the line about success or failure from above.
        report.log_tail = self.tail.text();
        report
    }

    async fn reboot(&self) -> End {
        self.events.send("Booting New Kernel", "");
        self.events.flush(FLUSH_LIMIT).await;
        // A closed session tells control at once that hammer left; a lost one is noticed only when
        // the link's idle timeout ends.
        self.agent.close().await;
        End::Reboot
    }
}

/// The reports of this boot, kept to repeat them when control repeats an order.
#[derive(Default)]
struct Reports {
    wipe: WipeReport,
    install: Option<InstallReport>,
}

impl Reports {
    /// `true` if the last installation of this boot succeeded.
    fn is_installed(&self) -> bool {
        self.install.as_ref().is_some_and(|r| r.error.is_empty())
    }
}

/// Follows the order stream over reconnects and publishes the newest order in `sender`.
async fn receive(agent: Agent, boot_id: String, sender: watch::Sender<Option<MachineOrder>>) {
    let client: MachineServiceClient = agent.client();
    let open = || {
        let (client, boot_id) = (client.clone(), boot_id.clone());
        async move { client.orders(MachineOrdersRequest { boot_id }).await }
    };
    let mut fence = BindingFence::default();
    let on = |order: MachineOrder, _| {
        if fence.admits(&order) {
            sender.send_replace(Some(order));
        } else {
            let epoch = order.epoch;
            tracing::warn!(epoch, "order of an earlier binding of the machine dropped");
        }
        std::future::ready(())
    };
    agents_kit::run_desired(&agent, open, None, on, CancellationToken::new()).await;
}

/// Returns when a newer order than the current one is a reboot.
async fn reboot_ordered(orders: &mut watch::Receiver<Option<MachineOrder>>) {
    use proto_mesh::machine_order::Order;
    loop {
        if orders.changed().await.is_err() {
            // The stream task is gone. That must not cancel the running order; the main loop
            // reports the error after it.
            return std::future::pending().await;
        }
        let is_reboot = |o: &MachineOrder| matches!(o.order, Some(Order::Reboot(_)));
        if orders.borrow_and_update().as_ref().is_some_and(is_reboot) {
            return;
        }
    }
}
