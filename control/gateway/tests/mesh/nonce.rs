//! Machines that join only with what their BMC holds.

use control_state::life::NONCE_SETTLE_MS;
use control_state::{
    AgentKind, BmcOrder, EventLog, Identity, JoinedBy, LabelsUpdate, Lock, UpdatePartition, label,
};
use proto_identity::{Key, sha256};
use proto_link::Code;
use proto_mesh::*;
use proto_types::MachineId;

use crate::fixture::*;

const UUID: &str = "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5e6f";
const MAC: &str = "52:54:00:00:00:01";
/// What the BMC agent makes up; control is told its SHA-256 only.
const NONCE: &str = "mm-abcdefghijklmnopqrstuvwxyz";

/// Control whose partition p1 demands nonces, and the agents of that partition.
struct World {
    control: Control,
    pixie: BootServiceClient,
    bmc: BmcServiceClient,
    orders: Streaming<BmcDesired>,
}

impl World {
    async fn new() -> Self {
        let control = Control::start().await;
        let label = (label::REQUIRE_BMC_NONCE.to_owned(), "true".to_owned());
        let demand = UpdatePartition {
            id: "p1".parse().unwrap(),
            lock: Lock::Server,
            description: None,
            boot: None,
            dns_servers: None,
            ntp_servers: None,
            mgmt_service_addresses: None,
            labels: Some(LabelsUpdate::Replace([label].into())),
        };
        control.propose(demand).await.unwrap();
        let pixie: BootServiceClient = control.agent(AgentKind::Pixie, "p1", "pixie1").await;
        let bmc: BmcServiceClient = control.agent(AgentKind::Bmc, "p1", "bmc1").await;
        let orders = bmc.desired(BmcDesiredRequest {}).await.unwrap();
        Self {
            control,
            pixie,
            bmc,
            orders,
        }
    }

    /// The machine asks pixie for a boot, and its hammer gets a ticket.
    async fn boot(&self) -> BootTicket {
        let seen = seen_at_boot(UUID, MAC);
        self.pixie.seen(seen).await.unwrap();
        let ask = BootTicketRequest {
            machine_uuid: UUID.into(),
            mac: MAC.into(),
        };
        self.pixie.issue_ticket(ask).await.unwrap()
    }

    /// The BMC agent's part, up to its word.
    async fn order(&mut self) -> String {
        let is_nonce = |order: &proto_mesh::BmcOrder| order.action() == BmcAction::SetNonce;
        let state = wait_for(&mut self.orders, |d| d.orders.iter().any(is_nonce)).await;
        let order = state.orders.iter().find(|it| is_nonce(it)).unwrap();
        assert_eq!(order.machine_uuid, UUID);
        order.id.clone()
    }

    async fn done(&self, id: &str, nonce_sha256: &[u8]) -> Result<(), LinkStatus> {
        let done = BmcOrderDone {
            id: id.into(),
            error: String::new(),
            power_state: String::new(),
            nonce_sha256: nonce_sha256.to_vec(),
        };
        self.bmc.order_done(done).await.map(drop)
    }

    async fn join(&self, ticket: &BootTicket, nonce: &str) -> Result<String, LinkStatus> {
        let request = JoinRequest {
            ticket_id: ticket.ticket_id.clone(),
            secret: ticket.secret.clone(),
            csr: Key::generate().unwrap().request().unwrap(),
            machine_uuid: UUID.into(),
            mac: MAC.into(),
            bmc_nonce: nonce.into(),
            ..JoinRequest::default()
        };
        let enrol = EnrolServiceClient::from(self.control.client(None));
        Ok(enrol.join(request).await?.identity)
    }

    /// What the machine's events tell an admin.
    fn told(&self) -> String {
        let id: MachineId = UUID.parse().unwrap();
        let told = self.control.store.read_local(|t| {
            let log = t.get::<EventLog>(&id).unwrap();
            let told: Vec<_> = log.events.iter().map(|it| it.message.clone()).collect();
            told.join("\n").trim().to_owned()
        });
        told.unwrap()
    }

    /// The refusal's number in the catalogue, and whether hammer asks again.
    async fn refused(&self, ticket: &BootTicket, nonce: &str) -> (u16, bool) {
        let e = self.join(ticket, nonce).await.unwrap_err();
        (e.catalogue().unwrap_or(0), e.is_transient())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_joins_only_with_what_its_bmc_holds() {
    const AWAITED: (u16, bool) = (1515, true);
    const REFUSED: (u16, bool) = (1514, false);
    let mut world = World::new().await;
    let ticket = world.boot().await;
    assert_eq!(world.refused(&ticket, NONCE).await, AWAITED, "not set yet");
    assert_eq!(world.told(), "", "who waits is nobody's concern");

    let order = world.order().await;
    let e = world.done(&order, &[1; 31]).await.unwrap_err();
    assert_eq!(e.code(), Code::InvalidArgument, "{e}");
    world.done(&order, &sha256(NONCE.as_bytes())).await.unwrap();
    // Its firmware's tables may be from before.
    assert_eq!(world.refused(&ticket, "").await, AWAITED);
    assert_eq!(world.refused(&ticket, "mm-of-before").await, AWAITED);
    world.control.clock.advance(NONCE_SETTLE_MS);
    assert_eq!(world.refused(&ticket, "").await, REFUSED);
    assert_eq!(world.refused(&ticket, "mm-guessed").await, REFUSED);
    assert!(world.told().contains("MM-1514"), "{}", world.told());

    // Nothing of that used the ticket up.
    let identity = world.join(&ticket, NONCE).await.unwrap();
    let (by, kept) = world
        .control
        .store
        .read_local(|t| {
            let known = t.get::<Identity>(&identity).unwrap();
            let kept: Vec<_> = t.all::<BmcOrder>().map(|it| format!("{it:?}")).collect();
            (known.joined_by.clone(), kept.concat())
        })
        .unwrap();
    assert_eq!(by, JoinedBy::BmcNonce(ticket.ticket_id.parse().unwrap()));
    assert!(!kept.contains(NONCE), "{kept}");

    // It was good once.
    let second = world.boot().await;
    assert_eq!(
        world.refused(&second, NONCE).await,
        AWAITED,
        "another comes"
    );
    let order = world.order().await;
    world.done(&order, &sha256(b"mm-another")).await.unwrap();
    world.join(&second, "mm-another").await.unwrap();
    world.control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_whose_bmc_takes_no_nonce_does_not_join() {
    let mut world = World::new().await;
    let ticket = world.boot().await;
    let id = world.order().await;
    let done = BmcOrderDone {
        id,
        error: "BMC 10.0.0.1 has no asset tag".into(),
        ..BmcOrderDone::default()
    };
    world.bmc.order_done(done).await.unwrap();
    let e = world.join(&ticket, NONCE).await.unwrap_err();
    assert_eq!((e.catalogue(), e.is_transient()), (Some(1514), false));
    // Who asks may be a stranger; the admin is told.
    assert!(!e.message().contains("10.0.0.1"), "{e}");
    let told = world.told();
    assert!(told.contains("10.0.0.1 has no asset tag"), "{told}");
    world.control.stop().await;
}
