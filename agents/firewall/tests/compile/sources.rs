//! Objects of several sources: which of them a controller gets, and what becomes of them.

use std::sync::Arc;

use agents_firewall::admit::{Admitted, admit_objects};
use agents_firewall::config::{Config, SourceName};
use agents_firewall::source::kubernetes::{
    KubernetesObject, ObjectList, WatchEvent, firewall_spec, policy_value, service_value,
};
use agents_firewall::source::{CollectedObjects, MissingSource, SourceObjects};
use serde_json::{Value, json};

const MIXED: &str = "
name: fw
sources:
  seed: {kubeconfig: /seed.yaml, namespace: shoot--a}
  shoot: {kubeconfig: /shoot.yaml, namespace: firewall}
  static:
    cwnp: {egress: [{name: fixed}]}
controllers:
  firewall: {source: seed}
  cwnp: {source: shoot}
  service: {source: static}
";

fn object(value: Value) -> KubernetesObject {
    KubernetesObject::of(value).unwrap()
}

/// A Firewall as a seed has it.
fn firewall(spec: Value) -> SourceObjects {
    let networks = json!([
        { "asn": 1, "nat": false, "networkID": "tenant", "networkType": "privateprimaryunshared",
          "vrf": 42, "ips": ["10.0.0.1"], "prefixes": ["10.0.0.0/8"] },
        { "asn": 1, "nat": true, "networkID": "internet", "networkType": "external", "vrf": 104,
          "ips": ["203.0.113.5"], "prefixes": ["203.0.113.0/24"],
          "destinationPrefixes": ["0.0.0.0/0"] },
        { "asn": 1, "nat": false, "networkID": "underlay", "networkType": "underlay", "vrf": 0 },
    ]);
    let own = object(json!({
        "metadata": { "name": "fw", "namespace": "shoot--a" },
        "spec": spec,
        "status": { "firewallNetworks": networks },
    }));
    SourceObjects {
        firewall: firewall_spec(&own).unwrap(),
        ..SourceObjects::default()
    }
}

fn policies(list: &[Value]) -> SourceObjects {
    let mut objects = SourceObjects::default();
    objects.cwnp.policies = list
        .iter()
        .map(|value| policy_value(&object(value.clone())))
        .collect();
    objects
}

fn policy(name: &str, spec: Value) -> Value {
    json!({ "metadata": { "name": name, "namespace": "firewall" }, "spec": spec })
}

fn admitted(collected: &CollectedObjects, text: &str) -> Admitted {
    let config = Config::parse(text).unwrap();
    admit_objects(&collected.by_controller(&config).unwrap())
}

fn names(admitted: &Admitted) -> Vec<String> {
    let rules = admitted.rules.rules();
    rules
        .map(|rule| format!("{}/{}", rule.id.object, rule.id.rule))
        .collect()
}

#[test]
fn each_controller_has_its_own_source() {
    let config = Config::parse(MIXED).unwrap();
    let mut collected = CollectedObjects::default();
    // The shoot alone is not enough: the operator's limits are not known.
    let web = policy("web", json!({ "egress": [{ "ports": [{ "port": 80 }] }] }));
    assert!(collected.replace(
        SourceName::Shoot,
        Arc::new(policies(std::slice::from_ref(&web)))
    ));
    assert_eq!(
        collected.by_controller(&config).unwrap_err(),
        MissingSource(SourceName::Seed)
    );
    assert!(collected.replace(SourceName::Seed, Arc::new(firewall(json!({})))));
    // The static policies are not those of the controller.
    assert_eq!(names(&admitted(&collected, MIXED)), ["egress/web/0"]);
    // The same again is no change; another one replaces the whole snapshot.
    assert!(!collected.replace(SourceName::Shoot, Arc::new(policies(&[web]))));
    assert!(collected.replace(SourceName::Shoot, Arc::new(policies(&[]))));
    assert!(names(&admitted(&collected, MIXED)).is_empty());
    let fixed = MIXED.replace("cwnp: {source: shoot}", "cwnp: {source: static}");
    assert_eq!(names(&admitted(&collected, &fixed)), ["egress/fixed/0"]);
}

