//! Fields of the contract that are stored and shown: what a create says of tenants, networks and
//! addresses, who is a member of what, and what tasks, records and components tell.

use control_state::BmcAction;
use serde_json::{Value, json};

use crate::networks::{admin, call};
use crate::node::Node;

/// Asserts that an answer has every field of the expected one. Lists are compared item by item.
pub(crate) fn assert_shows(answer: &Value, expected: &Value, path: &str) {
    match (answer, expected) {
        (Value::Object(answer), Value::Object(expected)) => {
            for (name, value) in expected {
                let shown = answer.get(name).unwrap_or(&Value::Null);
                assert_shows(shown, value, &format!("{path}.{name}"));
            }
        }
        (Value::Array(answer), Value::Array(expected)) => {
            assert_eq!(answer.len(), expected.len(), "{path}: {answer:?}");
            for (shown, value) in answer.iter().zip(expected) {
                assert_shows(shown, value, &format!("{path}[]"));
            }
        }
        _ => assert_eq!(answer, expected, "{path}"),
    }
}

pub(crate) fn labels(team: &str) -> Value {
    json!({"labels": {"team": team}})
}

fn merged(one: &Value, other: &Value) -> Value {
    let mut all = one.as_object().unwrap().clone();
    all.extend(other.as_object().unwrap().clone());
    Value::Object(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_create_says_is_shown() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let login = node.login("acme").await;
    let network = node.network(&token, &project).await;
    let texts = json!({"name": "front", "description": "of the shop"});
    let person = json!({"name": "globex", "description": "of the shop",
        "email": "ops@globex.example", "avatarUrl": "https://globex.example/a.png"});
    let face = json!({"name": "front", "description": "of the shop",
        "avatarUrl": "https://globex.example/b.png"});
    let child = json!({"project": project, "partition": "lab"});
    let external = json!({"id": "front", "type": "NETWORK_TYPE_EXTERNAL", "vrf": 78,
        "prefixes": ["198.51.100.0/24"], "destinationPrefixes": ["0.0.0.0/0"]});
    for (caller, service, key, id, other, said) in [
        (
            &node.admin,
            "admin.v2.TenantService",
            "tenant",
            "login",
            json!({}),
            &person,
        ),
        (
            &login,
            "api.v2.TenantService",
            "tenant",
            "login",
            json!({}),
            &person,
        ),
        (
            &token,
            "api.v2.NetworkService",
            "network",
            "id",
            child,
            &texts,
        ),
        (
            &node.admin,
            "admin.v2.NetworkService",
            "network",
            "id",
            external,
            &texts,
        ),
        (
            &token,
            "api.v2.IPService",
            "ip",
            "ip",
            json!({"network": network, "project": project}),
            &texts,
        ),
        (
            &node.admin,
            "api.v2.ProjectService",
            "project",
            "uuid",
            json!({"login": "acme"}),
            &face,
        ),
    ] {
        let sent = merged(&merged(&other, said), &json!({"labels": labels("shop")}));
        let made = call(&node, caller, &format!("{service}/Create"), sent).await;
        let made = made.unwrap_or_else(|code| panic!("{service}: {code}"))[key].clone();
        let shown = merged(said, &json!({"meta": {"labels": labels("shop")}}));
        assert_shows(&made, &shown, service);
        let mut asked = json!({"project": project});
        let name = if key == "project" { "project" } else { id };
        asked[name] = made[id].clone();
        if key == "tenant" {
            asked = json!({"login": made["login"]});
        }
        let read = service.replace("admin.v2.NetworkService", "api.v2.NetworkService");
        let read = read.replace("admin", "api");
        let got = admin(&node, &format!("{read}/Get"), asked).await;
        assert_shows(&got.unwrap()[key], &shown, service);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_for_a_machine_names_it() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    let uuid = node.waiting_machine(1).await;
    let wanted = json!({"project": project, "name": "web", "partition": "lab", "size": "small",
        "image": "debian-12.0", "filesystemLayout": "default",
        "networks": [{"network": network}], "allocationType": "MACHINE_ALLOCATION_TYPE_MACHINE"});
    call(&node, &token, "api.v2.MachineService/Create", wanted)
        .await
        .unwrap();
    let wanted = json!({"project": project, "network": network, "machine": uuid});
    let made = call(&node, &token, "api.v2.IPService/Create", wanted).await;
    let ip = made.unwrap()["ip"].clone();
    assert_eq!(
        ip["meta"]["labels"]["labels"]["machine.metal-stack.io/id"],
        json!(uuid)
    );
    let asked = json!({"project": project, "query": {"machine": uuid}});
    let listed = call(&node, &token, "api.v2.IPService/List", asked)
        .await
        .unwrap();
    let listed = listed["ips"].as_array().unwrap();
    assert!(
        listed.iter().any(|shown| shown["ip"] == ip["ip"]),
        "{listed:?}"
    );
    let foreign = json!({"project": project, "network": network,
        "machine": "00000000-0000-4000-8000-0000000000ff"});
    let refused = call(&node, &token, "api.v2.IPService/Create", foreign).await;
    assert_eq!(refused.unwrap_err(), "not_found");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_users_and_invites_tell_where_they_are_from() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    node.tenant("guest").await;
    let (acme, guest) = (node.login("acme").await, node.login("guest").await);
    let add = json!({"project": project, "member": "guest", "role": "PROJECT_ROLE_VIEWER"});
    admin(&node, "api.v2.ProjectService/AddMember", add)
        .await
        .unwrap();
    let got = call(
        &node,
        &acme,
        "api.v2.ProjectService/Get",
        json!({"project": project}),
    )
    .await;
    let got = got.unwrap();
    let members = got["projectMembers"].as_array().unwrap();
    let find = |list: &[Value], id: &str| {
        let found = list.iter().find(|member| member["id"] == id).cloned();
        found.unwrap_or_else(|| panic!("no {id} in {list:?}"))
    };
    assert_eq!(find(members, "guest").get("inheritedMembership"), None);
    assert_eq!(find(members, "acme")["inheritedMembership"], true);
    let got = call(
        &node,
        &acme,
        "api.v2.TenantService/Get",
        json!({"login": "acme"}),
    )
    .await;
    let got = got.unwrap();
    let of_tenant = got["tenantMembers"].as_array().unwrap();
    assert_eq!(find(of_tenant, "guest")["projects"], json!([project]));
    assert_eq!(find(of_tenant, "guest")["role"], "TENANT_ROLE_GUEST");
    for member in members.iter().chain(of_tenant) {
        assert!(member["createdAt"].is_string(), "{member}");
        assert_eq!(member["createdAt"], member["meta"]["createdAt"]);
    }
    let user = call(&node, &guest, "api.v2.UserService/Get", json!({}))
        .await
        .unwrap();
    let of = |list: &str, key: &str| -> Vec<String> {
        let items = user["user"][list].as_array().unwrap().iter();
        items
            .map(|item| item[key].as_str().unwrap().to_owned())
            .collect()
    };
    // A guest through a project is no member of its tenant.
    assert_eq!(of("tenants", "login"), ["guest"]);
    let mut projects = of("projects", "name");
    projects.sort();
    assert_eq!(projects, ["acme-project", "guest-project"]);

    for (service, asked, target) in [
        (
            "TenantService",
            json!({"login": "acme", "role": "TENANT_ROLE_VIEWER"}),
            json!({"targetTenant": "acme", "targetTenantName": "acme"}),
        ),
        (
            "ProjectService",
            json!({"project": project, "role": "PROJECT_ROLE_VIEWER"}),
            json!({"project": project, "projectName": "acme-project"}),
        ),
    ] {
        let made = call(&node, &acme, &format!("api.v2.{service}/Invite"), asked).await;
        let invite = made.unwrap()["invite"].clone();
        let from = json!({"tenant": "acme", "tenantName": "acme"});
        assert_shows(&invite, &merged(&from, &target), service);
        // An invite that was accepted is gone, so that none ever says so.
        assert_eq!((invite.get("joined"), invite.get("joinedAt")), (None, None));
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_told_its_roles_over_the_platform() {
    let node = Node::start().await;
    let uuid = "00000000-0000-4000-8000-000000000001";
    let wanted = json!({"adminRole": "ADMIN_ROLE_VIEWER", "infraRole": "INFRA_ROLE_EDITOR",
        "machineRoles": {uuid: "MACHINE_ROLE_EDITOR"}});
    let made = admin(&node, "api.v2.TokenService/Create", wanted.clone())
        .await
        .unwrap();
    let secret = made["secret"].as_str().unwrap();
    let said = call(
        &node,
        secret,
        "api.v2.MethodService/TokenScopedList",
        json!({}),
    )
    .await;
    assert_shows(&said.unwrap(), &wanted, "TokenScopedList");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_tell_how_full_they_are_in_both_families() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let dual = json!({"id": "dual", "type": "NETWORK_TYPE_SUPER", "partition": "lab",
        "prefixes": ["10.64.0.0/22", "2001:db8::/62"],
        "defaultChildPrefixLength": {"ipv4": 24, "ipv6": 64}, "vrf": 79});
    let deleted = json!({"id": "super"});
    admin(&node, "admin.v2.NetworkService/Delete", deleted)
        .await
        .unwrap();
    admin(&node, "admin.v2.NetworkService/Create", dual)
        .await
        .unwrap();
    node.network(&token, &project).await;
    let got = admin(&node, "admin.v2.NetworkService/Get", json!({"id": "dual"})).await;
    let consumption = got.unwrap()["network"]["consumption"].clone();
    for family in ["ipv4", "ipv6"] {
        let usage = json!({"availablePrefixes": "4", "usedPrefixes": "1"});
        assert_shows(&consumption[family], &usage, family);
    }
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_tell_their_end_and_come_in_pages() {
    let node = Node::start().await;
    node.data_centre().await;
    let uuid = node.waiting_machine(1).await;
    let order = |command: &str| json!({"uuid": uuid, "command": command});
    for (command, action) in [
        ("MACHINE_BMC_COMMAND_IDENTIFY_LED_ON", BmcAction::LedOn),
        ("MACHINE_BMC_COMMAND_IDENTIFY_LED_OFF", BmcAction::LedOff),
    ] {
        admin(&node, "admin.v2.MachineService/BMCCommand", order(command))
            .await
            .unwrap();
        node.bmc_obeys(action).await;
    }
    let list = async |asked: Value| {
        let listed = admin(&node, "admin.v2.TaskService/List", asked)
            .await
            .unwrap();
        let tasks = listed.get("tasks").and_then(Value::as_array);
        tasks.cloned().unwrap_or_default()
    };
    let all = list(json!({})).await;
    assert_eq!(all.len(), 2);
    for (asked, found) in [
        (json!({"count": 1}), &all[..1]),
        (json!({"count": 1, "page": 1}), &all[..1]),
        (json!({"count": 1, "page": 2}), &all[1..]),
        (json!({"count": 1, "page": 3}), &[]),
        (json!({"queue": "default"}), &all[..]),
        (json!({"queue": "other"}), &[]),
    ] {
        assert_eq!(list(asked.clone()).await, found, "{asked}");
    }
    for task in &all {
        let same = json!({"queue": "default", "type": "machine-bmc-command"});
        assert_shows(task, &same, "task");
        for field in ["deadline", "timeout", "completedAt"] {
            assert!(task[field].is_string(), "{field} of {task}");
        }
        // An order is tried once and has no group: the contract's other fields stay empty.
        for field in [
            "lastError",
            "lastFailedAt",
            "maxRetry",
            "retried",
            "group",
            "result",
        ] {
            assert_eq!(task.get(field), None, "{field} of {task}");
        }
    }
    // Of one that nobody carried out.
    let order = order("MACHINE_BMC_COMMAND_RESET");
    let made = admin(&node, "admin.v2.MachineService/BMCCommand", order)
        .await
        .unwrap();
    node.silence(24 * 3600 * 1000).await;
    let asked = json!({"taskId": made["taskId"], "queue": "default"});
    let task = admin(&node, "admin.v2.TaskService/Get", asked)
        .await
        .unwrap()["task"]
        .clone();
    let failed = json!({"lastError": "the BMC agent did not answer in time"});
    assert_shows(&task, &failed, "task");
    assert!(
        task["lastFailedAt"].is_string() && task.get("completedAt").is_none(),
        "{task}"
    );
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_found_by_each_field() {
    let node = Node::start().await;
    let (project, _) = node.tenant("acme").await;
    node.tenant("globex").await;
    let list = async |query: Value| {
        let asked = json!({"query": query});
        let listed = admin(&node, "admin.v2.AuditService/List", asked)
            .await
            .unwrap();
        let traces = listed.get("traces").and_then(Value::as_array);
        traces.cloned().unwrap_or_default()
    };
    let create = "/metalstack.api.v2.ProjectService/Create";
    let made = list(json!({"method": create, "phase": "AUDIT_PHASE_RESPONSE"})).await;
    assert_eq!(made.len(), 2, "{made:?}");
    let one = &made[0];
    for trace in &made {
        let (begun, ended) = (&trace["meta"]["createdAt"], &trace["meta"]["updatedAt"]);
        assert!(
            begun.as_str().unwrap() <= ended.as_str().unwrap(),
            "{trace}"
        );
        assert_eq!(trace["timestamp"], *ended);
    }
    let uuid = &one["uuid"];
    for (query, count) in [
        (json!({"uuid": uuid}), 2),
        (json!({"uuid": uuid, "phase": "AUDIT_PHASE_REQUEST"}), 1),
        (json!({"uuid": uuid, "sourceIp": "127.0.0.1"}), 2),
        (json!({"uuid": uuid, "sourceIp": "192.0.2.1"}), 0),
        (json!({"uuid": uuid, "body": "acme-project"}), 1),
        (json!({"uuid": uuid, "body": "globex"}), 0),
        (json!({"method": create, "limit": 1}), 1),
        (json!({"uuid": uuid, "from": one["meta"]["createdAt"]}), 2),
        (json!({"uuid": uuid, "from": "2999-01-01T00:00:00Z"}), 0),
        (json!({"uuid": uuid, "to": one["meta"]["updatedAt"]}), 2),
        (json!({"uuid": uuid, "to": "2000-01-01T00:00:00Z"}), 0),
        (json!({"method": create, "project": project}), 0),
    ] {
        assert_eq!(list(query.clone()).await.len(), count, "{query}");
    }
    node.stop().await;
}
