use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ApiServer;
use super::real_server::{RealServer, programs};
use crate::agent::with_agent;
use crate::namespace::{POLL, can_run};
use crate::site::{INSIDE, OUTSIDE, Site, arrives, udp};

const DEADLINE: Duration = Duration::from_secs(60);
const POLICIES: &str = "/apis/metal-stack.io/v1/namespaces/firewall/clusterwidenetworkpolicies";
const FIREWALLS: &str = "/apis/firewall.metal-stack.io/v2/namespaces/shoot--a/firewalls";
const MONITORS: &str = "/apis/firewall.metal-stack.io/v2/namespaces/firewall/firewallmonitors";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn await_that(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < until, "{what} does not come");
        std::thread::sleep(POLL);
    }
}

/// `true` if the kernel has a rule with that counter.
fn has_rule(site: &Site, counter: &str) -> bool {
    site.with_kernel(|kernel| kernel.counters().is_ok_and(|all| all.contains_key(counter)))
}

/// A kind that the test defines: every field is kept.
fn definition(group: &str, version: &str, kind: &str, plural: &str, has_status: bool) -> Value {
    let subresources = if has_status {
        json!({ "status": {} })
    } else {
        json!({})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "names": { "kind": kind, "plural": plural },
            "scope": "Namespaced",
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": subresources,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                } },
            }],
        },
    })
}

fn prepare(server: &ApiServer) {
    for (group, version, kind, plural, has_status) in [
        (
            "metal-stack.io",
            "v1",
            "ClusterwideNetworkPolicy",
            "clusterwidenetworkpolicies",
            true,
        ),
        (
            "firewall.metal-stack.io",
            "v2",
            "Firewall",
            "firewalls",
            true,
        ),
        (
            "firewall.metal-stack.io",
            "v2",
            "FirewallMonitor",
            "firewallmonitors",
            false,
        ),
    ] {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let body = definition(group, version, kind, plural, has_status);
        server.request("POST", path, &body);
    }
    for name in ["shoot--a", "firewall", "default"] {
        let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        server.try_request("POST", "/api/v1/namespaces", &body);
    }
    for list in [POLICIES, FIREWALLS, MONITORS] {
        await_that(list, || {
            server.try_request("GET", list, &Value::Null).0 == 200
        });
    }
    let firewall = json!({
        "apiVersion": "firewall.metal-stack.io/v2", "kind": "Firewall",
        "metadata": { "name": "fw" },
        "spec": { "allowedNetworks": { "egress": ["203.0.113.0/24"], "ingress": ["0.0.0.0/0"] } },
    });
    server.request("POST", FIREWALLS, &firewall);
    let network = |id: &str, kind: &str, vrf: u32, prefix: &str| {
        json!({ "asn": 1, "nat": false, "networkID": id, "networkType": kind, "vrf": vrf,
                "prefixes": [prefix] })
    };
    let status = json!({ "status": { "firewallNetworks": [
        network("tenant", "privateprimaryunshared", 42, "10.0.0.0/8"),
        network("internet", "external", 104, "203.0.113.0/24"),
    ] } });
    server.request("PATCH", &format!("{FIREWALLS}/fw/status"), &status);
    let monitor = json!({
        "apiVersion": "firewall.metal-stack.io/v2", "kind": "FirewallMonitor",
        "metadata": { "name": "fw" }, "size": "s",
    });
    server.request("POST", MONITORS, &monitor);
}

fn create_policy(server: &ApiServer, name: &str, spec: &Value) {
    let body = json!({
        "apiVersion": "metal-stack.io/v1", "kind": "ClusterwideNetworkPolicy",
        "metadata": { "name": name }, "spec": spec,
    });
    server.request("POST", POLICIES, &body);
}

fn egress(port: u16) -> Value {
    json!({ "egress": [{ "to": [{ "cidr": "203.0.113.0/24" }],
                         "ports": [{ "protocol": "UDP", "port": port }] }] })
}

/// State and message in a policy's status.
fn status(server: &ApiServer, name: &str) -> (String, String) {
    let policy = server.request("GET", &format!("{POLICIES}/{name}"), &Value::Null);
    let text = |field: &str| policy["status"][field].as_str().unwrap_or("").to_owned();
    (text("state"), text("message"))
}

fn await_status(server: &ApiServer, name: &str, state: &str, message: &str) {
    let mut last = (String::new(), String::new());
    let until = Instant::now() + DEADLINE;
    while last.0 != state || !last.1.contains(message) {
        assert!(
            Instant::now() < until,
            "{name} is {last:?}, not {state} {message}"
        );
        last = status(server, name);
    }
}

fn configure(server: &ApiServer, folder: &Path) {
    for name in ["seed.yaml", "shoot.yaml"] {
        server.write_kubeconfig(&folder.join(name));
    }
    let at = folder.display();
    let text = format!(
        "name: fw
sources:
  seed: {{kubeconfig: {at}/seed.yaml, namespace: shoot--a}}
  shoot: {{kubeconfig: {at}/shoot.yaml, namespace: firewall}}
controllers:
  firewall: {{source: seed}}
  cwnp: {{source: shoot}}
  service: {{source: shoot}}
  monitor: {{source: shoot}}
"
    );
    fs::write(folder.join("config.yaml"), text).unwrap();
}

