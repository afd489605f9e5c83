//! The prefixes that a firewall may announce by EVPN in each of its networks.

use control_state::life::NetworkFilter;
use control_state::*;
use proto_types::{IpId, IpNet, NetworkId, ProjectId};

use crate::evpn::{allocated, port, world};
use crate::world::*;

/// A world with the networks of firewalls, and one that leads everywhere, `mpls`.
fn with_networks() -> World {
    let mut world = world();
    world.with_firewall_networks();
    world.ok(CreateNetwork {
        kind: NetworkType::External,
        prefixes: ["198.51.100.0/24", "2001:db8:77::/48"]
            .map(|prefix| prefix.parse().unwrap())
            .to_vec(),
        destination_prefixes: ["0.0.0.0/0", "10.0.0.0/8", "172.16.0.0/12", "2001:db8::/32"]
            .map(|prefix| prefix.parse().unwrap())
            .to_vec(),
        default_child_length: ChildLength::default(),
        vrf: Some(101),
        ..network("mpls")
    });
    world
}

/// A child of a super network that others may join.
fn shared(name: &str, project: u128) -> CreateNetwork {
    CreateNetwork {
        kind: NetworkType::ChildShared,
        project: Some(id(project)),
        prefixes: vec![],
        default_child_length: ChildLength::default(),
        ..network(name)
    }
}

/// Installs a firewall of project 1 on `swp<number>`.
fn firewall(world: &mut World, number: u128, networks: &[&str]) {
    world.waiting(number);
    let networks = networks.iter().map(|name| WantedNetwork {
        network: text(name),
        ips: vec![],
    });
    let wanted = AllocateMachine {
        kind: AllocationType::Firewall,
        image: text("firewall-3.0"),
        networks: networks.collect(),
        ..allocation_of(number)
    };
    allocated(world, number, wanted);
}

/// The filter of a firewall in a network, and the firewall's addresses there as prefixes.
fn filter(world: &World, number: u128, name: &str) -> (NetworkFilter, Vec<String>) {
    let network = world.tables.get::<Network>(&text(name)).unwrap();
    let found = port(world, "leaf1", &format!("swp{number}"));
    let networks = found.filter.unwrap().networks;
    let filter = networks[&network.vrf.unwrap()].clone();
    let allocation = world.machine(number).allocation.clone().unwrap();
    let mut joined = allocation.networks.iter();
    let joined = joined.find(|of| of.network == network.id).unwrap();
    let own = joined.ips.iter().map(|ip| format!("{ip}/32"));
    (filter, own.collect())
}

fn texts(prefixes: &std::collections::BTreeSet<IpNet>) -> Vec<String> {
    prefixes.iter().map(ToString::to_string).collect()
}

fn sorted(prefixes: &[&str], own: &[String]) -> Vec<String> {
    let own = own.iter().map(String::as_str);
    let all = prefixes.iter().copied().chain(own);
    let all: std::collections::BTreeSet<IpNet> =
        all.map(|prefix| prefix.parse().unwrap()).collect();
    texts(&all)
}

/// The prefix of `private` is 10.128.0.0/22, so that 10.0.0.0/8 passes without its parts.
#[test]
fn a_firewall_is_the_way_out_of_its_projects_network() {
    let mut world = with_networks();
    firewall(&mut world, 1, &["internet", "mpls", "private"]);
    let (filter, own) = filter(&world, 1, "private");
    assert_eq!(texts(&filter.routes), ["0.0.0.0/0", "10.0.0.0/8"]);
    let ways = [
        "192.0.2.0/24",
        "198.51.100.0/24",
        "172.16.0.0/12",
        "2001:db8::/32",
    ];
    assert_eq!(texts(&filter.prefixes), sorted(&ways, &own));
}

