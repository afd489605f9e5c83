//! Who gets which machine, and with what.

use crate::world::*;
use control_state::*;
use proto_types::ASN_BASE;
use std::net::IpAddr;

#[test]
fn everything_at_once() {
    let mut world = World::new();
    world.waiting(1);
    let outcome = world.apply(allocation_of(1));
    let kinds: Vec<_> = outcome.changes.iter().map(|change| change.kind).collect();
    assert_eq!(
        kinds,
        [Kind::Ip, Kind::Machine, Kind::PoolCursor, Kind::PoolCursor],
        "of addresses and AS numbers"
    );
    let machine = outcome.result.unwrap().machine().unwrap();
    let allocation = machine.allocation.as_ref().unwrap();
    assert_eq!(allocation.asn.0, ASN_BASE + 1);
    assert_eq!(allocation.image, text(IMAGE));
    assert_eq!(allocation.created_by, "tester");
    assert_eq!(
        machine.meta.labels[label::MACHINE_ASN],
        (ASN_BASE + 1).to_string()
    );
    let ip = world.tables.all::<Ip>().next().unwrap();
    assert_eq!((ip.machine, ip.kind), (Some(id(1)), IpType::Ephemeral));
    assert_eq!(ip.meta.labels[label::MACHINE_ID], machine.id.to_string());
    assert_eq!(ip.description, "autoassigned");
}

#[test]
fn the_same_key_gives_the_same_machine() {
    let mut world = World::new();
    world.waiting(1);
    world.waiting(2);
    let with = |allocation, request| AllocateMachine {
        idempotency: Some(IdempotencyRequest {
            key: "k".into(),
            request: sha(request),
        }),
        ..allocation_of(allocation)
    };
    let first = world.ok(with(1, 1)).machine().unwrap();
    let again = world.apply(with(2, 1));
    assert_eq!(again.changes, vec![]);
    assert_eq!(again.result.unwrap().machine().unwrap(), first);
    assert_eq!(world.refused(with(2, 2)), ErrorCode::KeyReused);
    let other = AllocateMachine {
        project: id(2),
        networks: vec![WantedNetwork {
            network: text("other"),
            ips: vec![],
        }],
        ..with(3, 1)
    };
    world.ok(child("other", 2));
    assert_ne!(
        world.ok(other).machine().unwrap().id,
        first.id,
        "keys are the project's own"
    );
    world.ok(FreeMachine {
        id: first.id,
        project: Some(id(1)),
    });
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    assert_eq!(world.refused(with(4, 1)), ErrorCode::KeySpent);
    world.tick(25 * 3_600_000);
    assert_eq!(world.tables.all::<Idempotency>().count(), 0);
}

#[test]
fn bad_requests() {
    type Change = fn(&mut AllocateMachine);
    let cases: &[(Change, ErrorCode)] = &[
        (|op| op.name = "x".into(), ErrorCode::InvalidField),
        (
            |op| op.hostname = Some("no_host".into()),
            ErrorCode::InvalidField,
        ),
        (
            |op| op.userdata = "x".repeat(40_000),
            ErrorCode::InvalidField,
        ),
        (
            |op| op.ssh_public_keys = vec!["k".into(); 51],
            ErrorCode::InvalidField,
        ),
        (
            |op| op.ssh_public_keys = vec![" k".into()],
            ErrorCode::InvalidField,
        ),
        (|op| op.networks.clear(), ErrorCode::InvalidField),
        (
            |op| op.networks = vec![op.networks[0].clone(); 2],
            ErrorCode::InvalidField,
        ),
        (|op| op.machine = Some(id(1)), ErrorCode::InvalidField),
        (|op| op.partition = None, ErrorCode::InvalidField),
        (|op| op.size = None, ErrorCode::InvalidField),
        (|op| op.project = id(9), ErrorCode::NotFound),
        (
            |op| op.partition = Some(text("nowhere")),
            ErrorCode::NotFound,
        ),
        (|op| op.size = Some(text("huge")), ErrorCode::NotFound),
        (|op| op.image = text("debian-13.0"), ErrorCode::NotFound),
        (|op| op.image = text("debian"), ErrorCode::ImageIdInvalid),
        (|op| op.layout = Some(text("none")), ErrorCode::NotFound),
        (
            |op| op.networks[0].network = text("none"),
            ErrorCode::NotFound,
        ),
        (
            |op| op.networks[0].network = text("super"),
            ErrorCode::NetworkNotAllowed,
        ),
        (
            |op| op.networks[0].ips = vec!["10.128.0.9".parse().unwrap()],
            ErrorCode::NotFound,
        ),
        (
            |op| op.kind = AllocationType::Firewall,
            ErrorCode::InvalidField,
        ),
        (|op| op.project = id(2), ErrorCode::NotFound),
    ];
    let mut world = World::new();
    world.waiting(1);
    for (at, (change, code)) in cases.iter().enumerate() {
        let mut op = allocation_of(1);
        change(&mut op);
        assert_eq!(world.refused(op), *code, "case {at}");
    }
    world.allocate(1);
}

