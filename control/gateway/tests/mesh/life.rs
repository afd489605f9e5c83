//! A machine's whole life over the mesh: seen, enrolled, wiped, allocated, installed, handed
//! over, freed. The agents are played by the test.

use control_state::{AgentKind, DeleteMachine, FreeMachine, HoldCause, Phase, STEP_ATTEMPTS_MAX};
use proto_identity::Key;
use proto_link::{Code, MeshClient};
use proto_mesh::machine_order::Order;
use proto_mesh::*;
use proto_types::{MachineId, ProjectId};
use tests_support::objects::sha;

use crate::catalogue::{allocate, catalogue};
use crate::fixture::*;
use crate::hammer::*;

/// Control, and one of each agent with its stream of desired state.
struct World {
    control: Control,
    id: MachineId,
    project: ProjectId,
    network: String,
    core: SwitchServiceClient,
    bmc: BmcServiceClient,
    pixie: BootServiceClient,
    ports: Streaming<SwitchDesired>,
    orders: Streaming<BmcDesired>,
    boots: Streaming<BootDesired>,
}

/// An installed machine.
struct Installed {
    mesh: MeshClient,
    key: Key,
    report: InstallReport,
    /// The desired state of its leaf, which has not carried it out.
    ports: SwitchDesired,
}

impl World {
    async fn new() -> Self {
        let control = Control::start().await;
        let (project, network) = catalogue(&control).await;
        let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
        let bmc: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
        let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
        let port = |n: u32| SwitchPort {
            name: format!("swp{n}"),
            mac: String::new(),
        };
        let ports = vec![port(1), port(2)];
        core.register(SwitchRegisterRequest {
            ports,
            ..Default::default()
        })
        .await
        .unwrap();
        hear(&core, "swp1", &[MAC]).await;
        let ports = core.desired(SwitchDesiredRequest::default()).await.unwrap();
        let orders = bmc.desired(BmcDesiredRequest {}).await.unwrap();
        let mut boots = pixie.desired(BootDesiredRequest {}).await.unwrap();
        assert_eq!(next(&mut boots).await.control, ["192.0.2.1:4443"]);
        let id = UUID.parse().unwrap();
        Self {
            control,
            id,
            project,
            network,
            core,
            bmc,
            pixie,
            ports,
            orders,
            boots,
        }
    }

    /// The BMC agent carries out what comes next.
    async fn carry_out(&mut self, wanted: BmcAction, power: &str) {
        let is_due = |d: &BmcDesired| d.orders.first().is_some_and(|o| o.action() == wanted);
        let state = wait_for(&mut self.orders, is_due).await;
        let done = BmcOrderDone {
            id: state.orders[0].id.clone(),
            error: String::new(),
            power_state: power.into(),
            nonce_sha256: vec![],
        };
        self.bmc.order_done(done).await.unwrap();
    }

    /// Unknown, seen, registered, wiped, on offer.
    async fn wait(&mut self) -> (MeshClient, Streaming<MachineOrder>) {
        let mesh = session_as(&self.control, &self.pixie, UUID, MAC).await;
        let hammer = MachineServiceClient::from(mesh.clone());
        wait_for(&mut self.boots, |b| {
            b.machines.iter().any(|m| m.machine_uuid == UUID)
        })
        .await;
        say(&hammer, "Preparing").await;
        say(&hammer, "Registering").await;
        let registered = hammer.register(inventory("boot-1")).await.unwrap();
        assert_eq!(
            (registered.size.as_str(), registered.partition.as_str()),
            ("small", "p1")
        );
        let mut orders = hammer
            .orders(MachineOrdersRequest::default())
            .await
            .unwrap();
        wait_for(&mut orders, is(|o| matches!(o, Order::Wipe(_)))).await;
        hammer
            .wipe_done(WipeReport {
                disks: vec![wiped()],
            })
            .await
            .unwrap();
        wait_for(&mut orders, is(|o| matches!(o, Order::Wait(_)))).await;
        say(&hammer, "Waiting").await;
        (mesh, orders)
    }

