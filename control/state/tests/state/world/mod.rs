//! A small data centre to test with.

mod parts;

use std::collections::BTreeMap;

use control_state::*;
use proto_types::*;

pub(crate) use parts::*;
pub(crate) use tests_support::objects::*;

pub(crate) fn ms(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

/// The desired state of each firewall.
fn firewalls(tables: &Tables) -> BTreeMap<MachineId, life::FirewallIntent> {
    let machines = tables.all::<Machine>();
    let intents = machines.filter_map(|machine| {
        let intent = life::firewall_desired(tables, machine.id)?;
        Some((machine.id, intent))
    });
    intents.collect()
}

/// Tables with a clock.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) tables: Tables,
    pub(crate) now: Timestamp,
    /// Kept up with each change, and held against one that is made of the tables alone.
    fabric: life::Fabric,
}

impl World {
    pub(crate) fn empty() -> Self {
        Self::of(Tables::new(), ms(1_000_000_000))
    }

    pub(crate) fn of(tables: Tables, now: Timestamp) -> Self {
        Self {
            fabric: life::Fabric::of(&tables),
            tables,
            now,
        }
    }

    /// Tenant, project 1 and 2, partition, size, image, super network, child network, a leaf.
    pub(crate) fn new() -> Self {
        let mut world = Self::empty();
        world.tenancy();
        world.catalog();
        world.ok(CreateNetwork {
            kind: NetworkType::Super,
            ..network("super")
        });
        world.ok(child("private", 1));
        world.ok(leaf("leaf1", "rack-1"));
        world
    }

    fn tenancy(&mut self) {
        self.ok(tenant("acme", Some("acme")));
        for number in [1, 2] {
            self.ok(project(number, "acme"));
        }
    }

    fn catalog(&mut self) {
        self.ok(CreatePartition(partition(PARTITION)));
        self.ok(CreateSize(size()));
        self.ok(CreateImage(image(IMAGE)));
    }

    pub(crate) fn apply(&mut self, op: impl Into<Op>) -> Outcome {
        let op = op.into();
        let may_change = match &op {
            Op::Tick(tick) => tick_may_change(&self.tables, tick, self.now),
            _ => true,
        };
        let command = Command::new(self.now, "tester", op);
        let tried = self.attempt(&command);
        let walls = firewalls(&self.tables);
        let outcome = apply(&mut self.tables, &command);
        assert!(tried.is_none_or(|tried| tried == outcome.result));
        assert!(
            may_change || outcome.changes.is_empty(),
            "{:?}",
            outcome.changes
        );
        let woken = life::concerned_firewalls(&self.tables, &outcome.changes);
        let now = firewalls(&self.tables);
        for (id, intent) in &now {
            let told = woken.contains(id) || walls.get(id) == Some(intent);
            assert!(told, "firewall {id} is not told");
        }
        let before = self.fabric.clone();
        let concerned = self.fabric.take(&self.tables, &outcome.changes);
        assert_eq!(self.fabric, life::Fabric::of(&self.tables));
        for switch in self.tables.all::<Switch>() {
            let (was, is) = (before.desired(&switch.id), self.fabric.desired(&switch.id));
            let told = concerned.contains(&switch.id);
            assert!(
                told || was.unwrap() == is.unwrap(),
                "{} is not told",
                switch.id
            );
        }
        outcome
    }
    /// A trial of a command, proved to change nothing; none where that proof would take long.
    fn attempt(&mut self, command: &Command) -> Option<Result<Reply, StateError>> {
        if self.tables.dump().nth(500).is_some() {
            return None;
        }
        let (hash, indexes) = (self.tables.state_hash().unwrap(), self.tables.indexes());
        let tried = attempt(&mut self.tables, command);
        let after = self.tables.state_hash().unwrap();
        assert_eq!(after, hash, "a trial changed something");
        assert_eq!(self.tables.indexes(), indexes, "a trial changed an index");
        Some(tried)
    }
    /// Applies what must work.
    pub(crate) fn ok(&mut self, op: impl Into<Op>) -> Reply {
        let op = op.into();
        let name = op.name();
        match self.apply(op).result {
            Ok(reply) => reply,
            Err(error) => panic!("{name}: {error}"),
        }
    }
    /// Applies what must be refused, and proves that it changed nothing.
    pub(crate) fn refused(&mut self, op: impl Into<Op>) -> ErrorCode {
        let before = self.tables.clone();
        let hash = self.tables.state_hash().unwrap();
        let outcome = self.apply(op);
        assert_eq!(outcome.changes, vec![]);
        assert_eq!(self.tables, before);
        assert_eq!(self.tables.state_hash().unwrap(), hash);
        outcome.result.expect_err("must be refused").code
    }
    pub(crate) fn later(&mut self, by_ms: u64) {
        self.now = self.now.plus_ms(by_ms);
    }
    /// Lets time pass in ticks, with every machine heard unless it is in `silent`.
    pub(crate) fn tick(&mut self, by_ms: u64) {
        self.later(by_ms);
        if by_ms > ClusterClock::JUMP_MAX_MS {
            self.ok(AcceptTime { time: self.now });
        }
        self.ok(Tick::default());
    }

