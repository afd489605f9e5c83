//! Fields of machines, switches and components that are stored and shown.

use control_state::EventKind;
use serde_json::{Value, json};

use crate::networks::{admin, call};
use crate::node::Node;
use crate::published_agents::{MAC, UUID, agent};
use crate::shown_fields::{assert_shows, labels};

fn fru(end: &str) -> Value {
    let names = [
        "chassisPartNumber",
        "chassisPartSerial",
        "boardMfg",
        "boardMfgSerial",
        "boardPartNumber",
        "productManufacturer",
        "productPartNumber",
        "productSerial",
    ];
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!(format!("{name} {end}"))))
        .collect()
}

/// Hammer reads everything but the serial number of the product.
fn hammers_fru() -> Value {
    let mut told = fru("hammer");
    told.as_object_mut().unwrap().remove("productSerial");
    told
}

fn leaf() -> Value {
    let nic = |number: u8| {
        json!({"name": format!("Ethernet{number}"),
        "identifier": format!("Eth1/{}", number + 1), "mac": format!("02:00:00:00:01:0{number}")})
    };
    json!({"id": "leaf9", "partition": "lab", "rack": "rack-9", "room": "room-9",
        "managementIp": "10.9.1.1", "nics": [nic(0), nic(1)],
        "os": {"vendor": "SWITCH_OS_VENDOR_SONIC", "version": "202311",
            "metalCoreVersion": "v0.18"}})
}

fn registration() -> Value {
    let nic = |name: &str, mac: &str, switch: &str| {
        json!({"name": name, "mac": mac,
        "vendor": "Intel", "model": "X710", "neighbors": [{"name": "Eth1/1",
            "identifier": "Eth1/1", "hostname": switch}]})
    };
    json!({"uuid": UUID, "partition": "lab", "metalHammerVersion": "v0.14", "tags": ["old"],
        "hardware": {"memory": "1073741824", "disks": [{"name": "/dev/sda", "size": "21474836480"}],
            "cpus": [{"vendor": "Intel", "model": "Xeon", "cores": 2, "threads": 2}],
            "nics": [nic("eth0", MAC, "leaf9"), nic("eth1", "02:00:00:00:02:01", "spare9")]},
        "bios": {"version": "1.2", "vendor": "AMI", "date": "01/02/2026"}, "fru": hammers_fru(),
        "bmc": {"address": "10.9.0.1:623", "mac": "02:00:00:00:09:01", "user": "metal",
            "password": "secret", "interface": "bmc0"}})
}