    /// Allocated and installed.
    async fn install(
        &mut self,
        session: &MeshClient,
        orders: &mut Streaming<MachineOrder>,
    ) -> Installed {
        let hammer = &MachineServiceClient::from(session.clone());
        let early = hammer
            .project_identity(ProjectIdentityRequest::default())
            .await
            .unwrap_err();
        assert_eq!(early.catalogue(), Some(1207), "nobody has it yet");
        allocate(&self.control, self.project, &self.network).await;
        let order = wait_for(orders, is(|o| matches!(o, Order::Install(_)))).await;
        let Some(Order::Install(install)) = order.order else {
            unreachable!()
        };
        assert_eq!(install.userdata, b"#cloud-config\n");
        let digest = sha(7).to_string();
        assert_eq!(install.image.as_ref().unwrap().digest, digest);
        assert_eq!((install.attempt, install.networks[0].ips.len()), (1, 1));
        assert!(!install.layout.as_ref().unwrap().filesystems.is_empty());
        say(hammer, "Installing").await;
        let (mesh, key) = self.project_identity(hammer).await;
        let home = PhoneHomeServiceClient::from(mesh.clone());
        let too_early = home
            .phone_home(PhoneHomeRequest::default())
            .await
            .unwrap_err();
        assert_eq!(too_early.catalogue(), Some(1207), "not installed yet");
        let report = InstallReport {
            allocation_uuid: install.allocation_uuid.clone(),
            log_tail: "é".repeat(20_000),
            primary_disk: "/dev/vda".into(),
            ..Default::default()
        };
        hammer.install_done(report.clone()).await.unwrap();
        self.carry_out(BmcAction::BootDisk, "on").await;
        wait_for(orders, is(|o| matches!(o, Order::Reboot(_)))).await;
        say(hammer, "Booting New Kernel").await;
        let tenant = install.networks[0].vni;
        assert!(tenant != 0 && tenant != 4000);
        let state = wait_for(&mut self.ports, |s| vni(s, "swp1") == tenant).await;
        assert_eq!(vni(&state, "swp2"), 4000);
        wait_for(&mut self.boots, |b| {
            b.machines[0].target() == BootTarget::Disk
        })
        .await;
        Installed {
            mesh,
            key,
            report,
            ports: state,
        }
    }

    async fn project_identity(&self, hammer: &MachineServiceClient) -> (MeshClient, Key) {
        let key = Key::generate().unwrap();
        let csr = ProjectIdentityRequest {
            csr: key.request().unwrap(),
        };
        let issued = hammer.project_identity(csr).await.unwrap();
        let project = self.project;
        let identity = format!("spiffe://mesh.test/project/{project}/machine/{UUID}");
        assert_eq!(issued.identity, identity);
        let answer = Certificate {
            chain: issued.chain,
            roots: issued.roots,
            not_after_ms: issued.not_after_ms,
            identity: issued.identity,
        };
        (self.control.client(Some(&credential(answer, &key))), key)
    }

    /// The installed system is there; it may not speak as hammer, nor hammer as it.
    async fn run(&self, session: &MeshClient, installed: &Installed) {
        let hammer = MachineServiceClient::from(session.clone());
        let forged = MachineEvent {
            event: "Phoned Home".into(),
            ..Default::default()
        };
        assert_eq!(
            hammer.event(forged).await.unwrap_err().code(),
            Code::PermissionDenied
        );
        let home = PhoneHomeServiceClient::from(installed.mesh.clone());
        let answer = home.phone_home(PhoneHomeRequest::default()).await.unwrap();
        let phase = || self.control.machine(self.id).phase;
        assert_eq!((answer.interval_s, phase()), (60, Phase::TenantPorts));
        self.moved(&installed.ports).await;
        assert_eq!(phase(), Phase::Running);
        home.phone_home(PhoneHomeRequest::default()).await.unwrap();
        let as_hammer = MachineServiceClient::from(installed.mesh.clone());
        let e = as_hammer.event(MachineEvent::default()).await.unwrap_err();
        assert_eq!(e.code(), Code::PermissionDenied);
        // The installed system is there: hammer's session ends.
        wait_until_revoked(session).await;
        let ask = BootTicketRequest {
            machine_uuid: UUID.into(),
            mac: MAC.into(),
        };
        let refused = self.pixie.issue_ticket(ask).await.unwrap_err();
        assert_eq!(refused.catalogue(), Some(1207), "a tenant runs it");
        let identity = IdentityServiceClient::from(installed.mesh.clone());
        let csr = installed.key.request().unwrap();
        identity.renew(RenewRequest { csr }).await.unwrap();
    }