#[test]
fn images() {
    let mut world = World::new();
    world.waiting(1);
    let mut newer = image("debian-12.0.20260301");
    newer.classification = Classification::Preview;
    world.ok(CreateImage(newer));
    let mut bare = image("debian-11.0.1");
    bare.meta.labels.clear();
    world.ok(CreateImage(bare));
    let mut old = image("debian-10.0.1");
    old.expires_at = world.now.plus_ms(1);
    world.ok(CreateImage(old));
    world.later(1000);
    world.event(1, EventKind::Alive);
    let with = |name: &str| AllocateMachine {
        image: text(name),
        ..allocation_of(1)
    };
    assert_eq!(
        world.refused(with("debian-11.0")),
        ErrorCode::ImageWithoutDigest
    );
    assert_eq!(
        world.refused(with("debian-10.0.1")),
        ErrorCode::ImageNotUsable
    );
    let expired = world.apply(with("debian-10.0")).result.unwrap_err();
    assert_eq!(expired.code, ErrorCode::NotFound);
    assert!(expired.hint.contains("debian-10.0.1"), "{}", expired.hint);
    world.ok(CreateSizeImageConstraint(SizeImageConstraint {
        size: text(SIZE),
        meta: Meta::default(),
        name: None,
        description: None,
        image_constraints: vec![ImageConstraint {
            image: "debian".into(),
            semver_match: ">= 12.1".into(),
        }],
    }));
    assert_eq!(world.refused(with("debian-12.0")), ErrorCode::ImageExcluded);
    world.ok(DeleteSizeImageConstraint(text(SIZE)));
    let machine = world.ok(with("debian-12.0")).machine().unwrap();
    assert_eq!(
        machine.allocation.as_ref().unwrap().image,
        text(IMAGE),
        "supported, not preview"
    );
    assert_eq!(
        world.refused(DeleteImage(text(IMAGE))),
        ErrorCode::StillInUse
    );
}

fn layout(name: &str, size_mib: u64) -> Layout {
    Layout {
        id: text(name),
        meta: Meta::default(),
        name: None,
        description: None,
        filesystems: vec![],
        disks: vec![Disk {
            device: "/dev/vda".into(),
            partitions: vec![DiskPartition {
                number: 1,
                label: None,
                size_mib,
                gpt_type: None,
            }],
        }],
        raids: vec![],
        volume_groups: vec![],
        logical_volumes: vec![],
        constraints: LayoutConstraints {
            sizes: [text(SIZE)].into(),
            images: [("debian".to_owned(), ">= 12.0".to_owned())].into(),
        },
    }
}

#[test]
fn layouts() {
    let mut world = World::new();
    world.waiting(1);
    world.ok(CreateLayout(layout("fits", 100)));
    assert_eq!(
        world.refused(CreateLayout(layout("same", 100))),
        ErrorCode::LayoutsCollide
    );
    let mut big = layout("big", 100_000);
    big.constraints = LayoutConstraints::default();
    world.ok(CreateLayout(big));
    let with = |name: &str| AllocateMachine {
        layout: Some(text(name)),
        ..allocation_of(1)
    };
    assert_eq!(world.refused(with("big")), ErrorCode::LayoutDoesNotFit);
    let chosen = |world: &World, op| {
        let reply = world.clone().ok(op).machine().unwrap();
        reply.allocation.as_ref().unwrap().layout.id.to_string()
    };
    let matching = AllocateMachine {
        layout: None,
        ..allocation_of(1)
    };
    assert_eq!(chosen(&world, matching.clone()), "fits");
    let mut without = World::new();
    without.waiting(1);
    assert_eq!(without.refused(matching), ErrorCode::InvalidField);
    assert_eq!(chosen(&world, with(LAYOUT_DEFAULT)), LAYOUT_DEFAULT);
    assert_eq!(
        query::match_layout(&world.tables, &text(SIZE), &text(IMAGE)),
        Ok(text("fits"))
    );
}