    pub(crate) fn machine(&self, number: u128) -> &Machine {
        self.tables.get::<Machine>(&id(number)).unwrap()
    }
    pub(crate) fn log(&self, number: u128) -> &EventLog {
        self.tables.get::<EventLog>(&id(number)).unwrap()
    }
    pub(crate) fn phase(&self, number: u128) -> Phase {
        self.machine(number).phase
    }
    pub(crate) fn order(&self, number: u128) -> life::MachineOrder {
        life::machine_order(&self.tables, id(number))
    }

    pub(crate) fn event(&mut self, number: u128, kind: EventKind) {
        let time = self.now;
        self.ok(MachineEvent {
            id: id(number),
            kind,
            message: String::new(),
            time,
        });
    }
    /// The boot server saw the machine.
    pub(crate) fn seen(&mut self, number: u128) {
        let seen_at = self.now;
        self.ok(MachineSeen {
            id: id(number),
            partition: text(PARTITION),
            mac: Some(mac(number)),
            seen_at,
            to_disk: false,
            stated_at: None,
            relayed: None,
        });
    }
    /// PXE, hammer, registration.
    pub(crate) fn boot(&mut self, number: u128, boot_id: &str) {
        self.seen(number);
        self.later(1000);
        self.event(number, EventKind::Preparing);
        self.event(number, EventKind::Registering);
        self.hear("leaf1", &format!("swp{number}"), &[mac(number)]);
        self.ok(registration(number, boot_id));
    }
    /// A leaf hears these addresses on a port and no others, and says so.
    pub(crate) fn hear(&mut self, switch: &str, port: &str, macs: &[MacAddr]) {
        let neighbours = macs.iter().map(|mac| Neighbour {
            mac: Some(*mac),
            ..Neighbour::default()
        });
        let neighbours = neighbours.collect();
        if let Some(report) = self.hearing(switch, port, neighbours) {
            self.ok(report);
        }
    }
    /// The report of a leaf that hears these on a port; none where there is no such port.
    pub(crate) fn hearing(
        &self,
        switch: &str,
        port: &str,
        neighbours: Vec<Neighbour>,
    ) -> Option<ReportSwitch> {
        let known = self.tables.get::<Switch>(&text(switch))?;
        let before = known.ports.get(port)?.observed.clone();
        let seen = PortObserved {
            neighbours,
            ..before.unwrap_or_default()
        };
        Some(ReportSwitch {
            id: text(switch),
            applied_term: known.sync.applied_term,
            applied_generation: known.sync.applied_generation,
            duration_ms: 1,
            error: None,
            ports: [(port.to_owned(), seen)].into(),
            health: None,
        })
    }
    pub(crate) fn wipe(&mut self, number: u128) {
        self.ok(WipeDone {
            id: id(number),
            disks: vec![wiped("/dev/vda", None)],
        });
    }
    /// On offer.
    pub(crate) fn waiting(&mut self, number: u128) {
        self.boot(number, "boot-1");
        self.wipe(number);
        self.event(number, EventKind::Waiting);
    }
    pub(crate) fn allocate(&mut self, allocation: u128) -> std::sync::Arc<Machine> {
        self.ok(allocation_of(allocation)).machine().unwrap()
    }
    /// Allocated, installed and phoning home.
    pub(crate) fn running(&mut self, number: u128, allocation: u128) {
        self.waiting(number);
        self.ok(AllocateMachine {
            machine: Some(id(number)),
            partition: None,
            size: None,
            ..allocation_of(allocation)
        });
        self.install(number, allocation);
        self.phone_home(number);
    }
    pub(crate) fn install(&mut self, number: u128, allocation: u128) {
        self.event(number, EventKind::Installing);
        self.ok(installed(number, allocation));
        self.bmc(BmcAction::BootDisk, None);
        self.event(number, EventKind::BootingNewKernel);
    }
    pub(crate) fn phone_home(&mut self, number: u128) {
        let time = self.now;
        self.ok(PhoneHome {
            id: id(number),
            project: id(1),
            message: String::new(),
            time,
        });
    }
    pub(crate) fn free(&mut self, number: u128) {
        self.ok(FreeMachine {
            id: id(number),
            project: Some(id(1)),
        });
    }

