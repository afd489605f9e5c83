//! Networks and addresses over random changes, in a store that is closed and opened between them:
//! nothing overlaps, nothing is given out twice, nothing stays behind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use control_state::{
    ChildLength, CreateChildNetwork, CreateIp, CreateNetwork, CreatePartition, CreateProject,
    DeleteIp, DeleteNetwork, ErrorCode, Family, Ip, IpKey, IpType, Labels, Meta, Network,
    NetworkFamily, Op, Partition, Reply, StateError, Tables, label, query,
};
use control_store::{ProposeError, Store, StoreConfig};
use ipnet::IpNet;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use proto_types::{IpId, NetworkId, ProjectId};
use tests_support::{objects, propose};
use uuid::Uuid;

const PROJECTS: u128 = 2;
/// Children that fit into the super network, of each version.
const CHILDREN: usize = 8;
/// Addresses for hosts in a child network of IPv4.
const HOSTS: u64 = 6;

#[derive(Debug, Clone)]
enum Step {
    Child(u128, u8),
    DeleteChild(usize),
    Ip(usize, u8),
    DeleteIp(usize),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..PROJECTS, 0..3u8).prop_map(|(project, family)| Step::Child(project, family)),
        3 => (0..16usize).prop_map(Step::DeleteChild),
        8 => (0..16usize, 0..2u8).prop_map(|(network, family)| Step::Ip(network, family)),
        5 => (0..64usize).prop_map(Step::DeleteIp),
        1 => Just(Step::Restart),
    ]
}

/// A store, and what it must hold.
struct World {
    store: Store,
    children: BTreeMap<NetworkId, ProjectId>,
    ips: BTreeMap<IpKey, (IpId, ProjectId)>,
    counter: u128,
}

fn project(number: u128) -> ProjectId {
    ProjectId::new(Uuid::from_u128(number + 1))
}

async fn open(dir: &Path) -> Store {
    Store::open(StoreConfig::new(dir, 1, "test")).await.unwrap()
}

impl World {
    async fn new(dir: &Path) -> Self {
        let world = Self {
            store: open(dir).await,
            children: BTreeMap::new(),
            ips: BTreeMap::new(),
            counter: 100,
        };
        world.catalogue().await;
        world
    }

    async fn catalogue(&self) {
        self.ok(objects::tenant("acme", None)).await;
        for number in 0..PROJECTS {
            self.ok(CreateProject {
                id: project(number),
                ..objects::project(number, "acme")
            })
            .await;
        }
        // What is given back is there for everybody at once.
        let cooldown = (label::NUMBER_COOLDOWN.to_owned(), "0".to_owned());
        self.ok(CreatePartition(Partition {
            meta: Meta::labelled([cooldown].into()),
            ..objects::partition("lab")
        }))
        .await;
        self.ok(CreateNetwork {
            prefixes: vec![
                "10.0.0.0/26".parse().unwrap(),
                "2001:db8::/61".parse().unwrap(),
            ],
            default_child_length: ChildLength {
                v4: Some(29),
                v6: Some(64),
            },
            ..objects::network("super")
        })
        .await;
    }

    async fn propose(&self, op: impl Into<Op>) -> Result<Reply, ProposeError<StateError>> {
        propose(&self.store, op).await
    }

    async fn ok(&self, op: impl Into<Op>) -> Reply {
        self.propose(op).await.unwrap()
    }

    /// What works, or why it was refused.
    async fn tried(&self, op: impl Into<Op>) -> Result<Reply, ErrorCode> {
        self.propose(op).await.map_err(|error| match error {
            ProposeError::Rejected(error) => error.code,
            ProposeError::Store(error) => panic!("{error}"),
        })
    }

    async fn step(&mut self, step: &Step, dir: &Path) {
        self.counter += 1;
        match step {
            Step::Child(of, family) => self.child(project(*of), *family).await,
            Step::DeleteChild(at) => {
                let id = self.children.keys().nth(*at).cloned();
                if let Some(id) = id {
                    self.delete_child(&id).await;
                }
            }
            Step::Ip(at, family) => {
                let network = self.children.iter().nth(*at);
                if let Some((network, of)) = network.map(|(id, of)| (id.clone(), *of)) {
                    self.ip(network, of, *family).await;
                }
            }
            Step::DeleteIp(at) => {
                let key = self.ips.keys().nth(*at).copied();
                if let Some(key) = key {
                    self.delete_ip(key).await;
                }
            }
            Step::Restart => self.restart(dir).await,
        }
    }

    async fn restart(&mut self, dir: &Path) {
        self.store.shutdown().await;
        self.store = open(dir).await;
    }

    async fn child(&mut self, of: ProjectId, family: u8) {
        let id: NetworkId = format!("child-{}", self.counter).parse().unwrap();
        let made = self
            .tried(CreateChildNetwork {
                project: of,
                family: Some(match family {
                    0 => NetworkFamily::V4,
                    1 => NetworkFamily::V6,
                    _ => NetworkFamily::Dual,
                }),
                ..objects::child(id.as_str(), 1)
            })
            .await;
        match made {
            Ok(_) => drop(self.children.insert(id, of)),
            Err(code) => assert_eq!(code, ErrorCode::PrefixesExhausted),
        }
    }

