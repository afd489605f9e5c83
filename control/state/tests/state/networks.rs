//! Networks and addresses.

use control_state::*;

use crate::world::*;

fn dual() -> CreateNetwork {
    CreateNetwork {
        prefixes: vec![
            "10.128.0.0/14".parse().unwrap(),
            "fd00::/48".parse().unwrap(),
        ],
        default_child_length: ChildLength {
            v4: Some(22),
            v6: Some(64),
        },
        min_child_length: ChildLength {
            v4: Some(20),
            v6: None,
        },
        ..network("super")
    }
}

/// No networks yet.
fn bare() -> World {
    let mut world = World::new();
    world.ok(DeleteNetwork {
        id: text("private"),
        project: Some(id(1)),
    });
    world.ok(DeleteNetwork {
        id: text("super"),
        project: None,
    });
    // What these had is as good as new.
    world.tick(600_000);
    world
}

fn namespaced(name: &str) -> CreateNetwork {
    CreateNetwork {
        kind: NetworkType::SuperNamespaced,
        partition: None,
        ..network(name)
    }
}

fn external(name: &str, prefix: &str, vrf: u32) -> CreateNetwork {
    CreateNetwork {
        kind: NetworkType::External,
        prefixes: vec![prefix.parse().unwrap()],
        default_child_length: ChildLength::default(),
        vrf: Some(vrf),
        ..network(name)
    }
}

#[test]
fn fields_by_type() {
    type Change = fn(&mut CreateNetwork);
    let cases: &[(NetworkType, Change, ErrorCode)] = {
        use ErrorCode::{NetworkFieldMissing as Missing, NetworkFieldNotAllowed as NotAllowed};
        use NetworkType::{Child, ChildShared, External, Super, SuperNamespaced, Underlay};
        &[
            (Super, |op| op.prefixes.clear(), Missing),
            (
                Super,
                |op| op.default_child_length = ChildLength::default(),
                Missing,
            ),
            (Super, |op| op.parent = Some(text("x1")), NotAllowed),
            (
                Super,
                |op| {
                    op.length = ChildLength {
                        v4: Some(22),
                        v6: None,
                    }
                },
                NotAllowed,
            ),
            (
                Super,
                |op| op.default_child_length.v4 = Some(8),
                ErrorCode::InvalidField,
            ),
            (
                Super,
                |op| op.default_child_length.v4 = Some(14),
                ErrorCode::InvalidField,
            ),
            (
                Super,
                |op| op.default_child_length.v6 = Some(64),
                ErrorCode::InvalidField,
            ),
            (
                Super,
                |op| op.min_child_length.v4 = Some(14),
                ErrorCode::InvalidField,
            ),
            (
                Super,
                |op| op.min_child_length.v6 = Some(64),
                ErrorCode::InvalidField,
            ),
            (
                Super,
                |op| op.min_child_length.v4 = Some(24),
                ErrorCode::InvalidField,
            ),
            (
                Super,
                |op| op.prefixes = vec!["10.0.0.1/16".parse().unwrap()],
                ErrorCode::InvalidField,
            ),
            (
                Super,
                |op| op.prefixes.push("10.128.64.0/18".parse().unwrap()),
                ErrorCode::PrefixOverlap,
            ),
            (Super, |op| op.vrf = Some(4000), ErrorCode::AlreadyExists),
            (SuperNamespaced, |_| {}, NotAllowed),
            (
                SuperNamespaced,
                |op| {
                    op.partition = None;
                    op.vrf = Some(9);
                },
                ErrorCode::InvalidField,
            ),
            (External, |_| {}, NotAllowed),
            (
                External,
                |op| op.default_child_length = ChildLength::default(),
                Missing,
            ),
            (
                External,
                |op| {
                    op.default_child_length = ChildLength::default();
                    op.vrf = Some(4000);
                    op.destination_prefixes = vec!["::/0".parse().unwrap()];
                },
                ErrorCode::InvalidField,
            ),
            (
                Underlay,
                |op| {
                    op.default_child_length = ChildLength::default();
                    op.vrf = Some(1);
                },
                NotAllowed,
            ),
            (
                Underlay,
                |op| {
                    op.default_child_length = ChildLength::default();
                    op.prefixes = vec!["fd00::/64".parse().unwrap()];
                },
                ErrorCode::InvalidField,
            ),
            (Child, |_| {}, Missing),
            (Child, |op| op.project = Some(id(1)), NotAllowed),
            (
                ChildShared,
                |op| {
                    op.prefixes.clear();
                    op.default_child_length = ChildLength::default();
                },
                Missing,
            ),
        ]
    };
    let mut world = bare();
    for (at, (kind, change, code)) in cases.iter().enumerate() {
        let mut op = CreateNetwork {
            kind: *kind,
            ..network("new-net")
        };
        change(&mut op);
        assert_eq!(world.refused(op), *code, "case {at} {kind:?}");
    }
}

