//! The words of a machine to control: the installer's calls, and those of the installed system.

use std::collections::BTreeSet;

use agents_kit::state_dir::StoredSession;
use agents_kit::{Agent, BootClaim, Credential, Key, Roots, enrol_once, run_desired};
use proto_mesh::machine_order::Order;
use proto_mesh::*;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use super::control::ADDRESS;
use super::machine::Hardware;
use super::wait::{PATIENCE, found};

/// The installer on a machine that is on offer.
pub(crate) struct Installer {
    /// Stopped before the agent goes.
    _stop: DropGuard,
    _tasks: JoinSet<()>,
    agent: Agent,
    orders: watch::Receiver<Option<MachineOrder>>,
}

/// An installed system: its network as control ordered it.
pub(crate) struct Installed {
    pub(crate) address: String,
    pub(crate) vni: u32,
    pub(crate) asn: u32,
    /// VNIs of all of its networks.
    pub(crate) vnis: BTreeSet<u32>,
    /// Address in the underlay, of a firewall.
    pub(crate) underlay: Option<String>,
    /// The order of its installation.
    pub(crate) order: Install,
    /// The identity of the system, as the installer writes it to the disk.
    pub(crate) session: StoredSession,
    agent: Agent,
}

impl Installer {
    /// Boots the installer, and goes on until control tells it to wait.
    pub(crate) async fn boot(pixie: &BootServiceClient, hardware: &Hardware) -> Self {
        let (uuid, mac) = (hardware.uuid.clone(), hardware.macs[0].clone());
        let seen = BootSeenRequest {
            machine_uuid: uuid.clone(),
            mac: mac.clone(),
            arch: 7,
            ..BootSeenRequest::default()
        };
        let wanted = BootTicketRequest {
            machine_uuid: uuid.clone(),
            mac: mac.clone(),
        };
        let ticket = found(async || {
            pixie.seen(seen.clone()).await.ok()?;
            pixie.issue_ticket(wanted.clone()).await.ok()
        });
        let ticket = ticket.await.unwrap();
        let claim = BootClaim {
            ticket_id: ticket.ticket_id,
            secret: ticket.secret,
            machine_uuid: uuid,
            mac,
            nonce: None,
        };
        let control = [ADDRESS.to_owned()];
        let roots = Roots::Certificates(ticket.roots.into_iter().map(Into::into).collect());
        let credential = enrol_once(&control, roots, &claim).await.unwrap();
        let agent = Agent::from_credential(credential, control.to_vec()).unwrap();
        let boot = Uuid::new_v4().to_string();
        let (sender, orders) = watch::channel(None);
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(receive(agent.clone(), boot.clone(), sender, stop.clone()));
        let mut installer = Self {
            _stop: stop.drop_guard(),
            _tasks: tasks,
            agent,
            orders,
        };
        installer.register(hardware, boot).await;
        installer
    }

    async fn register(&mut self, hardware: &Hardware, boot: String) {
        let client: MachineServiceClient = self.agent.client();
        self.say("Preparing").await;
        self.say("Registering").await;
        let request = hardware.registration(boot);
        persistent(async || client.register(request.clone()).await).await;
        let order = self.order(|order| matches!(order, Order::Wipe(_) | Order::Wait(_)));
        if matches!(order.await, Order::Wipe(_)) {
            let disk = DiskWipe {
                name: "/dev/vda".into(),
                serial: hardware.uuid.clone(),
                method: "nvme-format".into(),
                ..DiskWipe::default()
            };
            let report = WipeReport { disks: vec![disk] };
            persistent(async || client.wipe_done(report.clone()).await).await;
            self.order(|order| matches!(order, Order::Wait(_))).await;
        }
        self.say("Waiting").await;
    }

    async fn say(&self, event: &str) {
        let client: MachineServiceClient = self.agent.client();
        let event = MachineEvent {
            event: event.into(),
            message: String::new(),
            time_ms: 0,
        };
        persistent(async || client.event(event.clone()).await).await;
    }