    async fn delete_child(&mut self, id: &NetworkId) {
        let network = id.clone();
        let used = self
            .store
            .read_local(|t| query::network_ips(t, &network).count());
        let op = DeleteNetwork {
            id: id.clone(),
            project: self.children.get(id).copied(),
        };
        match self.tried(op).await {
            Ok(_) => {
                assert_eq!(used.unwrap(), 0, "{id} had addresses");
                self.children.remove(id);
            }
            Err(code) => {
                assert_eq!(code, ErrorCode::StillInUse);
                assert_ne!(used.unwrap(), 0, "{id} was empty");
            }
        }
    }

    async fn ip(&mut self, network: NetworkId, of: ProjectId, family: u8) {
        let id = IpId::new(Uuid::from_u128(self.counter));
        let made = self
            .tried(CreateIp {
                id,
                network,
                project: of,
                name: String::new(),
                description: String::new(),
                labels: Labels::new(),
                kind: IpType::Static,
                ip: None,
                family: (family == 1).then_some(Family::V6),
                machine: None,
                underlay: false,
            })
            .await;
        match made {
            Ok(reply) => {
                let made = reply.ip().unwrap();
                let key = IpKey {
                    namespace: made.namespace,
                    ip: made.ip,
                };
                assert!(
                    self.ips.insert(key, (id, of)).is_none(),
                    "{key} was given out twice"
                );
            }
            Err(code) => assert!(
                matches!(
                    code,
                    ErrorCode::AddressesExhausted
                        | ErrorCode::InvalidField
                        | ErrorCode::AddressNotInNetwork
                ),
                "{code:?}"
            ),
        }
    }

    async fn delete_ip(&mut self, key: IpKey) {
        let (_, project) = self.ips.remove(&key).unwrap();
        self.ok(DeleteIp {
            key,
            project,
            underlay: false,
        })
        .await;
    }

    /// All that must hold, of what is there now.
    fn check(&self) {
        let checked = self.store.read_local(|tables| {
            let ips: BTreeMap<_, _> = tables
                .all::<Ip>()
                .map(|it| {
                    (
                        IpKey {
                            namespace: it.namespace,
                            ip: it.ip,
                        },
                        (it.id, it.project),
                    )
                })
                .collect();
            assert_eq!(ips, self.ips, "addresses");
            let children = tables.all::<Network>().filter(|it| it.kind.is_child());
            let of = |it: &std::sync::Arc<Network>| (it.id.clone(), it.project.unwrap());
            assert_eq!(children.map(of).collect::<BTreeMap<_, _>>(), self.children);
            prefixes(tables);
            usage(tables);
        });
        checked.unwrap();
    }

    /// Everything is given back, and there is as much room as in the beginning.
    async fn give_back(&mut self, dir: &Path) {
        for key in self.ips.keys().copied().collect::<Vec<_>>() {
            self.delete_ip(key).await;
        }
        for id in self.children.keys().cloned().collect::<Vec<_>>() {
            self.delete_child(&id).await;
        }
        assert!(self.children.is_empty() && self.ips.is_empty());
        self.restart(dir).await;
        self.check();
        for number in 0..CHILDREN {
            self.counter += 1;
            self.child(project(0), 2).await;
            assert_eq!(self.children.len(), number + 1, "room is missing");
        }
        self.counter += 1;
        self.child(project(0), 2).await;
        assert_eq!(self.children.len(), CHILDREN, "more than there is room for");
        self.check();
    }
}

/// Children lie in their super network, apart from each other; so do the numbers of their VRFs.
fn prefixes(tables: &Tables) {
    let above = tables.get::<Network>(&"super".parse().unwrap()).unwrap();
    let children: Vec<_> = tables
        .all::<Network>()
        .filter(|it| it.kind.is_child())
        .collect();
    let all: Vec<&IpNet> = children.iter().flat_map(|it| &it.prefixes).collect();
    for (at, prefix) in all.iter().enumerate() {
        assert!(
            above.prefixes.iter().any(|it| it.contains(*prefix)),
            "{prefix}"
        );
        for other in &all[at + 1..] {
            let apart = !prefix.contains(*other) && !other.contains(*prefix);
            assert!(apart, "{prefix} overlaps {other}");
        }
    }
    let vrfs: BTreeSet<_> = children.iter().filter_map(|it| it.vrf).collect();
    assert_eq!(vrfs.len(), children.len(), "a VRF twice, or none");
}

/// What is said to be used is what is there.
fn usage(tables: &Tables) {
    for network in tables.all::<Network>().filter(|it| it.kind.is_child()) {
        for ip in query::network_ips(tables, &network.id) {
            assert!(network.prefix_of(ip.ip).is_some(), "{ip:?}");
            assert_eq!(Some(ip.project), network.project);
        }
        if let Some(usage) = query::network_usage(tables, network, Family::V4) {
            let mut here = query::network_ips(tables, &network.id);
            let count = here.by_ref().filter(|ip| ip.ip.is_ipv4()).count();
            assert_eq!(usage.used_ips, u64::try_from(count).unwrap());
            assert!(usage.used_ips <= HOSTS, "{usage:?}");
        }
    }
}

#[test]
fn nothing_overlaps_and_nothing_stays_behind() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let config = Config {
        cases: 24,
        // Each case opens stores on a disk.
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let steps = prop::collection::vec(step(), 1..80);
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        let case = || {
            runtime.block_on(async {
                let dir = tempfile::tempdir().unwrap();
                let mut world = World::new(dir.path()).await;
                for step in &steps {
                    world.step(step, dir.path()).await;
                    world.check();
                }
                world.give_back(dir.path()).await;
                world.store.shutdown().await;
            });
        };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(case));
        caught.map_err(|_| TestCaseError::fail("see the panic above"))
    });
    outcome.unwrap();
}