#[test]
fn children_by_version_of_ip() {
    let mut world = bare();
    world.ok(dual());
    let cases = [
        (None, vec!["10.128.0.0/22", "fd00::/64"]),
        (Some(NetworkFamily::V4), vec!["10.128.4.0/22"]),
        (Some(NetworkFamily::V6), vec!["fd00:0:0:1::/64"]),
        (
            Some(NetworkFamily::Dual),
            vec!["10.128.8.0/22", "fd00:0:0:2::/64"],
        ),
    ];
    let mut vrfs = std::collections::BTreeSet::new();
    for (at, (family, expected)) in cases.into_iter().enumerate() {
        let op = CreateChildNetwork {
            family,
            ..child(&format!("child-{at}"), 1)
        };
        let network = world.ok(op).network().unwrap();
        let prefixes: Vec<_> = network.prefixes.iter().map(ToString::to_string).collect();
        assert_eq!(prefixes, expected);
        assert_eq!(network.partition, Some(text(PARTITION)));
        assert!(vrfs.insert(network.vrf.unwrap()), "a VRF of its own");
    }
    let short = ChildLength {
        v4: Some(16),
        v6: None,
    };
    let op = CreateChildNetwork {
        length: short,
        ..child("short", 1)
    };
    assert_eq!(world.refused(op), ErrorCode::InvalidField);
    let whole = ChildLength {
        v4: Some(14),
        v6: None,
    };
    let op = CreateChildNetwork {
        length: whole,
        ..child("whole", 1)
    };
    assert_eq!(world.refused(op), ErrorCode::InvalidField);
    let long = ChildLength {
        v4: Some(28),
        v6: None,
    };
    let op = CreateChildNetwork {
        length: long,
        family: Some(NetworkFamily::V4),
        ..child("long", 1)
    };
    assert_eq!(
        world.ok(op).network().unwrap().prefixes[0].to_string(),
        "10.128.12.0/28"
    );

    world.ok(DeleteNetwork {
        id: text("child-1"),
        project: Some(id(1)),
    });
    let again = world.ok(CreateChildNetwork {
        family: Some(NetworkFamily::V4),
        ..child("again", 1)
    });
    assert_eq!(
        again.network().unwrap().prefixes[0].to_string(),
        "10.128.16.0/22",
        "gaps are used when the end is reached"
    );
}

#[test]
fn children_of_what() {
    let mut world = World::new();
    world.ok(CreatePartition(partition("empty")));
    let mut op = child("new-net", 1);
    op.partition = Some(text("empty"));
    assert_eq!(world.refused(op.clone()), ErrorCode::NoSuperNetwork);
    op.partition = None;
    assert_eq!(world.refused(op.clone()), ErrorCode::InvalidField);
    op.parent = Some(text("private"));
    assert_eq!(world.refused(op.clone()), ErrorCode::NetworkNotAllowed);
    op.parent = Some(text("super"));
    world.ok(op.clone());
    op.id = text("both");
    op.partition = Some(text(PARTITION));
    assert_eq!(world.refused(op), ErrorCode::InvalidField);
    assert_eq!(world.refused(child("x-net", 9)), ErrorCode::NotFound);
    assert_eq!(world.refused(child("private", 1)), ErrorCode::AlreadyExists);
    assert_eq!(world.refused(network("second")), ErrorCode::PrefixOverlap);
    let second = CreateNetwork {
        prefixes: vec!["172.16.0.0/16".parse().unwrap()],
        ..network("second")
    };
    assert_eq!(world.refused(second), ErrorCode::InvalidField);
}