    pub(crate) fn open_orders(&self) -> Vec<BmcAction> {
        let partition = text(PARTITION);
        life::bmc_desired(&self.tables, &partition)
            .iter()
            .map(|order| order.action)
            .collect()
    }
    /// The BMC agent ends the first open order, which must be this.
    pub(crate) fn bmc(&mut self, action: BmcAction, error: Option<&str>) {
        let partition: PartitionId = text(PARTITION);
        let first = life::bmc_desired(&self.tables, &partition).first().cloned();
        let order = first.unwrap_or_else(|| panic!("no open order, {action:?} expected"));
        assert_eq!(order.action, action);
        let error = error.map(str::to_owned);
        self.ok(BmcOrderDone {
            id: order.id,
            partition,
            error,
            power_state: None,
            nonce: None,
        });
    }
    /// The first leaf does what it shall and says so.
    pub(crate) fn switch_obeys(&mut self) {
        self.leaf_obeys("leaf1");
    }
    /// A leaf does what it shall and says so.
    pub(crate) fn leaf_obeys(&mut self, leaf: &str) {
        let desired = self.fabric.desired(&text(leaf)).unwrap();
        let known = self.tables.get::<Switch>(&text(leaf)).unwrap().clone();
        let ports = desired.ports.into_iter().map(|port| {
            let before = known.ports[&port.name].observed.clone();
            let seen = PortObserved {
                admin_up: true,
                oper_up: true,
                vni: port.vni,
                bgp: None,
                ..before.unwrap_or_default()
            };
            (port.name, seen)
        });
        self.ok(ReportSwitch {
            id: text(leaf),
            applied_term: 1,
            applied_generation: self.tables.revision(),
            duration_ms: 1,
            error: None,
            ports: ports.collect(),
            health: None,
        });
    }
    pub(crate) fn port(&self, number: u128) -> u32 {
        let switch = self.tables.get::<Switch>(&text("leaf1")).unwrap();
        life::port_vni(&self.tables, switch, &format!("swp{number}")).get()
    }
}

impl World {
    /// An image for firewalls, and the networks that one of project 1 is asked for with.
    pub(crate) fn with_firewall_networks(&mut self) -> [&'static str; 2] {
        let mut firewall_image = image("firewall-3.0.1");
        firewall_image.features = [ImageFeature::Firewall].into();
        self.ok(CreateImage(firewall_image));
        self.ok(CreateNetwork {
            kind: NetworkType::External,
            prefixes: vec!["192.0.2.0/24".parse().unwrap()],
            default_child_length: ChildLength::default(),
            vrf: Some(100),
            ..network("internet")
        });
        self.ok(CreateNetwork {
            kind: NetworkType::Underlay,
            prefixes: vec!["10.1.0.0/24".parse().unwrap()],
            default_child_length: ChildLength::default(),
            ..network("underlay")
        });
        ["internet", "private"]
    }
}
