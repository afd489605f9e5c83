//! Every method of the mesh, called by identities of another partition, project, machine and kind:
//! each is refused or sees its own objects alone, and writes nothing into what is not its own.
//!
//! The methods come from the generated table: one that has no sample here fails the test.

use control_state::{
    AgentKind, Allocation, BmcAction as Action, BmcOrder as StoredOrder, EventLog, Identity,
    JoinTicket as StoredTicket, Machine, MachineEvent as StoredEvent, MachineSeen, OrderBmc,
    Switch, WipeDone,
};
use proto_identity::{CallerKind, Key};
use proto_link::MeshClient;
use proto_mesh::*;
use proto_types::{MachineId, ProjectId};
use tests_support::objects::registration;
use uuid::Uuid;

use crate::catalogue::{allocate, catalogue};
use crate::fixture::*;
use crate::samples::{Expected, Victim, samples};

/// In partition p1; project 1 has it.
pub(crate) const A: &str = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
pub(crate) const MAC_A: &str = "52:54:00:00:00:0a";
/// In partition p2; nobody has it.
const B: &str = "1d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
const MAC_B: &str = "52:54:00:00:00:0b";

/// One whose objects are its own.
struct Caller {
    name: &'static str,
    kind: CallerKind,
    mesh: MeshClient,
}

/// Partition p1 with a switch, a machine that project 1 has, and an order to its BMC. The machine
/// is allocated before there is a switch, so that no cable has to be known.
async fn victim(control: &Control) -> Victim {
    let (project, network) = catalogue(control).await;
    let id: MachineId = A.parse().unwrap();
    offer(control, id).await;
    allocate(control, project, &network).await;
    let core: SwitchServiceClient = control.agent(AgentKind::Core, "p1", "leaf1").await;
    let port = SwitchPort {
        name: "swp1".into(),
        mac: String::new(),
    };
    let ports = vec![port];
    let register = SwitchRegisterRequest {
        ports,
        ..Default::default()
    };
    core.register(register).await.unwrap();
    let order = OrderBmc {
        user: None,
        machine: id,
        project: None,
        action: Action::LedOn,
        description: String::new(),
    };
    let order = control.propose(order).await.unwrap().bmc_order().unwrap();
    let machine = control.machine(id);
    let allocation: &Allocation = machine.allocation.as_ref().unwrap();
    Victim {
        project,
        allocation: allocation.id.to_string(),
        order: order.id,
    }
}

/// Registered, wiped and waiting.
pub(crate) async fn offer(control: &Control, id: MachineId) {
    let now = control.store.now();
    let seen = MachineSeen {
        id,
        partition: "p1".parse().unwrap(),
        mac: Some(MAC_A.parse().unwrap()),
        seen_at: now,
        to_disk: false,
        stated_at: None,
        relayed: None,
    };
    control.propose(seen).await.unwrap();
    let mut register = registration(1, "boot-1");
    register.id = id;
    register.hardware.nics.clear();
    control.propose(register).await.unwrap();
    let wiped = control_state::DiskWipe {
        name: "/dev/vda".into(),
        ..Default::default()
    };
    let disks = vec![wiped];
    control.propose(WipeDone { id, disks }).await.unwrap();
    let waiting = StoredEvent {
        id,
        kind: control_state::EventKind::Waiting,
        message: String::new(),
        time: now,
    };
    control.propose(waiting).await.unwrap();
}

async fn agent(control: &Control, kind: AgentKind, name: &str) -> MeshClient {
    control.agent(kind, "p2", name).await
}

/// Hammer of the machine B, which is in p2.
async fn hammer(control: &Control, pixie: &MeshClient) -> MeshClient {
    let pixie = BootServiceClient::from(pixie.clone());
    pixie.seen(seen_at_boot(B, MAC_B)).await.unwrap();
    let ask = BootTicketRequest {
        machine_uuid: B.into(),
        mac: MAC_B.into(),
    };
    let ticket = pixie.issue_ticket(ask).await.unwrap();
    let key = Key::generate().unwrap();
    let joined = control.join_as(&ticket.ticket_id, &ticket.secret, &key, B, MAC_B);
    control.client(Some(&joined.await.unwrap()))
}

