//! Firewalls get their rules over the mesh, and report what is in their kernels.

use std::time::Instant;

use control_state::{
    AllocateMachine, AllocationType, ChildLength, CreateImage, CreateIp, CreateNetwork,
    FirewallStatus, FreeMachine, ImageFeature, IpType, Labels, NetworkType, RuleSetKey, RuleTarget,
    SetFirewallRules, WantedNetwork,
};
use proto_firewall::{PortSpec, RuleContent, RuleOwner, RuleSpec};
use proto_identity::{Credential, Key};
use proto_link::MeshClient;
use proto_mesh::{
    Certificate, FirewallAppliedSet, FirewallDesired, FirewallDesiredRequest, FirewallReport,
    FirewallRoutes, FirewallServiceClient, FirewallUpdate,
};
use proto_types::{AllocationId, IpId, MachineId, ProjectId};
use tests_support::objects::{self, allocation_of, image, text};
use tokio::time::timeout;
use uuid::Uuid;

use crate::catalogue::{allocate, catalogue};
use crate::fixture::*;
use crate::matrix::{A, offer};

/// A project with a firewall between its network and the internet.
pub(crate) struct Site {
    pub(crate) control: Control,
    project: ProjectId,
    pub(crate) network: String,
    pub(crate) machine: MachineId,
}

impl Site {
    pub(crate) async fn start() -> Self {
        let control = Control::start().await;
        let (project, network) = catalogue(&control).await;
        let machine: MachineId = A.parse().unwrap();
        offer(&control, machine).await;
        let mut firewall_image = image("firewall-3.0.1");
        firewall_image.features = [ImageFeature::Firewall].into();
        control.propose(CreateImage(firewall_image)).await.unwrap();
        for (id, kind, prefix, vrf) in [
            ("internet", NetworkType::External, "192.0.2.0/24", Some(100)),
            ("underlay", NetworkType::Underlay, "10.1.0.0/24", None),
        ] {
            let made = control.propose(CreateNetwork {
                kind,
                partition: Some(text("p1")),
                prefixes: vec![prefix.parse().unwrap()],
                default_child_length: ChildLength::default(),
                vrf,
                ..objects::network(id)
            });
            made.await.unwrap();
        }
        Self {
            control,
            project,
            network,
            machine,
        }
    }

    pub(crate) async fn allocate_firewall(&self) {
        let networks = ["internet", &self.network].map(|name| WantedNetwork {
            network: text(name),
            ips: vec![],
        });
        let made = self.control.propose(AllocateMachine {
            id: AllocationId::new(Uuid::now_v7()),
            project: self.project,
            partition: Some(text("p1")),
            image: text("firewall-3.0.1"),
            kind: AllocationType::Firewall,
            networks: networks.to_vec(),
            ..allocation_of(1)
        });
        made.await.unwrap();
    }

    /// The credential of the installed system, as hammer gets it.
    pub(crate) async fn credential(&self) -> Credential {
        let key = Key::generate().unwrap();
        let csr = key.request().unwrap();
        let machine = self.control.machine(self.machine);
        let issued = self.control.pki.issue_project_machine(&machine, &csr).await;
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
        credential(answer, &key)
    }

    pub(crate) async fn agent(&self) -> MeshClient {
        self.control.client(Some(&self.credential().await))
    }

    pub(crate) async fn write(&self, set: &RuleSetKey, port: u32) {
        self.write_named(set, "web", port).await;
    }

    pub(crate) async fn write_named(&self, set: &RuleSetKey, name: &str, port: u32) {
        let rule = RuleSpec {
            name: name.into(),
            ports: vec![PortSpec {
                port: Some(port),
                ..PortSpec::default()
            }],
            ..RuleSpec::default()
        };
        let op = SetFirewallRules {
            set: set.clone(),
            project: None,
            content: RuleContent {
                egress_policies: vec![rule],
                ..RuleContent::default()
            },
            comment: String::new(),
            expected: None,
        };
        self.control.propose(op).await.unwrap();
    }

    /// The allocation of the firewall.
    pub(crate) fn allocation(&self) -> AllocationId {
        let machine = self.control.machine(self.machine);
        machine.allocation.as_ref().unwrap().id
    }

