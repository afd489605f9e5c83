//! Site policies from outside: what they take, what they give, and what they never can.

use api::ip_service_client::IpServiceClient;
use api::machine_service_client::MachineServiceClient;
use mesh::audit_trail_service_client::AuditTrailServiceClient;
use mesh::policy_service_client::PolicyServiceClient;
use proto_public::api::v2 as api;
use proto_public::metalmesh::admin::v1 as mesh;
use proto_public::metalmesh::admin::v1::WatchChangeType::Created;
use tonic::{Code, Status};

use crate::node::{Node, Wire, wanted_machine};
use crate::watching::{brief, listed, news, of_project};

const LIST: &str = "metalstack.api.v2.MachineService/List";
const GUESTS: &str = include_str!("../../../policy/tests/examples/guests.rego");
const BIG_MACHINES: &str = include_str!("../../../policy/tests/examples/big-machines.rego");

/// A policy about one method.
pub(crate) fn about(method: &str, rules: &str) -> String {
    format!("package site\nimport rego.v1\nmethods := {{\"{method}\"}}\n{rules}")
}

pub(crate) async fn set(node: &Node, name: &str, source: &str) -> Result<mesh::Policy, Status> {
    let request = mesh::PolicyServiceSetRequest {
        name: name.to_owned(),
        source: source.to_owned(),
        ..Default::default()
    };
    let set = PolicyServiceClient::new(node.as_admin()).set(request).await;
    set.map(|it| it.into_inner().policy.unwrap())
}

async fn remove(node: &Node, name: &str) {
    let name = name.to_owned();
    let request = mesh::PolicyServiceRemoveRequest { name };
    let mut policies = PolicyServiceClient::new(node.as_admin());
    policies.remove(request).await.unwrap();
}

async fn list(wire: Wire, project: &str) -> Result<(), Status> {
    let request = api::MachineServiceListRequest {
        project: project.to_owned(),
        ..Default::default()
    };
    MachineServiceClient::new(wire)
        .list(request)
        .await
        .map(drop)
}

async fn create_ip(wire: Wire, project: &str, network: &str) -> Result<(), Status> {
    let request = api::IpServiceCreateRequest {
        project: project.to_owned(),
        network: network.to_owned(),
        ..Default::default()
    };
    IpServiceClient::new(wire).create(request).await.map(drop)
}