#[test]
fn namespaces_may_overlap() {
    let mut world = World::new();
    world.ok(namespaced("anyone"));
    let of = |name: &str, project| CreateChildNetwork {
        partition: None,
        parent: Some(text("anyone")),
        ..child(name, project)
    };
    let one = world.ok(of("ns-1", 1)).network().unwrap();
    let two = world.ok(of("ns-2", 2)).network().unwrap();
    let three = world.ok(of("ns-3", 1)).network().unwrap();
    assert_eq!(one.prefixes, two.prefixes);
    assert_ne!(one.prefixes, three.prefixes);
    assert_ne!(one.vrf, two.vrf);
    let first = world.ok(ip(1, "ns-1", 1)).ip().unwrap();
    let second = world.ok(ip(2, "ns-2", 2)).ip().unwrap();
    assert_eq!(first.ip, second.ip);
    assert_eq!(world.tables.all::<Ip>().count(), 2);
    let key = IpKey {
        namespace: Some(id(1)),
        ip: first.ip,
    };
    assert_eq!(
        world.refused(DeleteIp {
            key,
            project: id(2),
            underlay: false
        }),
        ErrorCode::NotFound
    );
    world.ok(DeleteIp {
        key,
        project: id(1),
        underlay: false,
    });
}

#[test]
fn pools_run_dry() {
    let mut world = bare();
    world.ok(CreateNetwork {
        prefixes: vec!["10.0.0.0/29".parse().unwrap()],
        default_child_length: ChildLength {
            v4: Some(30),
            v6: None,
        },
        ..network("super")
    });
    world.ok(child("c-1", 1));
    world.ok(child("c-2", 1));
    assert_eq!(world.refused(child("c-3", 1)), ErrorCode::PrefixesExhausted);
    let ip = |number, ip: Option<&str>| CreateIp {
        id: id(number),
        network: text("c-1"),
        project: id(1),
        name: String::new(),
        description: String::new(),
        labels: Labels::new(),
        kind: IpType::Ephemeral,
        ip: ip.map(|ip| ip.parse().unwrap()),
        family: None,
        machine: None,
        underlay: false,
    };
    world.ok(ip(1, None));
    assert_eq!(
        world.refused(ip(2, Some("10.0.0.1"))),
        ErrorCode::AddressTaken
    );
    assert_eq!(
        world.refused(ip(2, Some("10.0.0.3"))),
        ErrorCode::AddressNotInNetwork
    );
    assert_eq!(
        world.refused(ip(2, Some("10.9.0.1"))),
        ErrorCode::AddressNotInNetwork
    );
    world.ok(ip(2, Some("10.0.0.2")));
    assert_eq!(world.refused(ip(3, None)), ErrorCode::AddressesExhausted);
    let network = world.tables.get::<Network>(&text("c-1")).unwrap();
    let usage = query::network_usage(&world.tables, network, Family::V4).unwrap();
    assert_eq!((usage.available_ips, usage.used_ips), (2, 2));
    let parent = world.tables.get::<Network>(&text("super")).unwrap();
    let usage = query::network_usage(&world.tables, parent, Family::V4).unwrap();
    assert_eq!((usage.available_prefixes, usage.used_prefixes), (2, 2));
    assert_eq!(
        query::network_usage(&world.tables, parent, Family::V6),
        None
    );
}

