//! The site: control, a spine, two leaves with agents, and machines that come and go.

use std::time::Instant;

use control_client::Client;
use proto_mesh::BmcAction;
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use tokio::sync::broadcast;
use tokio::time::timeout;

use super::catalogue::{BRIDGED, FIREWALL, ROUTED, Tenant, set_up};
use super::control::Control;
use super::leaf::Leaf;
use super::life::Installer;
use super::machine::{Machine, Networking};
use super::rack::{Rack, Spine};
use super::roles::Roles;
use super::stages::{Offered, Released, Rented};
use super::times::Times;
use super::wait::{PATIENCE, found};

/// Label with the phase of a machine.
const PHASE: &str = "metalmesh.dev/phase";

/// The site. Everything of it goes away with the value, control last.
pub(crate) struct Site {
    pub(crate) leaves: [Leaf; 2],
    pub(crate) tenants: [Tenant; 2],
    pub(crate) times: Times,
    client: Client,
    roles: Roles,
    pub(crate) spine: Spine,
    pub(crate) control: Control,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let began = Instant::now();
        agents_kit::install_crypto_provider();
        let control = Control::start().await;
        println!("control answers after {:?}", began.elapsed());
        let client = control.admin().unwrap();
        let tenants = set_up(&client).await;
        let Rack { leaves, spine } = Rack::start(&control, &client).await;
        let roles = Roles::join(&control, &client).await;
        println!("site started after {:?}", began.elapsed());
        Self {
            leaves,
            tenants,
            times: Times::default(),
            client,
            roles,
            spine,
            control,
        }
    }

    /// A client with the rights of an administrator.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Delivers a machine, and waits until it is on offer.
    pub(crate) async fn deliver(&self, number: u8, networking: Networking) -> Offered {
        let machine = Machine::start(&self.leaves, number, networking).await;
        self.offer(machine).await
    }

    pub(crate) async fn offer(&self, machine: Machine) -> Offered {
        let installer = Installer::boot(&self.roles.pixie, &machine.hardware).await;
        self.wait_for_phase(&machine, "waiting").await;
        Offered { machine, installer }
    }

    /// Allocates a machine by the API, installs it, and waits until both leaves have its ports in
    /// its tenant's place.
    pub(crate) async fn rent(&self, offered: Offered, tenant: usize) -> Rented {
        let began = self.allocate(&offered.machine, tenant).await;
        let rented = self.install(offered, tenant).await;
        let what = "API call to both leaves verified, with the installation";
        self.times.add(what, began.elapsed());
        rented
    }

    /// Installs a machine that a tenant has allocated, and waits until both leaves have its ports in
    /// the tenant's place.
    pub(crate) async fn install(&self, offered: Offered, tenant: usize) -> Rented {
        let Offered { machine, installer } = offered;
        let system = installer.install().await;
        let installed = Instant::now();
        machine.configure(&system);
        system.phone_home().await;
        self.wait_for_phase(&machine, "running").await;
        let what = "end of the installation to both leaves verified";
        self.times.add(what, installed.elapsed());
        Rented {
            machine,
            system,
            tenant,
        }
    }

    /// Returns when the successful call began.
    async fn allocate(&self, machine: &Machine, tenant: usize) -> Instant {
        let tenant = &self.tenants[tenant];
        let image = match machine.networking {
            Networking::Routed => ROUTED,
            Networking::Bridged => BRIDGED,
            Networking::Firewall
            | Networking::ControlledFirewall
            | Networking::ProbingFirewall
            | Networking::ForgingFirewall => FIREWALL,
        };
        let is_firewall = image == FIREWALL;
        let outside = is_firewall.then(|| "internet".to_owned());
        let networks = [tenant.network.clone()].into_iter().chain(outside);
        let networks = networks.map(|network| api::MachineAllocationNetwork {
            network,
            ips: Vec::new(),
        });
        let kind = match is_firewall {
            true => api::MachineAllocationType::Firewall,
            false => api::MachineAllocationType::Machine,
        };
        let request = api::MachineServiceCreateRequest {
            project: tenant.project.clone(),
            uuid: Some(machine.hardware.uuid.clone()),
            name: format!("m{}", machine.number),
            image: image.into(),
            filesystem_layout: Some("default".into()),
            networks: networks.collect(),
            allocation_type: kind.into(),
            ..Default::default()
        };
        // Refused until both leaves have heard the machine.
        let made = found(async || {
            let began = Instant::now();
            let made = self.client.machines().create(request.clone()).await;
            made.is_ok().then_some(began)
        });
        if let Some(began) = made.await {
            return began;
        }
        self.show().await;
        let refused = self.client.machines().create(request).await;
        panic!("m{}: {refused:?}", machine.number);
    }

    /// Gives a machine back by the API. Returns when both leaves have its ports in nobody's place;
    /// the machine is off.
    pub(crate) async fn release(&self, rented: Rented) -> Released<'_> {
        let Rented {
            machine, tenant, ..
        } = rented;
        let mut orders = self.roles.done.subscribe();
        let request = api::MachineServiceDeleteRequest {
            uuid: machine.hardware.uuid.clone(),
            project: self.tenants[tenant].project.clone(),
        };
        let began = Instant::now();
        self.client.machines().delete(request).await.unwrap();
        // Control has it booted from the network only after both leaves have reported its ports.
        self.ordered(&mut orders, &machine, BmcAction::BootPxe)
            .await;
        let what = "API call to nobody's on both leaves verified";
        self.times.add(what, began.elapsed());
        Released::new(self, machine, orders)
    }

    /// Waits until the BMC of a machine has carried out an order.
    pub(crate) async fn ordered(
        &self,
        orders: &mut broadcast::Receiver<(String, BmcAction)>,
        machine: &Machine,
        wanted: BmcAction,
    ) {
        let next = async {
            loop {
                let (uuid, action) = orders.recv().await.unwrap();
                if uuid == machine.hardware.uuid && action == wanted {
                    return;
                }
            }
        };
        if timeout(PATIENCE, next).await.is_err() {
            self.show().await;
            panic!("m{}: no order {wanted:?}", machine.number);
        }
    }

    async fn phase(&self, machine: &Machine) -> Option<String> {
        let request = admin::MachineServiceGetRequest {
            uuid: machine.hardware.uuid.clone(),
        };
        let shown = self.client.admin_machines().get(request).await.ok()?;
        let labels = shown.into_inner().machine?.meta?.labels?.labels;
        labels.get(PHASE).cloned()
    }

    async fn wait_for_phase(&self, machine: &Machine, wanted: &str) {
        let is_there = found(async || {
            let phase = self.phase(machine).await?;
            (phase == wanted).then_some(())
        });
        if is_there.await.is_none() {
            self.show().await;
            let phase = self.phase(machine).await;
            panic!("m{} is not {wanted} but {phase:?}", machine.number);
        }
    }

    /// Prints everything that may tell why a test failed.
    pub(crate) async fn show(&self) {
        for leaf in &self.leaves {
            leaf.show();
        }
        self.control.show();
        let request = admin::MachineServiceListRequest { query: None };
        let shown = self.client.admin_machines().list(request).await;
        println!("machines: {shown:#?}");
    }
}