#[test]
fn a_firewall_of_a_seed_is_what_the_file_could_say() {
    let mut collected = CollectedObjects::default();
    let spec = json!({
        "size": "s", "image": "i", "partition": "p", "project": "x", "networks": ["internet"],
        "interval": "10s", "ipv4RuleFile": null,
        "rateLimits": [{ "networkID": "internet", "rate": 10 }],
        "egressRules": [{ "networkID": "internet", "ips": ["203.0.113.50"] }],
        "internalPrefixes": ["10.0.0.0/8"],
        "allowedNetworks": { "egress": ["198.51.100.0/24"], "ingress": [] },
        "controllerVersion": "v1", "controllerURL": "https://x", "logAcceptedConnections": true,
    });
    collected.replace(SourceName::Seed, Arc::new(firewall(spec)));
    let to = |cidr: &str| json!({ "egress": [{ "to": [{ "cidr": cidr }] }] });
    let list = [
        policy("inside", to("198.51.100.0/25")),
        policy("outside", to("192.0.2.0/24")),
    ];
    collected.replace(SourceName::Shoot, Arc::new(policies(&list)));
    let found = admitted(&collected, MIXED);
    assert_eq!(names(&found), ["egress/inside/0"]);
    assert!(found.rules.tenant[0].log);
    assert_eq!(found.rules.rate_limits[0].mebibytes_per_second, 10);
    let networks = &found.rules.networks;
    assert_eq!(networks.len(), 3, "{:?}", found.problems);
    assert_eq!(networks[1].nat_addresses.len(), 1);
    assert_eq!(networks[1].prefixes.len(), 2);
    assert_eq!(found.problems.len(), 1);
    assert!(found.problems[0].object.contains("outside"));
    // Without networks there is nothing that a rule could be for.
    let waiting = object(json!({ "metadata": { "name": "fw" }, "spec": {} }));
    assert!(firewall_spec(&waiting).is_none());
}