#[test]
fn what_is_used_stays() {
    let mut world = World::new();
    world.waiting(1);
    world.allocate(1);
    let delete = |name: &str| DeleteNetwork {
        id: text(name),
        project: None,
    };
    assert_eq!(world.refused(delete("super")), ErrorCode::StillInUse);
    assert_eq!(world.refused(delete("private")), ErrorCode::StillInUse);
    let foreign = DeleteNetwork {
        id: text("private"),
        project: Some(id(2)),
    };
    assert_eq!(world.refused(foreign), ErrorCode::NotFound);
    assert_eq!(
        world.refused(DeleteProject { id: id(1) }),
        ErrorCode::StillInUse
    );
    assert_eq!(
        world.refused(DeletePartition(text(PARTITION))),
        ErrorCode::StillInUse
    );
    assert_eq!(world.refused(DeleteSize(text(SIZE))), ErrorCode::StillInUse);
}

#[test]
fn updates() {
    let mut world = World::new();
    let update = |name: &str| UpdateNetwork {
        id: text(name),
        lock: Lock::Server,
        project: None,
        name: None,
        description: None,
        labels: None,
        prefixes: None,
        destination_prefixes: None,
        default_child_length: None,
        min_child_length: None,
        nat: None,
        additional_announcable_cidrs: None,
        force: false,
    };
    let prefixes = |nets: &[&str]| Some(nets.iter().map(|net| net.parse().unwrap()).collect());
    let cases = [
        (
            UpdateNetwork {
                prefixes: prefixes(&[]),
                ..update("super")
            },
            ErrorCode::InvalidField,
        ),
        (
            UpdateNetwork {
                prefixes: prefixes(&["10.9.0.0/16"]),
                ..update("super")
            },
            ErrorCode::StillInUse,
        ),
        (
            UpdateNetwork {
                prefixes: prefixes(&["10.9.0.0/16"]),
                ..update("private")
            },
            ErrorCode::NetworkFieldNotAllowed,
        ),
        (
            UpdateNetwork {
                lock: Lock::Client(ms(1)),
                ..update("super")
            },
            ErrorCode::Conflict,
        ),
        (
            UpdateNetwork {
                project: Some(id(2)),
                ..update("private")
            },
            ErrorCode::NotFound,
        ),
    ];
    for (op, code) in cases {
        assert_eq!(world.refused(op), code);
    }
    let more = prefixes(&["10.128.0.0/16", "10.130.0.0/16"]);
    world.ok(UpdateNetwork {
        prefixes: more,
        ..update("super")
    });
    let before = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .meta
        .clone();
    let lock = Lock::Client(before.updated_at);
    let named = UpdateNetwork {
        lock,
        name: Some("mine".into()),
        ..update("private")
    };
    let after = world.ok(named.clone()).network().unwrap();
    assert_eq!(after.meta.generation, before.generation + 1);
    assert!(after.meta.updated_at > before.updated_at);
    assert_eq!(
        world.refused(named),
        ErrorCode::Conflict,
        "the second of two writers"
    );
}

#[test]
fn vrfs_are_not_shared_by_chance() {
    let mut world = World::new();
    let private = world
        .tables
        .get::<Network>(&text("private"))
        .unwrap()
        .vrf
        .unwrap();
    assert_eq!(
        world.refused(external("net-a", "192.0.2.0/24", private)),
        ErrorCode::AlreadyExists
    );
    assert_eq!(
        world.refused(external("net-a", "192.0.2.0/24", PROVISIONING_VNI_DEFAULT)),
        ErrorCode::AlreadyExists
    );
    assert_eq!(
        world.refused(external("net-a", "192.0.2.0/24", 1 << 24)),
        ErrorCode::InvalidField
    );
    assert_eq!(
        world.refused(external("net-a", "10.128.0.0/24", 77)),
        ErrorCode::PrefixOverlap
    );
    world.ok(external("net-a", "192.0.2.0/24", 77));
}

#[test]
fn an_underlay_is_the_administrators() {
    let mut world = World::new();
    world.ok(CreateNetwork {
        kind: NetworkType::Underlay,
        prefixes: vec!["192.0.2.0/29".parse().unwrap()],
        default_child_length: ChildLength::default(),
        ..network("underlay")
    });
    assert_eq!(
        world.refused(ip(1, "underlay", 1)),
        ErrorCode::PermissionDenied
    );
    world.ok(CreateIp {
        underlay: true,
        ..ip(1, "underlay", 1)
    });
}

