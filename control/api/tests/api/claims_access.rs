//! Tenants that share a pool: neither learns of the other, or of the machines under its own claims.

use proto_public::admin::v2 as admin;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::pool_service_client::PoolServiceClient;
use proto_public::metalmesh::tenant::v1 as tenant;
use proto_public::{Method, methods};
use serde_json::json;
use tonic::Code;

use crate::callers::{ABSENT, call_with};
use crate::claiming::*;
use crate::node::Node;
use crate::policy;
use crate::watching::{all, listed, of_project};

fn method(path: &str) -> &'static Method {
    proto_public::method(path).unwrap_or_else(|| panic!("no method {path}"))
}

/// A pool with two hosts, one of which the first tenant has.
async fn shared_pool() -> Node {
    let node = Node::start().await;
    node.data_centre().await;
    set_pool(&node, vec![everybody()]).await;
    for number in [1, 2] {
        let machine = node.waiting_machine(number).await;
        add_host(&node, &machine, &[("infra-kind", "medium"), ("shelf", "7")]).await;
    }
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_another_project_look_like_none() {
    let node = shared_pool().await;
    let (theirs, owner) = node.tenant("theirs").await;
    let (mine, token) = node.tenant("mine").await;
    let mut claims = Claims::new(node.wire(Some(&owner)));
    let foreign = create(&mut claims, &theirs, "web-1", asking(&[])).await;
    for (name, more) in [
        ("Get", json!({})),
        ("Update", json!({"spec": {}})),
        ("Delete", json!({})),
        ("Reboot", json!({"request": "once"})),
        ("SetHold", json!({"key": "job"})),
        ("ClearHold", json!({"key": "job"})),
    ] {
        let method = method(&format!("/metalmesh.tenant.v1.ClaimService/{name}"));
        let mut answers = Vec::new();
        for claim in [foreign.uuid.as_str(), ABSENT, "web-1"] {
            let mut body = more.clone();
            body["project"] = mine.as_str().into();
            body["claim"] = claim.into();
            let (code, message) = call_with(&node, method, Some(&token), body).await;
            assert_eq!(code, "not_found", "{name}: {message}");
            answers.push(message.replace(claim, "<it>"));
        }
        assert!(
            answers.iter().all(|answer| *answer == answers[0]),
            "{answers:?}"
        );
    }
    // Nor is it adopted, or seen in a list or a watch.
    let mut own = Claims::new(node.wire(Some(&token)));
    let adopted = tenant::ClaimServiceCreateRequest {
        adopt: Some(foreign.uuid.clone()),
        ..creation(&mine, "web-2", asking(&[]))
    };
    let refused = own.create(adopted).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let request = tenant::ClaimServiceListRequest {
        project: mine.clone(),
        ..Default::default()
    };
    let found = own.list(request).await.unwrap().into_inner();
    assert_eq!(found.claims, []);
    let request = tenant::ClaimServiceWatchRequest {
        project: theirs,
        ..Default::default()
    };
    let refused = own.watch(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let mut watch = of_project(node.wire(Some(&token)), &mine, &["claim"])
        .await
        .unwrap();
    assert_eq!(listed(&mut watch).await.0, []);
    assert_eq!(get(&mut claims, &foreign).await.state, "bound");
    node.stop().await;
}

/// "The owner of the servers controls who may use them": by id, and by a pattern over names that
/// only administrators give.
#[tokio::test(flavor = "multi_thread")]
async fn policies_admit_the_projects_that_they_name() {
    let node = Node::start().await;
    node.data_centre().await;
    let (first, _) = node.tenant("first").await;
    let (second, _) = node.tenant("second").await;
    let (third, outside) = node.tenant("third").await;
    let named = mesh::DeployPolicy {
        name: "named".into(),
        projects: vec![first.clone()],
        ..Default::default()
    };
    let pattern = mesh::DeployPolicy {
        name: "pattern".into(),
        pattern: Some("team-[a-z]+".into()),
        ..Default::default()
    };
    set_pool(&node, vec![named, pattern]).await;
    let mut pools = PoolServiceClient::new(node.as_admin());
    for (project, alias) in [(&second, "team-blue"), (&third, "no-team-blue")] {
        let request = mesh::PoolServiceSetProjectRequest {
            project: project.clone(),
            alias: alias.into(),
            ..Default::default()
        };
        pools.set_project(request).await.unwrap();
    }
    for number in 1..=3 {
        let machine = node.waiting_machine(number).await;
        add_host(&node, &machine, &[]).await;
    }
    for (login, project, state) in [
        ("first", &first, "bound"),
        ("second", &second, "bound"),
        ("third", &third, "pending"),
    ] {
        let token = node.token(login, project, api::ProjectRole::Editor).await;
        let mut claims = Claims::new(node.wire(Some(&token)));
        let claim = create(&mut claims, project, "web-1", asking(&[])).await;
        let status = claim.status.unwrap();
        assert_eq!(status.state, state, "{login}");
        if state == "pending" {
            let told = (status.pending_reason.as_str(), status.matching);
            assert_eq!(told, ("NoPolicy", 0), "not that there are hosts");
        }
    }
    let broken = mesh::DeployPolicy {
        name: "broken".into(),
        pattern: Some("(".into()),
        ..Default::default()
    };
    let request = mesh::PoolServiceSetRequest {
        pool: Some(mesh::HostPool {
            id: "other".into(),
            policies: vec![broken],
            ..Default::default()
        }),
        expected_generation: None,
    };
    let refused = pools.set(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    // Pools, hosts and the labels of projects are the administrators'.
    let mut asked = 0;
    for method in methods() {
        if method.service == "metalmesh.admin.v1.PoolService" {
            let (code, _) = call_with(&node, method, Some(&outside), json!({})).await;
            assert_eq!(code, "permission_denied", "{}", method.path);
            asked += 1;
        }
    }
    assert_eq!(asked, 13);
    node.stop().await;
}

/// "Tenants trying to bypass the selection": the machine of a claim is reached through the claim
/// alone, and nothing that its project reads names it.
#[tokio::test(flavor = "multi_thread")]
async fn the_machine_under_a_claim_stays_hidden() {
    let node = shared_pool().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let mut claims = Claims::new(node.wire(Some(&token)));
    let spec = installing(&[], &network);
    let claim = create(&mut claims, &project, "web-1", spec).await;
    let machine = claimed_machine(&node, &claim.uuid).await;
    node.installed_claim(&machine).await;
    // Policies do not see it either: a refusal would tell that it is there.
    let deny = "deny contains {\"rule\": \"seen\", \"message\": \"it is there\"} if \
                input.resource.kind == \"machine\"";
    let source = policy::about("metalstack.api.v2.MachineService/Get", deny);
    policy::set(&node, "seen", &source).await.unwrap();
    let lock = json!({"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER"});
    for (name, more) in [
        ("Get", json!({})),
        ("Update", json!({"updateMeta": lock})),
        ("Delete", json!({})),
        ("GetBMC", json!({})),
        ("BMCCommand", json!({"command": "MACHINE_BMC_COMMAND_OFF"})),
    ] {
        let method = method(&format!("/metalstack.api.v2.MachineService/{name}"));
        let mut answers = Vec::new();
        for uuid in [machine.as_str(), ABSENT] {
            let mut body = more.clone();
            body["project"] = project.as_str().into();
            body["uuid"] = uuid.into();
            let (code, message) = call_with(&node, method, Some(&token), body).await;
            assert_eq!(code, "not_found", "{name}: {message}");
            answers.push(message.replace(uuid, "<it>"));
        }
        assert_eq!(answers[0], answers[1], "{name}");
    }
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    let request = api::MachineServiceListRequest {
        project: project.clone(),
        query: None,
    };
    let found = machines.list(request).await.unwrap().into_inner();
    assert_eq!(found.machines, []);
    let mut ips = api::ip_service_client::IpServiceClient::new(node.wire(Some(&token)));
    let request = api::IpServiceListRequest {
        project: project.clone(),
        query: None,
    };
    let found = ips.list(request).await.unwrap().into_inner().ips;
    assert_eq!(found.len(), 1);
    let mut watch = of_project(node.wire(Some(&token)), &project, &[])
        .await
        .unwrap();
    let (told, _) = listed(&mut watch).await;
    assert!(told.iter().any(|change| change.kind == "claim"));
    let hidden = ["machine", "pool", "pool-host", "project-labels"];
    assert!(
        told.iter()
            .all(|event| !hidden.contains(&event.kind.as_str()))
    );
    let told: Vec<u8> = told
        .into_iter()
        .flat_map(|change| change.object.unwrap_or_default().value)
        .collect();
    let told = String::from_utf8_lossy(&told);
    let status = get(&mut claims, &claim).await;
    for text in [format!("{found:?}"), format!("{status:?}"), told.into()] {
        for secret in [machine.as_str(), "shelf", "leaf1", "swp1"] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
    let refused = of_project(node.wire(Some(&token)), &project, &["pool-host"]).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    // Administrators see all of it.
    let mut everything = all(node.as_admin(), &["claim", "pool-host"], 0)
        .await
        .unwrap();
    assert_eq!(listed(&mut everything).await.0.len(), 3);
    node.stop().await;
}

/// The machine of a claim, as administrators see it.
async fn claimed_machine(node: &Node, claim: &str) -> String {
    let mut pools = PoolServiceClient::new(node.as_admin());
    let request = mesh::PoolServiceListClaimsRequest::default();
    let found = pools.list_claims(request).await.unwrap().into_inner();
    let mut found = found.claims.into_iter();
    let own = found.find(|event| event.claim.as_ref().is_some_and(|own| own.uuid == claim));
    own.unwrap().machine
}

/// Hosts of pools are handed out by claims alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_pooled_machine_is_not_allocated_by_its_size() {
    let node = shared_pool().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let mut machines =
        api::machine_service_client::MachineServiceClient::new(node.wire(Some(&token)));
    let request = crate::node::wanted_machine(&project, &network, "web-1");
    let refused = machines.create(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let mut partitions =
        admin::partition_service_client::PartitionServiceClient::new(node.as_admin());
    let request = admin::PartitionServiceCapacityRequest::default();
    let found = partitions.capacity(request).await.unwrap().into_inner();
    let sizes = &found.partition_capacity[0].machine_size_capacities;
    assert_eq!((sizes[0].total, sizes[0].waiting, sizes[0].free), (2, 2, 0));
    // Nor by its id, by an administrator.
    let machine = host_id(&node).await;
    let request = api::MachineServiceCreateRequest {
        uuid: Some(machine),
        partition: None,
        size: None,
        ..crate::node::wanted_machine(&project, &network, "web-1")
    };
    let mut machines = api::machine_service_client::MachineServiceClient::new(node.as_admin());
    let refused = machines.create(request).await.unwrap_err();
    assert!(refused.message().starts_with("MM-2007"), "{refused}");
    node.stop().await;
}

/// The machine of a host.
async fn host_id(node: &Node) -> String {
    let mut pools = PoolServiceClient::new(node.as_admin());
    let request = mesh::PoolServiceListHostsRequest::default();
    let found = pools.list_hosts(request).await.unwrap().into_inner();
    found.hosts[0].machine.clone()
}