/// Both of a project's firewalls may have any address of the project, also one that a machine of it
/// has behind them. Addresses of others, and of other networks, do not pass.
#[test]
fn in_an_external_network_a_firewall_has_its_projects_addresses_alone() {
    let mut world = with_networks();
    firewall(&mut world, 1, &["internet", "private"]);
    firewall(&mut world, 2, &["internet", "mpls", "private"]);
    world.ok(ip(11, "internet", 1));
    world.ok(ip(12, "internet", 2));
    world.ok(ip(13, "mpls", 1));
    let addresses = |name: &str, project: u128| {
        let (network, project): (NetworkId, ProjectId) = (text(name), id(project));
        let ips = world.tables.all::<Ip>();
        let ips = ips.filter(|ip| ip.network == network && ip.project == project);
        let ips: Vec<_> = ips.map(|ip| ip.ip.into()).collect();
        let ips = IpNet::aggregate(&ips).into_iter();
        texts(&ips.collect())
    };
    for number in [1, 2] {
        let (filter, _) = filter(&world, number, "internet");
        assert_eq!(texts(&filter.routes), Vec::<String>::new());
        assert_eq!(texts(&filter.prefixes), addresses("internet", 1));
    }
    let of_two = addresses("internet", 2);
    let (filter, _) = filter(&world, 2, "mpls");
    assert_eq!(texts(&filter.prefixes), addresses("mpls", 1));
    assert!(!of_two.iter().any(|of| texts(&filter.prefixes).contains(of)));
}

/// The owner's firewall is the way out of a shared network. A guest's is not: there it has its
/// project's addresses, and the prefixes of its project that nobody else has.
#[test]
fn a_guest_is_no_way_out_of_a_shared_network() {
    let mut world = with_networks();
    world.ok(shared("own-shared", 1));
    world.ok(shared("storage", 2));
    firewall(&mut world, 1, &["mpls", "private", "own-shared"]);
    firewall(&mut world, 2, &["mpls", "private", "storage"]);
    let prefix = |name: &str| {
        let found = world.tables.get::<Network>(&text(name)).unwrap();
        found.prefixes[0].to_string()
    };
    let [own_shared, storage] = [prefix("own-shared"), prefix("storage")];

    let (in_own, own) = filter(&world, 1, "own-shared");
    assert_eq!(texts(&in_own.routes), ["0.0.0.0/0", "10.0.0.0/8"]);
    let ways = [
        "198.51.100.0/24",
        "172.16.0.0/12",
        "2001:db8::/32",
        "10.128.0.0/22",
    ];
    assert_eq!(texts(&in_own.prefixes), sorted(&ways, &own));

    let (as_guest, own) = filter(&world, 2, "storage");
    assert_eq!(texts(&as_guest.routes), Vec::<String>::new());
    assert_eq!(texts(&as_guest.prefixes), sorted(&["10.128.0.0/22"], &own));
    let (in_private, _) = filter(&world, 2, "private");
    assert!(texts(&in_private.prefixes).contains(&storage));
    assert!(!texts(&in_private.prefixes).contains(&own_shared));
}

/// In a namespace another project may have the same prefix.
#[test]
fn prefixes_of_a_namespace_stay_out_of_shared_networks() {
    let mut world = with_networks();
    world.ok(CreateNetwork {
        kind: NetworkType::SuperNamespaced,
        partition: None,
        ..network("spaces")
    });
    world.ok(CreateChildNetwork {
        partition: None,
        parent: Some(text("spaces")),
        ..child("space", 1)
    });
    world.ok(shared("storage", 2));
    firewall(&mut world, 1, &["internet", "space", "storage"]);
    let (filter, own) = filter(&world, 1, "storage");
    assert_eq!(texts(&filter.prefixes), own);
}

/// The world proves after each step that the switches are told, and that nothing else differs.
#[test]
fn an_address_that_comes_or_goes_changes_the_filter() {
    let mut world = with_networks();
    firewall(&mut world, 1, &["internet", "private"]);
    let before = filter(&world, 1, "internet").0;
    world.ok(ip(11, "internet", 1));
    let with_it = filter(&world, 1, "internet").0;
    assert_ne!(before, with_it);
    let added: IpId = id(11);
    let mut ips = world.tables.all::<Ip>();
    let key = IpKey {
        namespace: None,
        ip: ips.find(|ip| ip.id == added).unwrap().ip,
    };
    drop(ips);
    world.ok(DeleteIp {
        key,
        project: id(1),
        underlay: false,
    });
    assert_eq!(filter(&world, 1, "internet").0, before);
}