    /// Freed: the project's identity ends, power off, port back, boot from the network.
    async fn free(&mut self, installed: &Installed) {
        let free = FreeMachine {
            id: self.id,
            project: Some(self.project),
        };
        self.control.propose(free).await.unwrap();
        wait_until_revoked(&installed.mesh).await;
        self.carry_out(BmcAction::PowerOff, "off").await;
        let state = wait_for(&mut self.ports, |s| vni(s, "swp1") == 4000).await;
        self.moved(&state).await;
        self.carry_out(BmcAction::BootPxe, "off").await;
        self.carry_out(BmcAction::PowerOn, "on").await;
    }

    /// The leaf has carried its desired state out, and says so of the machine's port.
    async fn moved(&self, state: &SwitchDesired) {
        let port = PortState {
            name: "swp1".into(),
            vni: vni(state, "swp1"),
            ..Default::default()
        };
        let report = SwitchReport {
            applied_term: state.term,
            applied_generation: state.generation,
            ports: vec![port],
            ..Default::default()
        };
        self.core.report(report).await.unwrap();
    }

    /// The BMC does not cut the power, however often it is asked.
    async fn fail_to_power_off(&mut self) {
        for _ in 0..STEP_ATTEMPTS_MAX {
            let is_due = |d: &BmcDesired| {
                let first = d.orders.first();
                first.is_some_and(|o| o.action() == BmcAction::PowerOff)
            };
            let state = wait_for(&mut self.orders, is_due).await;
            let failed = BmcOrderDone {
                id: state.orders[0].id.clone(),
                error: "no answer".into(),
                ..Default::default()
            };
            self.bmc.order_done(failed).await.unwrap();
        }
        let isolated = wait_for(&mut self.ports, |s| vni(s, "swp1") == 0).await;
        let held = self.control.machine(self.id);
        assert_eq!(held.phase, Phase::Held(HoldCause::Bmc));
        assert!(held.allocation.is_some(), "its numbers are kept");
        let deleted = self.control.propose(DeleteMachine { id: self.id }).await;
        assert!(deleted.unwrap_err().contains("is allocated"));
        let report = |oper_up| SwitchReport {
            applied_term: isolated.term,
            applied_generation: isolated.generation,
            ports: vec![PortState {
                name: "swp1".into(),
                oper_up,
                vni: 0,
                ..Default::default()
            }],
            ..Default::default()
        };
        self.core.report(report(true)).await.unwrap();
        assert!(self.control.machine(self.id).allocation.is_none());
        let deleted = self.control.propose(DeleteMachine { id: self.id }).await;
        assert!(deleted.unwrap_err().contains("is isolated"));
        self.core.report(report(false)).await.unwrap();
        let deleted = self.control.propose(DeleteMachine { id: self.id }).await;
        deleted.unwrap();
    }

    /// Never on offer dirty: a disk that cannot be wiped holds the machine.
    async fn fail_to_wipe(&self, mut late: InstallReport) {
        let hammer = boot(&self.control, &self.pixie).await;
        hammer.register(inventory("boot-2")).await.unwrap();
        let mut orders = hammer
            .orders(MachineOrdersRequest::default())
            .await
            .unwrap();
        assert!(matches!(
            next(&mut orders).await.order,
            Some(Order::Wipe(_))
        ));
        let machine = self.control.machine(self.id);
        assert!(machine.allocation.is_none() && machine.dirty);
        let failed = DiskWipe {
            error: "I/O error".into(),
            ..wiped()
        };
        hammer
            .wipe_done(WipeReport {
                disks: vec![failed],
            })
            .await
            .unwrap();
        let held = wait_for(&mut orders, is(|o| matches!(o, Order::Hold(_)))).await;
        let Some(Order::Hold(hold)) = held.order else {
            unreachable!()
        };
        assert!(hold.reason.contains("I/O error"), "{}", hold.reason);
        late.error = "late".into();
        assert_eq!(
            hammer.install_done(late).await.unwrap_err().catalogue(),
            Some(1202)
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_lives() {
    let mut world = World::new().await;
    let (session, mut orders) = world.wait().await;
    let installed = world.install(&session, &mut orders).await;
    world.run(&session, &installed).await;
    world.free(&installed).await;
    world.fail_to_wipe(installed.report).await;
    world.control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_keeps_its_power_keeps_its_numbers() {
    let mut world = World::new().await;
    let (session, mut orders) = world.wait().await;
    let installed = world.install(&session, &mut orders).await;
    world.run(&session, &installed).await;
    let free = FreeMachine {
        id: world.id,
        project: Some(world.project),
    };
    world.control.propose(free).await.unwrap();
    world.fail_to_power_off().await;
    world.control.stop().await;
}
