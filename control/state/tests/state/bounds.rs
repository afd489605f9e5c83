//! What one command may hold: every list and text has a bound, and no input makes `apply` slow.

use std::time::{Duration, Instant};

use control_state::*;

use crate::world::{SIZE, World, child, hardware, id, ip, leaf, ms, project, registration, text};

fn labels(count: usize) -> Labels {
    let entry = |number| (format!("key-{number:03}"), "value".to_owned());
    (0..count).map(entry).collect()
}

fn labelled(number: u128, labels: Labels) -> CreateProject {
    CreateProject {
        labels,
        ..project(number, "acme")
    }
}

#[test]
fn a_pattern_full_of_stars_takes_no_time() {
    let mut world = World::new();
    let constraint = |kind, identifier: &str| SizeConstraint {
        kind,
        min: 0,
        max: u64::MAX,
        identifier: Some(identifier.to_owned()).filter(|text| !text.is_empty()),
    };
    // Until the last byte every star may stand for anything.
    let stars = format!("{}b", "*a".repeat(20));
    world.ok(UpdateSize {
        id: text(SIZE),
        lock: Lock::Server,
        name: None,
        description: None,
        constraints: Some(vec![
            constraint(SizeConstraintType::Cores, &stars),
            constraint(SizeConstraintType::Memory, ""),
            constraint(SizeConstraintType::Storage, ""),
        ]),
        labels: None,
    });
    world.boot(1, "boot-1");
    let mut registration = registration(1, "boot-2");
    registration.hardware.cpus[0].model = "a".repeat(200);
    let begin = Instant::now();
    world.ok(registration);
    assert!(begin.elapsed() < Duration::from_secs(2));
    assert_eq!(world.machine(1).size, None);
}

#[test]
fn an_inventory_beyond_reason_is_refused_and_named() {
    let mut world = World::new();
    world.boot(1, "boot-1");
    type Harm = fn(&mut RegisterMachine);
    let harms: [(&str, Harm); 9] = [
        ("hardware.cpus.model", |op| {
            op.hardware.cpus[0].model = "x".repeat(256 << 10)
        }),
        ("hardware.cpus", |op| {
            op.hardware.cpus = vec![Cpu::default(); 5_000]
        }),
        ("hardware.disks", |op| {
            op.hardware.disks = vec![BlockDevice::default(); 5_000]
        }),
        ("hardware.nics", |op| {
            op.hardware.nics = vec![op.hardware.nics[0].clone(); 5_000]
        }),
        ("hardware.nics.neighbours", |op| {
            let heard = op.hardware.nics[0].neighbours[0].clone();
            op.hardware.nics[0].neighbours = vec![heard; 5_000];
        }),
        ("hardware.gpus", |op| {
            op.hardware.gpus = vec![Gpu::default(); 5_000]
        }),
        ("fru.product_serial", |op| {
            op.fru.product_serial = "x".repeat(10_000)
        }),
        ("bios.vendor", |op| op.bios.vendor = "x".repeat(10_000)),
        ("boot_id", |op| op.boot_id = "x".repeat(10_000)),
    ];
    for (field, harm) in harms {
        let mut op = registration(1, "boot-2");
        harm(&mut op);
        let error = world.apply(op).result.expect_err(field);
        assert_eq!(error.code, ErrorCode::InvalidField, "{field}");
        let named = error
            .message
            .starts_with(&format!("{field} must have at most "));
        assert!(named, "{field}: {}", error.message);
    }
    assert_eq!(world.machine(1).boot_id, "boot-1");
    assert_eq!(world.machine(1).hardware, hardware(1));
}

#[test]
fn what_switches_and_bmcs_tell_is_bounded() {
    let mut world = World::new();
    let name = |number: usize| format!("swp{number}");
    let mut many = leaf("leaf9", "rack-1");
    many.ports = (0..600).map(|number| (name(number), None)).collect();
    assert_eq!(world.refused(many), ErrorCode::InvalidField);
    let seen = |neighbours: usize| PortObserved {
        admin_up: true,
        oper_up: true,
        place: ObservedPlace::Segment,
        vni: proto_types::Vni::NONE,
        neighbours: vec![
            Neighbour {
                chassis_id: "c".into(),
                port_id: "p".into(),
                system_name: "s".into(),
                ..Neighbour::default()
            };
            neighbours
        ],
        bgp: None,
    };
    let report = |ports| ReportSwitch {
        id: text("leaf1"),
        applied_term: 1,
        applied_generation: 1,
        duration_ms: 1,
        error: None,
        ports,
        health: None,
    };
    let heard = report([("swp1".to_owned(), seen(500))].into());
    assert_eq!(world.refused(heard), ErrorCode::InvalidField);
    let ports = (0..600).map(|number| (name(number), seen(0)));
    assert_eq!(
        world.refused(report(ports.collect())),
        ErrorCode::InvalidField
    );
    let readings = ReportBmc {
        partition: text("lab"),
        readings: vec![BmcReading::default(); 10_000],
    };
    assert_eq!(world.refused(readings), ErrorCode::InvalidField);
    let told = BmcReading {
        machine: Some(id(7)),
        bios_vendor: "x".repeat(100_000),
        observed_at: ms(1),
        ..BmcReading::default()
    };
    let reading = ReportBmc {
        partition: text("lab"),
        readings: vec![told],
    };
    assert_eq!(world.refused(reading), ErrorCode::InvalidField);
}

#[test]
fn an_object_has_at_most_64_labels() {
    let mut world = World::new();
    world.ok(labelled(11, labels(64)));
    assert_eq!(
        world.refused(labelled(12, labels(65))),
        ErrorCode::InvalidField
    );
    let long = Labels::from([("key".to_owned(), "x".repeat(4096))]);
    assert_eq!(world.refused(labelled(12, long)), ErrorCode::InvalidField);
    let more = |labels| UpdateProject {
        id: id(11),
        lock: Lock::Server,
        name: None,
        description: None,
        avatar_url: None,
        labels: Some(labels),
    };
    // One by one they do not get past the bound either.
    let patch = LabelsUpdate::Patch {
        update: [("one-more".to_owned(), String::new())].into(),
        remove: vec![],
    };
    assert_eq!(world.refused(more(patch)), ErrorCode::InvalidField);
    assert_eq!(
        world.refused(more(LabelsUpdate::Replace(labels(65)))),
        ErrorCode::InvalidField
    );
    let swap = LabelsUpdate::Patch {
        update: [("one-more".to_owned(), String::new())].into(),
        remove: vec!["key-000".to_owned()],
    };
    world.ok(more(swap));
}

#[test]
fn the_systems_own_labels_do_not_count() {
    let mut world = World::new();
    let mut address = ip(21, "private", 1);
    address.labels = labels(64);
    world.ok(address);
    world.waiting(1);
    let network: proto_types::NetworkId = text("private");
    let address = control_state::query::network_ips(&world.tables, &network).next();
    let address = address.map(|ip| ip.ip).unwrap();
    world.ok(AllocateMachine {
        networks: vec![WantedNetwork {
            network,
            ips: vec![address],
        }],
        ..crate::world::allocation_of(1)
    });
    world.ok(UpdateIp {
        key: IpKey {
            namespace: None,
            ip: address,
        },
        lock: Lock::Server,
        project: id(1),
        name: None,
        description: Some("still".into()),
        kind: None,
        labels: Some(LabelsUpdate::Replace(labels(64))),
        underlay: false,
    });
    world.ok(child("another", 1));
}