/// The machine A in the name of a project that does not have it.
async fn other_project(control: &Control) -> MeshClient {
    let mut machine = Machine::clone(&control.machine(A.parse().unwrap()));
    machine.allocation.as_mut().unwrap().project = ProjectId::new(Uuid::now_v7());
    let key = Key::generate().unwrap();
    let csr = key.request().unwrap();
    let issued = control.pki.issue_project_machine(&machine, &csr).await;
    let issued = issued.unwrap();
    let list = |chain: &[proto_identity::CertificateDer<'static>]| {
        chain.iter().map(|der| der.to_vec()).collect()
    };
    let answer = Certificate {
        chain: list(&issued.chain),
        roots: list(&issued.roots),
        not_after_ms: issued.identity.not_after_ms,
        identity: issued.identity.id.to_string(),
    };
    control.client(Some(&credential(answer, &key)))
}

async fn callers(control: &Control, leaf: MeshClient) -> Vec<Caller> {
    let pixie = agent(control, AgentKind::Pixie, "pixie1").await;
    let hammer = hammer(control, &pixie).await;
    let caller = |name, kind, mesh| Caller { name, kind, mesh };
    vec![
        caller("anonymous", CallerKind::Anonymous, control.client(None)),
        caller("hammer of B", CallerKind::Machine, hammer),
        caller("pixie of p2", CallerKind::Pixie, pixie),
        caller(
            "BMC agent of p2",
            CallerKind::Bmc,
            agent(control, AgentKind::Bmc, "bmc1").await,
        ),
        caller("leaf1 of p2", CallerKind::Core, leaf),
        caller(
            "A in the name of another project",
            CallerKind::ProjectMachine,
            other_project(control).await,
        ),
    ]
}

/// All that belongs to p1, its machine and its project.
fn belongings(control: &Control) -> String {
    let dump = control.store.read_local(|t| {
        let machine: MachineId = A.parse().unwrap();
        let identities: Vec<_> = t
            .all::<Identity>()
            .filter(|identity| identity.id.contains("/p1/") || identity.id.contains(A))
            .collect();
        let orders: Vec<_> = t.all::<StoredOrder>().collect();
        let tickets: Vec<_> = t
            .all::<StoredTicket>()
            .filter(|ticket| ticket.partition.as_str() == "p1")
            .collect();
        let boots: Vec<_> = t
            .all::<control_state::BootTicket>()
            .filter(|ticket| ticket.machine == machine)
            .collect();
        format!(
            "{:?}\n{:?}\n{:?}\n{identities:?}\n{orders:?}\n{tickets:?}\n{boots:?}",
            t.all::<Switch>().collect::<Vec<_>>(),
            t.get::<Machine>(&machine),
            t.get::<EventLog>(&machine),
        )
    });
    dump.unwrap()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_identity_reads_or_writes_what_is_anothers() {
    let control = Control::start().await;
    // It joined before the switch of that name registered in p1.
    let leaf = agent(&control, AgentKind::Core, "leaf1").await;
    let victim = victim(&control).await;
    let samples = samples(&victim);
    let callers = callers(&control, leaf).await;
    let secrets = [
        A.to_owned(),
        victim.project.to_string(),
        victim.allocation.clone(),
        victim.order.to_string(),
        "leaf1".to_owned(),
    ];
    for spec in METHODS {
        let sample = samples.get(spec.path);
        let sample = sample.unwrap_or_else(|| panic!("{} has no sample in this matrix", spec.path));
        for caller in &callers {
            let case = format!("{} by {}", spec.path, caller.name);
            let before = belongings(&control);
            let answer = (sample.call)(&caller.mesh).await;
            assert_eq!(belongings(&control), before, "{case} wrote");
            let may_call = spec.callers.contains(&caller.kind);
            match answer {
                Ok(bytes) => {
                    assert!(may_call, "{case} was let in");
                    assert_eq!(sample.expected, Expected::OwnOnly, "{case} was not refused");
                    let is_own = caller.kind == CallerKind::Core
                        || caller.kind == CallerKind::ProjectMachine;
                    for secret in secrets.iter().filter(|_| !is_own) {
                        assert!(!contains(&bytes, secret), "{case} read {secret}");
                    }
                }
                Err(error) => assert!(!error.is_transient(), "{case}: {error}"),
            }
        }
    }
    assert_eq!(
        samples.len(),
        METHODS.len(),
        "samples of methods that are gone"
    );
    control.stop().await;
}