#[test]
fn given_addresses() {
    let mut world = World::new();
    world.waiting(1);
    world.waiting(2);
    let create = |number, kind| CreateIp {
        id: id(number),
        network: text("private"),
        project: id(1),
        name: String::new(),
        description: String::new(),
        labels: Labels::new(),
        kind,
        ip: None,
        family: None,
        machine: None,
        underlay: false,
    };
    let fixed = world.ok(create(1, IpType::Static)).ip().unwrap().ip;
    let loose = world.ok(create(2, IpType::Ephemeral)).ip().unwrap().ip;
    let with = |allocation, ips: &[IpAddr]| AllocateMachine {
        networks: vec![WantedNetwork {
            network: text("private"),
            ips: ips.to_vec(),
        }],
        ..allocation_of(allocation)
    };
    let machine = world.ok(with(1, &[fixed, loose])).machine().unwrap();
    assert_eq!(world.refused(with(2, &[fixed])), ErrorCode::InvalidField);
    world.ok(child("other", 1));
    let elsewhere = AllocateMachine {
        networks: vec![WantedNetwork {
            network: text("other"),
            ips: vec![fixed],
        }],
        ..allocation_of(2)
    };
    assert_eq!(world.refused(elsewhere), ErrorCode::AddressNotInNetwork);
    let key = IpKey {
        namespace: None,
        ip: fixed,
    };
    assert_eq!(
        world.refused(DeleteIp {
            key,
            project: id(1),
            underlay: false
        }),
        ErrorCode::AddressInUse
    );
    world.ok(FreeMachine {
        id: machine.id,
        project: Some(id(1)),
    });
    world.bmc(BmcAction::PowerOff, None);
    world.switch_obeys();
    let left: Vec<_> = world.tables.all::<Ip>().collect();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].ip, left[0].machine), (fixed, None));
    assert!(!left[0].meta.labels.contains_key(label::MACHINE_ID));
    world.ok(DeleteIp {
        key,
        project: id(1),
        underlay: false,
    });
}

#[test]
fn firewalls() {
    let mut world = World::new();
    world.waiting(1);
    let mut firewall_image = image("firewall-3.0.1");
    firewall_image.features = [ImageFeature::Firewall].into();
    world.ok(CreateImage(firewall_image));
    let internet = CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec!["192.0.2.0/24".parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf: Some(100),
        ..network("internet")
    };
    world.ok(internet);
    let wanted = |names: &[&str]| AllocateMachine {
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: names
            .iter()
            .map(|name| WantedNetwork {
                network: text(name),
                ips: vec![],
            })
            .collect(),
        ..allocation_of(1)
    };
    assert_eq!(
        world.refused(wanted(&["private"])),
        ErrorCode::NetworkNotAllowed
    );
    assert_eq!(
        world.refused(wanted(&["internet"])),
        ErrorCode::NetworkNotAllowed
    );
    assert_eq!(
        world.refused(wanted(&["internet", "private"])),
        ErrorCode::NotFound,
        "no underlay yet"
    );
    world.ok(CreateNetwork {
        kind: NetworkType::Underlay,
        prefixes: vec!["10.1.0.0/24".parse().unwrap()],
        default_child_length: ChildLength::default(),
        ..network("underlay")
    });
    let machine = world
        .ok(wanted(&["internet", "private"]))
        .machine()
        .unwrap();
    let kinds: Vec<_> = machine
        .allocation
        .as_ref()
        .unwrap()
        .networks
        .iter()
        .map(|n| n.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            NetworkType::External,
            NetworkType::Child,
            NetworkType::Underlay
        ]
    );
}