/// A flow of its own through the router: established ones pass whatever the rules are.
fn passes(site: &Site, port: u16) -> bool {
    arrives(
        &udp(&site.inside, INSIDE, 0),
        &udp(&site.outside, OUTSIDE, port),
    )
}

/// The actions of a tenant and an operator while the agent runs.
fn change_objects(site: &Site, server: &ApiServer) {
    await_that("dns", || has_rule(site, "cwnp/egress/dns/0"));
    assert!(passes(site, 53));
    assert!(!passes(site, 54));
    await_status(server, "dns", "deployed", "");
    // Many, with a wrong one among them, and one beyond the operator's limits.
    for number in 0..20_u16 {
        let spec = if number == 10 {
            egress(0)
        } else {
            egress(1000 + number)
        };
        create_policy(server, &format!("p{number}"), &spec);
    }
    create_policy(
        server,
        "everywhere",
        &json!({ "egress": [{ "ports": [{ "port": 1 }] }] }),
    );
    await_that("p19", || has_rule(site, "cwnp/egress/p19/0"));
    await_status(
        server,
        "p10",
        "ignored",
        "egress[0]: ports[0].port: 0 is not a port",
    );
    await_status(server, "everywhere", "ignored", "the operator allows");
    await_status(server, "p11", "deployed", "");
    assert!(!has_rule(site, "cwnp/egress/p10/0"));
    assert!(!has_rule(site, "cwnp/egress/everywhere/0"));
    // The operator's part changes.
    let rate = json!({ "spec": { "rateLimits": [{ "networkID": "internet", "rate": 100 }] } });
    server.request("PATCH", &format!("{FIREWALLS}/fw"), &rate);
    await_that("the rate limit", || has_rule(site, "rate-limit/internet"));
    // A service gets its address, and its rule.
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "shop" },
        "spec": { "type": "LoadBalancer", "ports": [{ "protocol": "TCP", "port": 443 }] },
    });
    server.request("POST", SERVICES, &service);
    let address = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "203.0.113.7" }] } } });
    server.request("PATCH", &format!("{SERVICES}/shop/status"), &address);
    await_that("the service", || has_rule(site, "service/default/shop/0"));
    await_that("the report", || {
        let monitor = server.request("GET", &format!("{MONITORS}/fw"), &Value::Null);
        monitor["controllerStatus"]["stats"]["rules"]["accept"]["cwnp/egress/dns/0"].is_object()
    });
}

fn run_scenario(site: &Site, server: &mut ApiServer) {
    let folder = tempfile::tempdir().unwrap();
    prepare(server);
    configure(server, folder.path());
    create_policy(server, "dns", &egress(53));
    with_agent(site, folder.path(), || {
        change_objects(site, server);
        // Without the server everything stays, and drift is repaired.
        server.kill();
        assert!(passes(site, 53));
        site.router.output("nft flush ruleset");
        await_that("the repair", || has_rule(site, "cwnp/egress/dns/0"));
        assert!(passes(site, 53));
        // It comes back: the agent follows it again.
        server.start();
        create_policy(server, "late", &egress(55));
        await_that("late", || has_rule(site, "cwnp/egress/late/0"));
        server.request("DELETE", &format!("{POLICIES}/p1"), &Value::Null);
        await_that("the removal", || !has_rule(site, "cwnp/egress/p1/0"));
    });
    // A boot without the server: what was last good of each source.
    server.kill();
    site.router.output("nft flush ruleset");
    with_agent(site, folder.path(), || {
        await_that("the last good rules", || {
            has_rule(site, "cwnp/egress/late/0")
        });
        // Counters cannot be read while rules change.
        await_that("the last good rate limit", || {
            has_rule(site, "rate-limit/internet")
        });
        await_that("the last good service", || {
            has_rule(site, "service/default/shop/0")
        });
        assert!(passes(site, 53));
        assert!(!passes(site, 54));
    });
}

#[test]
fn objects_of_an_api_server_in_memory_are_in_the_kernel() {
    if !can_run() {
        return;
    }
    let site = Site::new("kubemem");
    let mut server = ApiServer::in_memory(&site.router);
    run_scenario(&site, &mut server);
}

#[test]
fn objects_of_a_real_kube_apiserver_are_in_the_kernel() {
    if !can_run() {
        return;
    }
    let Some(programs) = programs() else {
        println!("skipped: no kube-apiserver: ./dev test --kube builds one");
        return;
    };
    let site = Site::new("kubereal");
    let folder = tempfile::tempdir().unwrap();
    let server = RealServer::start(programs, folder.path(), &site.router);
    let mut server = ApiServer::real(server, &site.router);
    run_scenario(&site, &mut server);
}