    /// Waits for an order.
    async fn order(&mut self, is_it: impl Fn(&Order) -> bool) -> Order {
        let wanted = self.orders.wait_for(|order| {
            let order = order.as_ref().and_then(|order| order.order.as_ref());
            order.is_some_and(&is_it)
        });
        let order = tokio::time::timeout(PATIENCE, wanted).await;
        let order = order.unwrap().unwrap().clone();
        order.unwrap().order.unwrap()
    }

    /// Waits for the allocation, and installs at once.
    pub(crate) async fn install(mut self) -> Installed {
        let order = self.order(|order| matches!(order, Order::Install(_))).await;
        let Order::Install(install) = order else {
            unreachable!()
        };
        let client: MachineServiceClient = self.agent.client();
        let key = Key::generate().unwrap();
        let request = ProjectIdentityRequest {
            csr: key.request().unwrap(),
        };
        let answer = persistent(async || client.project_identity(request.clone()).await).await;
        let credential = Credential {
            key,
            chain: answer.chain.into_iter().map(Into::into).collect(),
            roots: answer.roots.into_iter().map(Into::into).collect(),
        };
        let report = InstallReport {
            allocation_uuid: install.allocation_uuid.clone(),
            console_password: "test".into(),
            primary_disk: "/dev/vda".into(),
            ..InstallReport::default()
        };
        persistent(async || client.install_done(report.clone()).await).await;
        self.order(|order| matches!(order, Order::Reboot(_))).await;
        assert!(install.host_addresses, "leaves route between machines");
        let mut networks = install.networks.iter();
        let underlay = networks.find(|network| network.r#type == "underlay");
        let mut networks = install.networks.iter();
        let network = networks.find(|network| network.r#type == "child").unwrap();
        let vnis = install.networks.iter().map(|network| network.vni);
        Installed {
            vnis: vnis.filter(|vni| *vni != 0).collect(),
            underlay: underlay.map(|network| network.ips[0].clone()),
            address: v4(&network.ips),
            vni: network.vni,
            asn: network.asn,
            order: install.clone(),
            agent: Agent::from_credential(credential.clone(), install.control.clone()).unwrap(),
            session: StoredSession {
                credential,
                control: install.control.clone(),
                ticket_id: String::new(),
            },
        }
    }
}

impl Installed {
    /// The system is up. Control refuses that for a moment.
    pub(crate) async fn phone_home(&self) {
        let client: PhoneHomeServiceClient = self.agent.client();
        let request = PhoneHomeRequest {
            boot_id: Uuid::new_v4().to_string(),
            uptime_s: 1,
            kernel: "test".into(),
        };
        persistent(async || client.phone_home(request.clone()).await).await;
    }
}

/// The first text with an IPv4 address.
fn v4(texts: &[String]) -> String {
    let mut texts = texts.iter();
    texts.find(|text| text.contains('.')).unwrap().clone()
}

/// Repeats a call until control answers it.
async fn persistent<T>(mut call: impl AsyncFnMut() -> Result<T, LinkStatus>) -> T {
    let mut last = None;
    let done = found(async || match call().await {
        Ok(done) => Some(done),
        Err(error) => {
            last = Some(error);
            None
        }
    });
    let done = done.await;
    done.unwrap_or_else(|| panic!("control refuses: {last:?}"))
}

async fn receive(
    agent: Agent,
    boot_id: String,
    sender: watch::Sender<Option<MachineOrder>>,
    stop: CancellationToken,
) {
    let client: MachineServiceClient = agent.client();
    let open = || {
        let (client, boot_id) = (client.clone(), boot_id.clone());
        async move { client.orders(MachineOrdersRequest { boot_id }).await }
    };
    let on = |order: MachineOrder, _| {
        sender.send_replace(Some(order));
        std::future::ready(())
    };
    run_desired(&agent, open, None, on, stop).await;
}