#[test]
fn a_version_that_the_network_lacks() {
    let mut world = World::new();
    let wanted = CreateIp {
        family: Some(Family::V6),
        ..ip(1, "private", 1)
    };
    assert_eq!(world.refused(wanted), ErrorCode::InvalidField);
}

#[test]
fn who_is_there_is_said_before_what_is_wrong() {
    let mut world = World::new();
    let wrong = CreateNetwork {
        prefixes: Vec::new(),
        partition: Some(text("nowhere")),
        ..network("super")
    };
    assert_eq!(world.refused(wrong), ErrorCode::AlreadyExists);
}

#[test]
fn super_networks_of_no_partition_and_of_a_project() {
    let mut world = bare();
    world.ok(CreateNetwork {
        partition: None,
        ..network("anywhere")
    });
    let of_one = CreateNetwork {
        project: Some(id(1)),
        prefixes: vec!["172.16.0.0/16".parse().unwrap()],
        ..network("of-one")
    };
    world.ok(of_one);
    let out_of = |name: &str, parent: &str, project| CreateChildNetwork {
        partition: None,
        parent: Some(text(parent)),
        ..child(name, project)
    };
    world.ok(out_of("child-1", "anywhere", 2));
    world.ok(out_of("child-2", "of-one", 1));
    let foreign = out_of("child-3", "of-one", 2);
    assert_eq!(world.refused(foreign), ErrorCode::NotFound);
    // The partition's own is for everybody, or it has none.
    assert_eq!(
        world.refused(child("child-4", 1)),
        ErrorCode::NoSuperNetwork
    );
    world.ok(CreateNetwork {
        project: Some(id(2)),
        vrf: Some(4001),
        ..namespaced("spaces-of-two")
    });
    let child = world.ok(out_of("child-5", "spaces-of-two", 2));
    let child = child.network().unwrap();
    assert_eq!((child.namespace, child.vrf), (Some(id(2)), Some(4001)));
}

/// What an update that changes nothing says of every field.
fn unchanged(network: &Network) -> UpdateNetwork {
    UpdateNetwork {
        id: network.id.clone(),
        lock: Lock::Server,
        project: None,
        name: network.name.clone(),
        description: network.description.clone(),
        labels: None,
        prefixes: Some(network.prefixes.clone()),
        destination_prefixes: Some(network.destination_prefixes.clone()),
        default_child_length: Some(network.default_child_length),
        min_child_length: Some(network.min_child_length),
        nat: Some(network.nat),
        additional_announcable_cidrs: Some(network.additional_announcable_cidrs.clone()),
        force: false,
    }
}

#[test]
fn each_type_can_be_written_back() {
    let mut world = World::new();
    world.ok(CreateNetwork {
        destination_prefixes: vec!["0.0.0.0/0".parse().unwrap()],
        nat: Some(NatType::Ipv4Masquerade),
        ..external("internet", "192.0.2.0/24", 77)
    });
    world.ok(CreateNetwork {
        kind: NetworkType::Underlay,
        prefixes: vec!["198.51.100.0/24".parse().unwrap()],
        default_child_length: ChildLength::default(),
        ..network("underlay")
    });
    world.ok(namespaced("anyone"));
    for name in ["super", "private", "internet", "underlay", "anyone"] {
        let key = text(name);
        let before = world.tables.get::<Network>(&key).unwrap().clone();
        let after = world.ok(unchanged(&before)).network().unwrap();
        let same = Network {
            meta: before.meta.clone(),
            ..Network::clone(&after)
        };
        assert_eq!(same, *before, "{name}");
    }
    let internet = world.tables.get::<Network>(&text("internet")).unwrap();
    let other_version = UpdateNetwork {
        destination_prefixes: Some(vec!["::/0".parse().unwrap()]),
        ..unchanged(internet)
    };
    assert_eq!(world.refused(other_version), ErrorCode::InvalidField);
}