/// An administrator's token that reads.
async fn admin_viewer(node: &Node) -> String {
    let wanted = api::TokenServiceCreateRequest {
        admin_role: Some(api::AdminRole::Viewer.into()),
        ..Default::default()
    };
    node.token_of("acme", wanted).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deny_takes_away_from_every_caller_and_tells_strangers_nothing() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    let (_, stranger) = node.tenant("rival").await;
    let login = node.login("acme").await;
    let viewer = admin_viewer(&node).await;
    let callers = [&token, &login, &viewer, &node.admin];
    for caller in callers {
        list(node.wire(Some(caller)), &project).await.unwrap();
    }
    let before = list(node.wire(Some(&stranger)), &project)
        .await
        .unwrap_err();
    let deny =
        "deny contains {\"rule\": \"closed\", \"message\": \"ask the desk\"} if input.method";
    set(&node, "night", &about(LIST, deny)).await.unwrap();
    for caller in callers {
        let refused = list(node.wire(Some(caller)), &project).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        let wanted = "MM-1105 /metalstack.api.v2.MachineService/List is not allowed by rule \
                      night/closed of this site: ask the desk";
        assert!(refused.message().starts_with(wanted), "{refused}");
    }
    // Whoever does not see the project is told what it was told before; nobody is told less.
    let after = list(node.wire(Some(&stranger)), &project)
        .await
        .unwrap_err();
    assert_eq!(
        (before.code(), before.message()),
        (after.code(), after.message())
    );
    let nobody = list(node.wire(None), &project).await.unwrap_err();
    assert_eq!(nobody.code(), Code::PermissionDenied);
    let nowhere = list(node.wire(Some(&token)), &uuid::Uuid::nil().to_string()).await;
    assert_eq!(nowhere.unwrap_err().code(), Code::NotFound);
    remove(&node, "night").await;
    for caller in callers {
        list(node.wire(Some(caller)), &project).await.unwrap();
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allow_gives_what_it_names_to_those_it_names_and_the_trail_says_by_which_rule() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, owner) = node.tenant("acme").await;
    let (rivals, stranger) = node.tenant("rival").await;
    let network = node.network(&owner, &project).await;
    let viewer = node.token("acme", &project, api::ProjectRole::Viewer).await;
    let as_viewer = || node.wire(Some(&viewer));
    let refused = create_ip(as_viewer(), &project, &network)
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let allow = "allow contains \"viewers-take-addresses\" if input.roles.project == \"viewer\"";
    let create = "metalstack.api.v2.IPService/Create";
    set(&node, "loose", &about(create, allow)).await.unwrap();
    create_ip(as_viewer(), &project, &network).await.unwrap();
    // Another project, another method, another caller: as before.
    let other = create_ip(as_viewer(), &rivals, &network).await.unwrap_err();
    assert_eq!(other.code(), Code::NotFound);
    let delete = api::IpServiceDeleteRequest {
        project: project.clone(),
        ip: "10.128.0.1".into(),
    };
    let refused = IpServiceClient::new(as_viewer()).delete(delete).await;
    assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
    let unseen = create_ip(node.wire(Some(&stranger)), &project, &network).await;
    assert_eq!(unseen.unwrap_err().code(), Code::NotFound);
    // A rule for whom it does not exist must say so.
    let foreign = "allow_foreign contains \"anybody\" if input.caller.user == \"rival\"";
    set(&node, "looser", &about(create, foreign)).await.unwrap();
    create_ip(node.wire(Some(&stranger)), &project, &network)
        .await
        .unwrap();

    let mut trail = AuditTrailServiceClient::new(node.as_admin());
    let all = mesh::AuditTrailServiceListRequest::default();
    let records = trail.list(all).await.unwrap().into_inner().records;
    let path = format!("/{create}");
    let rules: Vec<_> = records
        .iter()
        .filter(|it| it.method == path && it.result_code == Some(0))
        .map(|it| it.rule.as_deref())
        .collect();
    assert_eq!(
        rules,
        [Some("loose/viewers-take-addresses"), Some("looser/anybody")]
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_policy_is_refused_and_the_last_good_one_stays() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    let good = about(
        LIST,
        "deny contains \"closed\" if input.caller.kind == \"api\"",
    );
    assert_eq!(set(&node, "night", &good).await.unwrap().generation, 1);
    for (broken, wanted) in [
        (
            about(LIST, "deny contains \"x\" if { input.x == }"),
            "night:4:35: expecting expression",
        ),
        (
            about(LIST, "deny contains \"x\" if http.send({})"),
            "night:4:22: http.send is no function",
        ),
        (
            about(LIST, "deny contains \"x\" if p\np if q\nq if p"),
            "needs itself",
        ),
        (
            about("a.B/C", "deny contains \"x\""),
            "\"a.B/C\" is no method",
        ),
        (
            about(
                LIST,
                "deny contains \"x\" if input.x\ntest_it if count(deny) == 1",
            ),
            "night:5:1: test_it fails",
        ),
    ] {
        let refused = set(&node, "night", &broken).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().starts_with("MM-1107"), "{refused}");
        assert!(refused.message().contains(wanted), "{refused}");
        let refused = list(node.wire(Some(&token)), &project).await.unwrap_err();
        assert!(refused.message().contains("night/closed"), "{refused}");
    }
    let mut policies = PolicyServiceClient::new(node.as_admin());
    let request = mesh::PolicyServiceSetRequest {
        name: "night".to_owned(),
        source: about(LIST, "deny contains \"open\" if input.x"),
        expected_generation: Some(1),
    };
    policies.set(request.clone()).await.unwrap();
    list(node.wire(Some(&token)), &project).await.unwrap();
    let late = policies.set(request).await.unwrap_err();
    assert_eq!(late.code(), Code::Aborted);
    let request = mesh::PolicyServiceListRequest {};
    let mut theirs = PolicyServiceClient::new(node.wire(Some(&token)));
    let refused = theirs.list(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let all = policies.list(request).await.unwrap().into_inner().policies;
    assert_eq!((all.len(), all[0].generation), (1, 2));
    assert_eq!(all[0].methods, [format!("/{LIST}")]);
    assert_eq!(all[0].r#use.as_ref().unwrap().asked, 1);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_refuses_everything_leaves_the_way_back() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    set(
        &node,
        "all",
        &about("*", "deny contains \"all\" if input.method"),
    )
    .await
    .unwrap();
    for caller in [&token, &node.admin] {
        let refused = list(node.wire(Some(caller)), &project).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
    }
    let order = |wire: Wire| async {
        let request = api::TokenServiceCreateRequest {
            expires: Some(prost_types::Duration {
                seconds: 600,
                nanos: 0,
            }),
            description: "back".into(),
            admin_role: Some(api::AdminRole::Editor.into()),
            ..Default::default()
        };
        let mut tokens = api::token_service_client::TokenServiceClient::new(wire);
        tokens
            .create(request)
            .await
            .map(|it| it.into_inner().secret)
    };
    let fresh = order(node.as_admin()).await.unwrap();
    let acme = node.login("acme").await;
    assert!(order(node.wire(Some(&acme))).await.is_err());
    let mut back = PolicyServiceClient::new(node.wire(Some(&fresh)));
    let name = "all".to_owned();
    back.remove(mesh::PolicyServiceRemoveRequest { name })
        .await
        .unwrap();
    list(node.wire(Some(&token)), &project).await.unwrap();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_policy_refuses_what_it_is_slow_about_and_nothing_else() {
    let node = Node::start().await;
    let (project, token) = node.tenant("acme").await;
    let slow = "deny contains \"x\" if {\n\
        input.caller.user == \"acme\"\n\
        some a in ten; some b in ten; some c in ten; some d in ten; some e in ten; some f in ten\n\
        a + b + c + d + e + f == -1\n}\n\
        ten := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]";
    set(&node, "slow", &about(LIST, slow)).await.unwrap();
    let began = std::time::Instant::now();
    let refused = list(node.wire(Some(&token)), &project).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let wanted = "policy \"slow\" of this site cannot be evaluated: it needs more than 50000 steps";
    assert!(refused.message().contains(wanted), "{refused}");
    assert!(refused.message().starts_with("MM-1106"), "{refused}");
    assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    list(node.as_admin(), &project).await.unwrap();
    let request = mesh::PolicyServiceGetRequest {
        name: "slow".to_owned(),
    };
    let mut policies = PolicyServiceClient::new(node.as_admin());
    let found = policies.get(request).await.unwrap().into_inner();
    let used = found.policy.unwrap().r#use.unwrap();
    assert_eq!((used.asked, used.failed), (2, 1));
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_watch_ends_when_a_policy_takes_its_read_away() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, owner) = node.tenant("acme").await;
    let network = node.network(&owner, &project).await;
    let mut watch = of_project(node.wire(Some(&owner)), &project, &["ip"])
        .await
        .unwrap();
    listed(&mut watch).await;
    create_ip(node.wire(Some(&owner)), &project, &network)
        .await
        .unwrap();
    let told = news(&mut watch).await;
    assert_eq!(brief(&told)[0].0, Created);
    // One that says nothing about it ends nothing.
    let other = about(LIST, "deny contains \"closed\" if input.method");
    set(&node, "other", &other).await.unwrap();
    create_ip(node.wire(Some(&owner)), &project, &network)
        .await
        .unwrap();
    assert_eq!(brief(&news(&mut watch).await)[0].0, Created);
    let reads = about(
        "metalstack.api.v2.IPService/List",
        &format!("deny contains \"closed\" if input.request.project == \"{project}\""),
    );
    set(&node, "night", &reads).await.unwrap();
    let ended = watch.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::PermissionDenied);
    assert!(ended.message().contains("night/closed"), "{ended}");
    let again = of_project(node.wire(Some(&owner)), &project, &["ip"]).await;
    assert_eq!(again.map(drop).unwrap_err().code(), Code::PermissionDenied);
    // Administrators see policies come and go.
    let mut all = mesh::watch_service_client::WatchServiceClient::new(node.as_admin());
    let request = mesh::WatchServiceAllRequest {
        kinds: vec!["policy".to_owned()],
        ..Default::default()
    };
    let mut all = all.all(request).await.unwrap().into_inner();
    assert_eq!(listed(&mut all).await.0.len(), 2);
    node.stop().await;
}