#[test]
fn a_wrong_policy_is_refused_alone_and_as_a_whole() {
    let mut collected = CollectedObjects::default();
    collected.replace(SourceName::Seed, Arc::new(firewall(json!({}))));
    let port = |port: u32| json!({ "ports": [{ "port": port }] });
    let mut list: Vec<Value> = (0..1000)
        .map(|number| policy(&format!("p{number}"), json!({ "ingress": [port(80)] })))
        .collect();
    list[500] = policy(
        "half",
        json!({ "egress": [port(80), port(0)], "ingress": [port(22)] }),
    );
    list[501] = policy("newer", json!({ "egress": [port(80)], "podSelector": {} }));
    list[502] = policy(&"x".repeat(100), json!({ "egress": [port(80)] }));
    // Everything is allowed by what has no field: also by a field that is null.
    list[503] = policy("null", json!({ "egress": [{ "to": null, "ports": null }] }));
    collected.replace(SourceName::Shoot, Arc::new(policies(&list)));
    let found = admitted(&collected, MIXED);
    assert_eq!(found.rules.rules().count(), 997);
    let problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    let expected = [
        "cwnp egress/half rule 1: ports[0].port: 0 is not a port",
        "cwnp policies[501]: the object: unknown field `podSelector`",
        "cwnp policies[502]: name: ",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn a_policy_of_a_cluster_may_have_names() {
    let mut collected = CollectedObjects::default();
    let proxy = json!({ "dnsServerAddress": "192.0.2.53", "dnsPort": 5353 });
    collected.replace(SourceName::Seed, Arc::new(firewall(proxy)));
    let to = |names: Value| json!({ "toFQDNs": names, "ports": [{ "port": 443 }] });
    let web = json!([{ "matchName": "API.example.com." }, { "matchPattern": "*.example.org" }]);
    let list = [
        policy("web", json!({ "egress": [to(web)] })),
        policy(
            "bad",
            json!({ "egress": [to(json!([{ "matchName": "*" }]))] }),
        ),
        policy(
            "in",
            json!({ "ingress": [to(json!([{ "matchName": "a" }]))] }),
        ),
    ];
    collected.replace(SourceName::Shoot, Arc::new(policies(&list)));
    let found = admitted(&collected, MIXED);
    assert_eq!(names(&found), ["egress/web/0"], "{:?}", found.problems);
    let selectors = found.rules.tenant[0].names.iter();
    let texts: Vec<&str> = selectors.map(|name| name.text()).collect();
    assert_eq!(texts, ["api.example.com", "*.example.org"]);
    assert_eq!(found.rules.input.dns_port, Some(5353));
    let problems: Vec<String> = found.problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("cwnp egress/bad rule 0: toFQDNs[0].matchName"));
    assert!(problems[1].starts_with("cwnp ingress/in rule 0: toFQDNs"));
    // Without a server to ask nobody learns their addresses.
    collected.replace(SourceName::Seed, Arc::new(firewall(json!({}))));
    let found = admitted(&collected, MIXED);
    assert!(names(&found).is_empty());
    assert_eq!(found.rules.input.dns_port, None);
}

#[test]
fn services_are_those_with_an_address() {
    let service = |kind: &str, status: Value| {
        service_value(&object(json!({
            "metadata": { "name": "shop", "namespace": "default" },
            "spec": {
                "type": kind, "clusterIP": "10.0.0.9", "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "ports": [{ "name": "web", "port": 443, "nodePort": 31000, "targetPort": "https",
                            "protocol": "TCP", "appProtocol": "https" }],
            },
            "status": status,
        })))
    };
    let ready =
        json!({ "loadBalancer": { "ingress": [{ "ip": "203.0.113.7" }, { "hostname": "x" }] } });
    assert!(service("ClusterIP", ready.clone()).is_none());
    assert!(service("LoadBalancer", json!({ "loadBalancer": {} })).is_none());
    let mut objects = SourceObjects::default();
    objects
        .service
        .push(service("LoadBalancer", ready).unwrap());
    let mut collected = CollectedObjects::default();
    collected.replace(SourceName::Seed, Arc::new(firewall(json!({}))));
    collected.replace(SourceName::Shoot, Arc::new(objects));
    let text = MIXED.replace("service: {source: static}", "service: {source: shoot}");
    let found = admitted(&collected, &text);
    assert_eq!(names(&found), ["default/shop/0"], "{:?}", found.problems);
    assert_eq!(
        found.rules.tenant[0].destinations[0].to_string(),
        "203.0.113.7/32"
    );
}

#[test]
fn lists_and_events_are_read_strictly() {
    let page = br#"{"metadata":{"resourceVersion":"7","continue":"n"},"items":[{"metadata":{"name":"a"}}]}"#;
    let page = ObjectList::decode(page).unwrap();
    assert_eq!((page.version.as_str(), page.next.as_str()), ("7", "n"));
    assert_eq!(page.objects[0].key().name, "a");
    assert!(ObjectList::decode(br#"{"items":[{}]}"#).is_err());
    assert!(
        ObjectList::decode(br#"{"items":null}"#)
            .unwrap()
            .objects
            .is_empty()
    );
    for (line, expected) in [
        (
            r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"8"}}}"#,
            "8",
        ),
        (
            r#"{"type":"DELETED","object":{"metadata":{"name":"a","resourceVersion":"9"}}}"#,
            "9",
        ),
        (
            r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"10"}}}"#,
            "10",
        ),
    ] {
        let event = WatchEvent::decode(line.as_bytes(), "watch x").unwrap();
        assert_eq!(event.version(), expected);
    }
    for (line, expected) in [
        (
            r#"{"type":"ERROR","object":{"code":410,"message":"too old"}}"#,
            "forgotten",
        ),
        (
            r#"{"type":"ERROR","object":{"code":403,"message":"no"}}"#,
            "may not watch x",
        ),
        (r#"{"type":"ADDED","object":{}}"#, "no name"),
        (r#"{"type":"X","object":{}}"#, "no event"),
        ("7", "cannot be read"),
    ] {
        let error = WatchEvent::decode(line.as_bytes(), "watch x").unwrap_err();
        assert!(error.to_string().contains(expected), "{line}: {error}");
    }
}
