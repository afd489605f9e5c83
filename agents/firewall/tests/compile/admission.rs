//! An admission that remembers objects has the result of one that does not.

use agents_firewall::admit::{ObjectAdmission, admit};
use agents_firewall::config::Config;
use proptest::prelude::*;

use crate::tables::{HEAD, TAIL};

/// Rules and policies: right, wrong, without a name, and of a name that others have.
const RULES: [&str; 9] = [
    "{name: a, action: accept}",
    "{name: a, action: accept, ports: [{port: 80}]}",
    "{name: b, action: accept, to: [{cidr: 198.51.100.0/24}]}",
    "{action: accept}",
    "{action: accept, ports: [{port: 53}]}",
    "{name: '', action: accept, log: true}",
    "{name: A}",
    "{nam: a}",
    "7",
];
const NAMED: &str = "{name: named, toFQDNs: [{matchName: a.com}]}";
const POLICIES: [&str; 3] = [
    "{name: both, egress: [{}, {ports: [{port: 80}]}], ingress: [{}]}",
    "{name: both, egress: [{to: [{cidr: 198.51.100.0/24}]}]}",
    "{name: wrong, egress: [{}], ingress: [{ports: [{port: 0}]}]}",
];
const SERVICES: [&str; 3] = [
    "{name: shop, loadBalancerIPs: [203.0.113.7], ports: [{port: 443}]}",
    "{name: out, loadBalancerIPs: [192.0.2.7], ports: [{port: 443}]}",
    "{name: shop}",
];
/// The operator's part: what tenants may name, and whether names are resolved.
const LIMITS: [&str; 4] = [
    "",
    "      allowedNetworks: {egress: [198.51.100.0/24], ingress: [203.0.113.0/24]}\n",
    "      dnsServerAddress: 192.0.2.53\n",
    "      allowedNetworks: {egress: [x]}\n",
];

fn list(of: &'static [&'static str]) -> impl Strategy<Value = String> {
    let objects = prop::collection::vec(prop::sample::select(of), 0..6);
    objects.prop_map(|objects| format!("[{}]", objects.join(", ")))
}

fn config() -> impl Strategy<Value = Config> {
    let rules = || list(&RULES);
    let tenant = (rules(), list(&POLICIES), list(&SERVICES));
    let limits = prop::sample::select(&LIMITS[..]);
    (limits, rules(), rules(), any::<bool>(), tenant).prop_map(
        |(limits, operator, mut egress, is_named, (ingress, policies, services))| {
            if is_named {
                egress = egress.replacen('[', &format!("[{NAMED}, "), 1);
                egress = egress.replace(", ]", "]");
            }
            let text = format!(
                "{HEAD}{limits}      rules: {operator}\n    cwnp:\n      egress: {egress}\n      \
                 ingress: {ingress}\n      policies: {policies}\n    service: {services}\n{TAIL}"
            );
            Config::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
        },
    )
}

proptest! {
    #[test]
    fn what_is_remembered_changes_no_result(configs in prop::collection::vec(config(), 2..8)) {
        let mut admission = ObjectAdmission::remembering();
        for config in &configs {
            prop_assert_eq!(admission.admit(config), admit(config));
        }
    }
}

/// A block that some 15,000 prefixes are made of.
fn splitting_block() -> String {
    let holes = (0..128).map(|hole| format!("'{:x}:{hole:x}::{hole:x}/128'", hole * 7 + 1));
    let holes: Vec<String> = holes.collect();
    format!("{{cidr: '::/0', except: [{}]}}", holes.join(", "))
}

#[test]
fn the_prefixes_of_all_objects_together_are_bounded() {
    // 35 have the entries of a firewall, and 70 the prefixes.
    let block = splitting_block();
    let policies = (0..100).map(|index| format!("{{name: p{index}, to: [{block}]}}"));
    let policies: Vec<String> = policies.collect();
    let text = format!(
        "{HEAD}      rules: [{{name: first, action: drop}}]\n    cwnp:\n      egress: [{}]\n{TAIL}",
        policies.join(", ")
    );
    let admitted = admit(&Config::parse(&text).unwrap());
    assert_eq!(admitted.rules.operator.len(), 1);
    assert!((30..40).contains(&admitted.rules.tenant.len()));
    let is_unread = |object: &str| {
        let mut problems = admitted.problems.iter();
        problems.any(|own| own.object == object && own.field == "the object")
    };
    assert!(!is_unread("cwnp egress/p60") && is_unread("cwnp egress/p99"));
    assert_eq!(
        admitted.rules.tenant.len() + admitted.problems.len(),
        100,
        "each is a rule or a problem"
    );
}

#[test]
fn the_prefixes_of_one_policy_are_bounded() {
    let block = splitting_block();
    let rules = vec![format!("{{to: [{block}]}}"); 100].join(", ");
    let text = format!(
        "{HEAD}    cwnp:\n      policies: [{{name: x, egress: [{rules}]}}, {{name: y}}]\n{TAIL}"
    );
    let admitted = admit(&Config::parse(&text).unwrap());
    assert_eq!(admitted.problems.len(), 1, "{:?}", admitted.problems);
    assert_eq!(admitted.problems[0].field, "the object");
}