/// The guide's examples, as they stand there.
#[tokio::test(flavor = "multi_thread")]
async fn the_guides_examples_do_what_the_guide_says() {
    let node = Node::start().await;
    node.data_centre().await;
    node.waiting_machine(1).await;
    let (project, owner) = node.tenant("acme").await;
    let network = node.network(&owner, &project).await;
    set(&node, "guests", GUESTS).await.unwrap();
    let small = BIG_MACHINES.replace("g1-large", "small");
    set(&node, "big-machines", &small).await.unwrap();
    let mut machines = MachineServiceClient::new(node.wire(Some(&owner)));
    let wanted = wanted_machine(&project, &network, "web-1");
    let refused = machines.create(wanted.clone()).await.unwrap_err();
    assert!(
        refused
            .message()
            .contains("size small is for the tenant research"),
        "{refused}"
    );
    remove(&node, "big-machines").await;
    let made = machines.create(wanted).await.unwrap().into_inner();
    let uuid = made.machine.unwrap().uuid;
    let delete = || api::MachineServiceDeleteRequest {
        uuid: uuid.clone(),
        project: project.clone(),
    };
    node.tenant("guest").await;
    node.hardware(control_state::SetProjectMember {
        id: project.parse().unwrap(),
        member: "guest".parse().unwrap(),
        role: control_state::ProjectRole::Viewer,
        must_be_new: None,
    })
    .await;
    let guest = node.login("guest").await;
    let mut theirs = MachineServiceClient::new(node.wire(Some(&guest)));
    let power = |command: api::MachineBmcCommand| api::MachineServiceBmcCommandRequest {
        uuid: uuid.clone(),
        project: project.clone(),
        command: command.into(),
    };
    theirs
        .bmc_command(power(api::MachineBmcCommand::On))
        .await
        .unwrap();
    let other = theirs
        .bmc_command(power(api::MachineBmcCommand::BootToBios))
        .await;
    assert_eq!(other.unwrap_err().code(), Code::PermissionDenied);
    assert!(theirs.delete(delete()).await.is_err());
    machines.delete(delete()).await.unwrap();
    node.stop().await;
}