    pub(crate) fn set(&self, owner: RuleOwner) -> RuleSetKey {
        let target = RuleTarget::Firewall(self.machine);
        RuleSetKey { target, owner }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_reaches_the_firewall_and_its_report_comes_back() {
    let site = Site::start().await;
    site.allocate_firewall().await;
    let client: FirewallServiceClient = site.agent().await.into();
    let mut stream = client
        .desired(FirewallDesiredRequest::default())
        .await
        .unwrap();
    let first: FirewallDesired = next(&mut stream).await;
    assert_eq!(first.firewall, A);
    assert_eq!(first.project, site.project.to_string());
    let kinds: Vec<&str> = first
        .networks
        .iter()
        .map(|network| &*network.r#type)
        .collect();
    assert!(
        kinds.contains(&"external") && kinds.contains(&"child"),
        "{kinds:?}"
    );
    assert!(first.sets.is_empty() && first.seal.is_some());
    assert!(
        first.asn != 0 && first.distance == 0,
        "the only one is active"
    );

    let set = site.set(RuleOwner::Tenant);
    let target = RuleTarget::Network(text(&site.network));
    let owner = RuleOwner::Operator;
    let network = RuleSetKey { target, owner };
    for (set, port) in [(&set, 80), (&set, 81), (&network, 82)] {
        let begun = Instant::now();
        site.write(set, port).await;
        let desired = next(&mut stream).await;
        let took = begun.elapsed();
        assert!(
            took.as_millis() < 1_000,
            "{took:?} from the write to the firewall"
        );
        println!("{set}: {took:?} from the write to the firewall");
        let id = set.to_string();
        let found = desired.sets.iter().find(|found| found.id == id).unwrap();
        let content: RuleContent = serde_json::from_slice(&found.content).unwrap();
        assert_eq!(content.egress_policies[0].ports[0].port, Some(port));
        assert!(desired.generation > first.generation);
    }

    let report = FirewallReport {
        applied_term: first.term,
        applied_generation: first.generation + 1,
        sets: vec![FirewallAppliedSet {
            id: set.to_string(),
            revision: 2,
        }],
        agent_version: "1.2.3".into(),
        routes: Some(FirewallRoutes {
            wanted: 0,
            observed: Some(8),
            error: String::new(),
        }),
        update: Some(FirewallUpdate {
            phase: "failed".into(),
            wanted: "1.3.0".into(),
            error: "expiry: it was valid until yesterday".into(),
        }),
        ..FirewallReport::default()
    };
    client.report(report.clone()).await.unwrap();
    let status = |control: &Control| {
        let read = control.store.read_local(|tables| {
            let status = tables.get::<FirewallStatus>(&site.machine);
            (status.cloned(), tables.revision())
        });
        read.unwrap()
    };
    let (found, revision) = status(&site.control);
    let found = found.unwrap();
    assert_eq!(found.applied_sets[&set.to_string()], 2);
    assert_eq!(found.agent_version.as_deref(), Some("1.2.3"));
    let routes = found.routes.as_ref().unwrap();
    assert_eq!((routes.wanted, routes.observed), (0, Some(8)));
    let update = found.update.as_ref().unwrap();
    assert_eq!(
        (update.phase.as_str(), update.wanted.as_deref()),
        ("failed", Some("1.3.0"))
    );
    assert!(update.error.as_ref().unwrap().starts_with("expiry: "));
    client.report(report).await.unwrap();
    assert_eq!(
        status(&site.control).1,
        revision,
        "nothing new, nothing written"
    );
    site.control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_that_is_no_firewall_or_ended_gets_nothing() {
    let site = Site::start().await;
    allocate(&site.control, site.project, &site.network).await;
    let client: FirewallServiceClient = site.agent().await.into();
    let refused = async |client: &FirewallServiceClient| {
        let mut stream = client.desired(FirewallDesiredRequest::default()).await?;
        let first = timeout(PATIENCE, stream.message()).await;
        first.expect("a message or an end")
    };
    let error = refused(&client).await.unwrap_err();
    assert!(
        error.to_string().contains("not allocated as a firewall"),
        "{error}"
    );
    let report = client.report(FirewallReport::default()).await.unwrap_err();
    assert!(!report.is_transient(), "{report}");
    let free = FreeMachine {
        id: site.machine,
        project: Some(site.project),
    };
    site.control.propose(free).await.unwrap();
    site.control.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_address_of_the_project_reaches_the_firewall() {
    let site = Site::start().await;
    site.allocate_firewall().await;
    let client: FirewallServiceClient = site.agent().await.into();
    let mut stream = client
        .desired(FirewallDesiredRequest::default())
        .await
        .unwrap();
    let addresses = |desired: &FirewallDesired| {
        let mut networks = desired.networks.iter();
        let found = networks.find(|network| network.network == "internet");
        found.unwrap().addresses.clone().unwrap().prefixes
    };
    let first: FirewallDesired = next(&mut stream).await;
    let made = site.control.propose(CreateIp {
        id: IpId::new(Uuid::now_v7()),
        network: text("internet"),
        project: site.project,
        name: String::new(),
        description: String::new(),
        labels: Labels::new(),
        kind: IpType::Static,
        ip: Some("192.0.2.200".parse().unwrap()),
        family: None,
        machine: None,
        underlay: false,
    });
    made.await.unwrap();
    let desired = next(&mut stream).await;
    let new = "192.0.2.200/32".to_owned();
    assert!(!addresses(&first).contains(&new));
    assert!(addresses(&desired).contains(&new), "{desired:?}");
    for network in &desired.networks {
        let is_external = network.r#type == "external";
        assert_eq!(network.addresses.is_some(), is_external, "{network:?}");
    }
    site.control.stop().await;
}

#[test]
fn control_orders_the_distances_that_firewalls_have() {
    let longest = control_state::query::DISTANCE_MAX;
    assert_eq!(longest, proto_mesh::FIREWALL_DISTANCE_MAX);
}