/// A machine of the published stack that has registered at leaf9.
async fn registered(node: &Node, agent: &str) {
    let seen = json!({"uuid": UUID, "partition": "lab"});
    let register = json!({"switch": leaf()});
    call(node, agent, "infra.v2.SwitchService/Register", register)
        .await
        .unwrap();
    call(node, agent, "infra.v2.BootService/Dhcp", seen)
        .await
        .unwrap();
    let wanted = json!({"uuid": UUID, "user": "pixiecore", "expires": "3600s",
        "labels": labels("boot")});
    let made = call(node, agent, "infra.v2.BootService/MachineToken", wanted)
        .await
        .unwrap();
    assert_shows(
        &made["token"]["meta"],
        &json!({"labels": labels("boot")}),
        "token",
    );
    let token = made["secret"].as_str().unwrap();
    call(node, token, "infra.v2.BootService/Register", registration())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_shown_as_its_hammer_and_its_bmc_tell() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    registered(&node, &agent).await;
    let this = json!({"uuid": UUID});
    let got = admin(&node, "admin.v2.MachineService/Get", this.clone()).await;
    let machine = got.unwrap()["machine"].clone();
    let shown = json!({"room": "room-9", "rack": "rack-9",
        "status": {"metalHammerVersion": "v0.14"},
        "hardware": {"cpus": [{"vendor": "Intel", "model": "Xeon", "threads": 2}]}});
    assert_shows(&machine, &shown, "machine");
    assert!(
        !machine.to_string().contains("old"),
        "tags are not kept: {machine}"
    );
    let chassis = &machine["meta"]["labels"]["labels"]["machine.metal-stack.io/chassis"];
    assert_eq!(chassis, "chassisPartSerial hammer");
    let details = async || {
        let got = admin(&node, "admin.v2.MachineService/GetBMC", this.clone()).await;
        got.unwrap()["bmcDetails"].clone()
    };
    let bios = json!({"version": "1.2", "vendor": "AMI", "date": "01/02/2026"});
    let shown = json!({"uuid": UUID, "partition": "lab", "rack": "rack-9", "room": "room-9",
        "size": "small", "bmcReport": {"uuid": UUID, "bios": bios, "fru": hammers_fru()}});
    assert_shows(&details().await, &shown, "details");

    let report = json!({"uuid": UUID, "updatedAt": "2026-01-02T03:04:05Z", "fru": fru("bmc"),
        "bios": {"version": "1.3", "vendor": "AMI", "date": "09/09/2026"},
        "ledState": {"value": "LED-ON", "description": "of the agent"},
        "bmc": {"address": "10.9.0.1:623", "mac": "02:00:00:00:09:01", "user": "metal",
            "password": "secret", "interface": "bmc0", "powerState": "ON"}});
    let report = json!({"partition": "lab", "bmcReports": [report]});
    call(&node, &agent, "infra.v2.BMCService/UpdateBMCInfo", report)
        .await
        .unwrap();
    let told = details().await["bmcReport"].clone();
    let mut both = fru("hammer");
    both["productSerial"] = fru("bmc")["productSerial"].clone();
    // Hammer's word counts, and the BMC's fills what hammer does not tell. The date of the BIOS is
    // hammer's; the contract's words for the LED have no description.
    let shown = json!({"updatedAt": "2026-01-02T03:04:05Z", "fru": both,
        "bios": {"version": "1.3", "vendor": "AMI", "date": "01/02/2026"},
        "ledState": {"value": "LED-ON"}, "bmc": {"interface": "bmc0"}});
    assert_shows(&told, &shown, "report");
    assert_eq!(told["ledState"].get("description"), None);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_is_shown_with_its_machines_and_neighbours() {
    let node = Node::start().await;
    node.data_centre().await;
    let agent = agent(&node, None).await;
    registered(&node, &agent).await;
    // A switch that was not told its ports yet has none to report of.
    let this = json!({"id": "leaf9"});
    call(&node, &agent, "infra.v2.SwitchService/Get", this)
        .await
        .unwrap();
    let beat = json!({"id": "leaf9", "duration": "0.250s",
        "bgpPortStates": {"Ethernet1": {"neighbor": "spine1", "peerGroup": "FABRIC",
            "vrfName": "default", "bgpState": "BGP_STATE_ESTABLISHED",
            "bgpTimerUpEstablished": "2026-01-02T03:04:05Z"}}});
    call(&node, &agent, "infra.v2.SwitchService/Heartbeat", beat)
        .await
        .unwrap();
    let got = admin(&node, "admin.v2.SwitchService/Get", json!({"id": "leaf9"})).await;
    let switch = got.unwrap()["switch"].clone();
    let shown = json!({"rack": "rack-9", "room": "room-9", "os": leaf()["os"]});
    assert_shows(&switch, &shown, "switch");
    let session = &switch["nics"][1]["bgpPortState"];
    let shown = json!({"neighbor": "spine1", "bgpTimerUpEstablished": "2026-01-02T03:04:05Z"});
    assert_shows(session, &shown, "session");

    for (query, count) in [
        (json!({}), 1),
        (json!({"machineQuery": {"uuid": UUID}}), 1),
        (json!({"machineQuery": {"room": "elsewhere"}}), 0),
    ] {
        let mut asked = query;
        asked["query"] = json!({"id": "leaf9"});
        let said = admin(&node, "admin.v2.SwitchService/ConnectedMachines", asked).await;
        let leaf = said.unwrap()["switchesWithMachines"][0].clone();
        assert_shows(
            &leaf,
            &json!({"id": "leaf9", "partition": "lab", "rack": "rack-9"}),
            "leaf",
        );
        let there = leaf.get("connections").and_then(Value::as_array);
        let there = there.cloned().unwrap_or_default();
        assert_eq!(there.len(), count, "{leaf}");
        for connection in there {
            let shown = json!({"nic": {"name": "Ethernet0"}, "machine": {"uuid": UUID},
                "fru": hammers_fru()});
            assert_shows(&connection, &shown, "connection");
        }
    }
    // The time of the last change guards an update in its metadata; this one is not looked at.
    let update = json!({"id": "leaf9", "description": "left", "updatedAt": "2001-01-01T00:00:00Z",
        "updateMeta": {"lockingStrategy": "OPTIMISTIC_LOCKING_STRATEGY_SERVER"}});
    let changed = admin(&node, "admin.v2.SwitchService/Update", update).await;
    assert_eq!(changed.unwrap()["switch"]["description"], "left");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_is_shown_as_it_reports() {
    let node = Node::start().await;
    let agent = agent(&node, None).await;
    let version = json!({"version": "v1", "revision": "tags/v1", "gitSha1": "abcdef0",
        "buildDate": "2026-01-01T00:00:00Z"});
    let sent = json!({"type": "COMPONENT_TYPE_METAL_CORE", "identifier": "leaf9",
        "startedAt": "2026-01-02T03:04:05Z", "interval": "60s", "version": version});
    call(
        &node,
        &agent,
        "infra.v2.ComponentService/Ping",
        sent.clone(),
    )
    .await
    .unwrap();
    let said = admin(&node, "admin.v2.ComponentService/List", json!({}))
        .await
        .unwrap();
    let shown = &said["components"][0];
    assert_shows(shown, &sent, "component");
    assert!(shown["reportedAt"].is_string(), "{shown}");
    assert_eq!(shown["meta"]["createdAt"], shown["reportedAt"]);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allocation_is_shown_as_it_was_asked_for() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let network = node.network(&token, &project).await;
    for external in [
        json!({"id": "internet", "type": "NETWORK_TYPE_EXTERNAL", "vrf": 77,
            "prefixes": ["198.51.100.0/24"], "destinationPrefixes": ["0.0.0.0/0"],
            "natType": "NAT_TYPE_IPV4_MASQUERADE"}),
        json!({"id": "underlay", "type": "NETWORK_TYPE_UNDERLAY", "partition": "lab",
            "prefixes": ["192.0.2.0/29"]}),
    ] {
        admin(&node, "admin.v2.NetworkService/Create", external)
            .await
            .unwrap();
    }
    let image = json!({"id": "wall-1.0.1", "url": "http://images.example/wall.tar.zst",
        "features": ["IMAGE_FEATURE_FIREWALL"],
        "classification": "IMAGE_CLASSIFICATION_SUPPORTED",
        "meta": {"labels": {"labels": {"metalmesh.dev/digest": format!("sha256:{}",
            "cd".repeat(32))}}}});
    admin(
        &node,
        "admin.v2.ImageService/Create",
        json!({"image": image}),
    )
    .await
    .unwrap();
    node.waiting_machine(1).await;
    let rules = json!({
        "egress": [{"protocol": "IP_PROTOCOL_TCP", "ports": [443], "to": ["192.0.2.0/24"],
            "comment": "out"}],
        "ingress": [{"protocol": "IP_PROTOCOL_UDP", "ports": [53], "to": ["198.51.100.1/32"],
            "from": ["203.0.113.0/24"], "comment": "in"}]});
    let common = json!({"name": "wall", "description": "keeps out", "hostname": "wall-1",
        "dnsServers": [{"ip": "192.0.2.53"}], "ntpServers": [{"address": "ntp.example"}],
        "placementLabels": labels("front"), "project": project,
        "allocationType": "MACHINE_ALLOCATION_TYPE_FIREWALL"});
    let mut wanted = common.clone();
    let fields = json!({"partition": "lab", "size": "small", "image": "wall-1.0",
        "filesystemLayout": "default", "labels": labels("shop"),
        "firewallSpec": {"firewallRules": rules},
        "networks": [{"network": network}, {"network": "internet"}]});
    wanted
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let made = call(&node, &token, "api.v2.MachineService/Create", wanted).await;
    let machine = made.unwrap()["machine"].clone();
    let allocation = &machine["allocation"];
    assert_shows(allocation, &common, "allocation");
    assert_shows(&allocation["firewallRules"], &rules, "rules");
    assert_eq!(machine["meta"]["labels"]["labels"]["team"], "shop");
    let attached = allocation["networks"].as_array().unwrap();
    let of = |id: &str| attached.iter().find(|one| one["network"] == id).unwrap();
    assert_eq!(of(&network)["project"], json!(project));
    assert_eq!(of("internet")["natType"], "NAT_TYPE_IPV4_MASQUERADE");
    assert_eq!(of("internet").get("project"), None);
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capacity_counts_each_machine_where_it_stands() {
    let node = Node::start().await;
    node.data_centre().await;
    let (project, token) = node.tenant("acme").await;
    let (other, _) = node.tenant("globex").await;
    let network = node.network(&token, &project).await;
    for number in 1..=3 {
        node.waiting_machine(number).await;
    }
    let reserved = json!({"sizeReservation": {"name": "launch", "project": other,
        "size": "small", "partitions": ["lab"], "amount": 1}});
    admin(&node, "admin.v2.SizeReservationService/Create", reserved)
        .await
        .unwrap();
    let wanted = json!({"project": project, "name": "web", "partition": "lab", "size": "small",
        "image": "debian-12.0", "filesystemLayout": "default",
        "networks": [{"network": network}], "allocationType": "MACHINE_ALLOCATION_TYPE_MACHINE"});
    call(&node, &token, "api.v2.MachineService/Create", wanted)
        .await
        .unwrap();
    let asked = async |asked: Value| {
        let said = admin(&node, "admin.v2.PartitionService/Capacity", asked)
            .await
            .unwrap();
        said["partitionCapacity"][0]["machineSizeCapacities"][0].clone()
    };
    let shown = json!({"size": "small", "total": "3", "waiting": "2", "allocated": "1",
        "allocatable": "2", "free": "1", "reservations": "1", "remainingReservations": "1"});
    assert_shows(&asked(json!({})).await, &shown, "all");
    assert_eq!(asked(json!({"size": "small"})).await["total"], "3");
    assert_eq!(asked(json!({"size": "large"})).await, Value::Null);
    // What a project reserved is free for that project.
    assert_eq!(asked(json!({"project": other})).await["free"], "2");

    let all = admin(&node, "admin.v2.MachineService/List", json!({}))
        .await
        .unwrap();
    let machines = all["machines"].as_array().unwrap();
    let (taken, idle): (Vec<&Value>, Vec<&Value>) = machines
        .iter()
        .partition(|machine| machine.get("allocation").is_some());
    let id = |machine: &Value| machine["uuid"].as_str().unwrap().to_owned();
    let running = id(taken[0]).parse().unwrap();
    for kind in [
        EventKind::Installing,
        EventKind::BootingNewKernel,
        EventKind::PhonedHome,
    ] {
        node.event(running, kind).await;
    }
    let lost = id(idle[0]);
    let prepares = lost.parse().unwrap();
    for kind in [
        EventKind::Crashed,
        EventKind::PxeBooting,
        EventKind::Preparing,
    ] {
        node.event(prepares, kind).await;
    }
    let capacity = asked(json!({})).await;
    assert_eq!(capacity["phonedHome"], "1", "{capacity}");
    node.silence(2 * 3600 * 1000).await;
    let capacity = asked(json!({})).await;
    let faulty = capacity["faultyMachines"].as_array().unwrap();
    assert_eq!(
        capacity["faulty"],
        json!(faulty.len().to_string()),
        "{capacity}"
    );
    assert!(
        faulty.iter().any(|machine| *machine == json!(lost)),
        "{capacity}"
    );
    let elsewhere = capacity.get("otherMachines").and_then(Value::as_array);
    let elsewhere = elsewhere.map_or(0, Vec::len);
    let other = capacity.get("other").and_then(Value::as_str).unwrap_or("0");
    assert_eq!(other, elsewhere.to_string(), "{capacity}");
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_event_is_an_issue_for_as_long_as_it_is_asked() {
    let node = Node::start().await;
    node.data_centre().await;
    let uuid = node.waiting_machine(1).await;
    node.event(uuid.parse().unwrap(), EventKind::Crashed).await;
    for (threshold, found) in [(None, 1), (Some("3600s"), 1), (Some("0s"), 0)] {
        let only = "MACHINE_ISSUE_TYPE_LAST_EVENT_ERROR";
        let mut query = json!({"only": [only]});
        if let Some(threshold) = threshold {
            query["lastErrorThreshold"] = json!(threshold);
        }
        let asked = json!({"query": query});
        let said = admin(&node, "admin.v2.MachineService/Issues", asked)
            .await
            .unwrap();
        let issues = said
            .get("issues")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        assert_eq!(issues, found, "{threshold:?}: {said}");
    }
    node.stop().await;
}
