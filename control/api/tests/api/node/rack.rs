//! What stands in the racks of a node: a partition with a leaf, and machines.

use std::time::{Duration, Instant};

use control_state::{
    BmcAction, BmcOrderDone, DiskWipe, EventKind, MachineEvent, MachineSeen, PortObserved,
    RegisterMachine, RegisterSwitch, ReportSwitch, WipeDone,
};
use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_types::{MacAddr, MachineId, PartitionId, SwitchId};
use tests_support::objects;
use uuid::Uuid;

use super::Node;

/// Longest wait for a condition.
const PATIENCE: Duration = Duration::from_secs(20);

impl Node {
    /// Partition "lab", size "small", image, super network, and a leaf switch.
    pub(crate) async fn data_centre(&self) {
        let wire = self.as_admin();
        let partition = api::Partition {
            id: "lab".into(),
            ..Default::default()
        };
        admin::partition_service_client::PartitionServiceClient::new(wire.clone())
            .create(admin::PartitionServiceCreateRequest {
                partition: Some(partition),
            })
            .await
            .unwrap();
        admin::size_service_client::SizeServiceClient::new(wire.clone())
            .create(admin::SizeServiceCreateRequest {
                size: Some(small()),
            })
            .await
            .unwrap();
        admin::image_service_client::ImageServiceClient::new(wire.clone())
            .create(admin::ImageServiceCreateRequest {
                image: Some(debian()),
            })
            .await
            .unwrap();
        let request = admin::NetworkServiceCreateRequest {
            id: Some("super".into()),
            partition: Some("lab".into()),
            r#type: api::NetworkType::Super.into(),
            prefixes: vec!["10.128.0.0/16".into()],
            default_child_prefix_length: Some(api::ChildPrefixLength {
                ipv4: Some(24),
                ipv6: None,
            }),
            ..Default::default()
        };
        admin::network_service_client::NetworkServiceClient::new(wire)
            .create(request)
            .await
            .unwrap();
        self.hardware(leaf(8)).await;
    }

    /// A machine that booted, was wiped and waits; its port is `swp<number>`.
    pub(crate) async fn waiting_machine(&self, number: u128) -> String {
        self.waiting_machine_at(number, number).await
    }

    /// The same, which says that it hangs at `swp<port>`.
    pub(crate) async fn waiting_machine_at(&self, number: u128, port: u128) -> String {
        let id = self.registered_machine(number, port).await;
        self.wiped_machine(id, "").await;
        id.to_string()
    }

    /// A machine that booted and registered; it says that it hangs at `swp<port>`.
    pub(crate) async fn registered_machine(&self, number: u128, port: u128) -> MachineId {
        let id = MachineId::new(Uuid::from_u128(number));
        let mac: MacAddr = format!("02:00:00:00:00:{number:02x}").parse().unwrap();
        let partition: PartitionId = "lab".parse().unwrap();
        let seen_at = self.store.now();
        self.hardware(MachineSeen {
            id,
            partition,
            mac: Some(mac),
            seen_at,
            to_disk: false,
            stated_at: None,
            relayed: None,
        })
        .await;
        for kind in [EventKind::Preparing, EventKind::Registering] {
            self.event(id, kind).await;
        }
        self.hardware(registration(id, mac, port)).await;
        id
    }

    /// The disk of a machine was wiped by a method, and it waits.
    pub(crate) async fn wiped_machine(&self, id: MachineId, method: &str) {
        let disk = DiskWipe {
            name: "/dev/vda".into(),
            method: method.into(),
            ..Default::default()
        };
        self.hardware(WipeDone {
            id,
            disks: vec![disk],
        })
        .await;
        self.event(id, EventKind::Waiting).await;
    }

    pub(crate) async fn event(&self, id: MachineId, kind: EventKind) {
        let time = self.store.now();
        self.hardware(MachineEvent {
            id,
            kind,
            message: String::new(),
            time,
        })
        .await;
    }

    /// The BMC agent carries out every open order of a kind, once there is one.
    pub(crate) async fn bmc_obeys(&self, action: BmcAction) {
        let partition: PartitionId = "lab".parse().unwrap();
        let until = Instant::now() + PATIENCE;
        loop {
            let open = self.store.read_local(|tables| {
                let orders = control_state::life::bmc_desired(tables, &partition);
                orders
                    .iter()
                    .find(|order| order.action == action)
                    .map(|order| order.id)
            });
            if let Some(id) = open.unwrap() {
                let partition = partition.clone();
                self.hardware(BmcOrderDone {
                    id,
                    partition,
                    error: None,
                    power_state: None,
                    nonce: None,
                })
                .await;
                self.leaf_obeys().await;
                return;
            }
            assert!(Instant::now() < until, "no order {action:?} came");
            tokio::task::yield_now().await;
        }
    }

    /// The leaf moves its ports as it shall, and says so.
    pub(crate) async fn leaf_obeys(&self) {
        let id: SwitchId = "leaf1".parse().unwrap();
        let wanted = self.store.read_local(|tables| {
            let desired = control_state::life::Fabric::of(tables).desired(&id);
            (desired.unwrap().ports, tables.revision())
        });
        let (ports, applied_generation) = wanted.unwrap();
        let ports = ports.into_iter().map(|port| {
            let seen = PortObserved {
                admin_up: port.admin_up,
                oper_up: true,
                vni: port.vni,
                ..PortObserved::default()
            };
            (port.name, seen)
        });
        self.hardware(ReportSwitch {
            id,
            applied_term: 1,
            applied_generation,
            duration_ms: 1,
            error: None,
            ports: ports.collect(),
            health: None,
        })
        .await;
    }
}

/// Leaf `leaf1` with so many ports; its agent does not tell whom it hears.
pub(crate) fn leaf(ports: u128) -> RegisterSwitch {
    RegisterSwitch {
        room: String::new(),
        vtep_ip: None,
        ports: (1..=ports)
            .map(|port| (format!("swp{port}"), None))
            .collect(),
        os_version: "12".into(),
        agent_version: "v0".into(),
        hears: false,
        ..objects::leaf("leaf1", "rack-1")
    }
}

fn registration(id: MachineId, mac: MacAddr, port: u128) -> RegisterMachine {
    let mut registration = objects::registration(port, "boot-1");
    registration.id = id;
    registration.hammer_version = "v0".into();
    let hardware = &mut registration.hardware;
    hardware.disks.retain(|disk| !disk.removable);
    hardware.disks[0].size = 20 << 30;
    hardware.nics[0].mac = mac;
    hardware.nics[0].identifier = "0000:00:03.0".into();
    registration
}

fn small() -> api::Size {
    use api::SizeConstraintType as Kind;
    let constraint = |kind: Kind, min, max| api::SizeConstraint {
        r#type: kind.into(),
        min,
        max,
        identifier: None,
    };
    api::Size {
        id: "small".into(),
        constraints: vec![
            constraint(Kind::Cores, 1, 4),
            constraint(Kind::Memory, 1, 4 << 30),
            constraint(Kind::Storage, 1, 100 << 30),
        ],
        ..Default::default()
    }
}

pub(crate) fn debian() -> api::Image {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let labels = [("metalmesh.dev/digest".to_owned(), digest)].into();
    api::Image {
        id: "debian-12.0.20260101".into(),
        meta: Some(api::Meta {
            labels: Some(api::Labels { labels }),
            ..Default::default()
        }),
        url: "http://images.example/debian.tar.zst".into(),
        features: vec![api::ImageFeature::Machine.into()],
        classification: api::ImageClassification::Supported.into(),
        ..Default::default()
    }
}
