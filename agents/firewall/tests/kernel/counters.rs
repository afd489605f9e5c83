//! Counters go on, and what is known of the table is dropped when somebody else changes rules.

use std::time::Duration;

use agents_firewall::compile::compile;
use agents_firewall::dns::{NameLimits, NameService, ResolvedAddress};
use agents_firewall::monitor::Sampler;
use agents_firewall::netlink::{CounterValue, Kernel};
use agents_firewall::plan::plan;
use agents_firewall::rule::NameSelector;

use crate::dns_site::{DNS as DNS_PROXY, NAMES};
use crate::namespace::can_run;
use crate::site::{INSIDE, OUTSIDE, Site, arrives, rules, table, udp};

const DNS: &str = "    cwnp: {egress: [{name: dns, ports: [{protocol: UDP, port: 53}]}]}\n";
const MORE: &str = "    cwnp: {egress: [{name: dns, ports: [{protocol: UDP, port: 53}]}, {name: ntp, ports: [{protocol: UDP, port: 123}]}]}\n";
const DENY: &str = "      rules: [{name: no-smtp, action: drop, ports: [{port: 25}]}]\n";
const COUNTER: &str = "cwnp/egress/dns/0";

/// Sends the first datagram of a flow that the rule accepts.
fn pass_one(site: &Site) {
    let client = udp(&site.inside, INSIDE, 0);
    assert!(arrives(&client, &udp(&site.outside, OUTSIDE, 53)));
}

#[test]
fn counters_go_on_whatever_happens_to_the_table() {
    if !can_run() {
        return;
    }
    let site = Site::new("goes-on");
    site.with_kernel(|kernel| {
        let deny = format!("{DENY}{DNS}");
        let packets = |kernel: &Kernel| kernel.counters().unwrap()[COUNTER].packets;
        kernel.apply(&table(DNS)).unwrap();
        for (sent, next) in (1..).zip([MORE, DNS, &deny, DNS]) {
            pass_one(&site);
            // Another rule, and all maps made anew under other names.
            kernel.apply(&table(next)).unwrap();
            assert_eq!(packets(kernel), sent, "{next}");
        }
        for (sent, damage) in (5..).zip([
            "nft flush ruleset",
            "nft delete table inet metalmesh-firewall",
            "nft add table inet metalmesh-firewall { flags dormant ; }",
        ]) {
            pass_one(&site);
            assert_eq!(packets(kernel), sent);
            site.router.output(damage);
            kernel.apply(&table(DNS)).unwrap();
            assert_eq!(packets(kernel), sent, "{damage}");
        }
        let before = kernel.counters().unwrap()[COUNTER];
        assert!(before.bytes >= before.packets * 29);
        // A rule that was removed is another rule when it comes back.
        kernel.apply(&table("")).unwrap();
        kernel.apply(&table(DNS)).unwrap();
        assert_eq!(kernel.counters().unwrap()[COUNTER], CounterValue::default());
    });
}

#[test]
fn a_change_by_others_between_two_of_ours_is_seen() {
    if !can_run() {
        return;
    }
    let site = Site::new("between");
    site.with_kernel(|kernel| {
        for (damage, next) in [
            ("nft flush ruleset", MORE),
            (
                "nft insert rule inet metalmesh-firewall forward accept",
                DNS,
            ),
            ("nft add counter inet metalmesh-firewall mine", MORE),
            ("nft flush chain inet metalmesh-firewall input", DNS),
        ] {
            kernel.apply(&table(DNS)).unwrap();
            kernel.apply(&table(MORE)).unwrap();
            site.router.output(damage);
            let applied = kernel.apply(&table(next)).unwrap();
            let fresh = Kernel::open().unwrap().read().unwrap();
            assert_eq!(plan(&fresh, &table(next)), vec![], "{damage}");
            assert_eq!(fresh.generation, applied.generation, "{damage}");
        }
    });
}

#[test]
fn what_is_remembered_is_what_the_kernel_holds() {
    if !can_run() {
        return;
    }
    let site = Site::new("memory");
    site.with_kernel(|kernel| {
        let deny = format!("{DENY}{MORE}");
        for next in [DNS, MORE, &deny, "", DNS, &deny, MORE] {
            let applied = kernel.apply(&table(next)).unwrap();
            let fresh = Kernel::open().unwrap().read().unwrap();
            assert_eq!(plan(&fresh, &table(next)), vec![], "{next}");
            assert_eq!(fresh.generation, applied.generation);
            assert_eq!(kernel.apply(&table(next)).unwrap().changes, vec![]);
        }
    });
}

#[test]
fn statistics_are_read_by_one_dump_and_not_too_often() {
    if !can_run() {
        return;
    }
    let site = Site::new("sample");
    let rest = format!("{DENY}{DNS}");
    site.apply(&rest);
    pass_one(&site);
    let client = udp(&site.inside, INSIDE, 0);
    assert!(!arrives(&client, &udp(&site.outside, OUTSIDE, 54)));
    let rules = rules(&rest);
    site.with_kernel(|kernel| {
        let sampler = Sampler::new(Duration::from_secs(3600));
        assert!(sampler.sample(kernel, &rules).unwrap());
        let found = sampler.last();
        assert_eq!(found.rules.accept[COUNTER].packets, 1);
        assert_eq!(found.rules.drop["firewall/rules/no-smtp/0"].packets, 0);
        assert_eq!(found.dropped.packets, 1);
        assert!(!sampler.sample(kernel, &rules).unwrap(), "too soon");
        assert_eq!(sampler.last(), found);
    });
}

#[test]
fn learned_addresses_are_no_reason_to_read_the_table() {
    if !can_run() {
        return;
    }
    let site = Site::new("learned");
    let (before, after) = (
        rules(&format!("{DNS_PROXY}{NAMES}")),
        rules(&format!(
            "{DNS_PROXY}{NAMES}      - {{name: more, to: [{{cidr: 203.0.113.0/25}}]}}\n"
        )),
    );
    site.with_kernel(|kernel| {
        kernel.enforce(&before).unwrap();
        let service = NameService::open(NameLimits::default()).unwrap();
        service.configure(&before).unwrap();
        let address = OUTSIDE.parse().unwrap();
        let lifetime = Duration::from_secs(3600);
        let found = [ResolvedAddress { address, lifetime }];
        service.learn("api.example.test", &found, INSIDE.parse().unwrap());
        let (known, current) = (
            kernel.known_generation().unwrap(),
            kernel.generation().unwrap(),
        );
        assert!(known < current && service.made_all_since(known, current));
        kernel.adopt(current);
        assert_eq!(kernel.enforce(&before).unwrap().generation, current);
        assert_ne!(kernel.enforce(&after).unwrap().changes, vec![]);
        let fresh = Kernel::open().unwrap().read().unwrap();
        assert_eq!(plan(&fresh, &compile(&after)), vec![]);
        assert_eq!(Some(fresh.generation), kernel.known_generation());
        let set = NameSelector::name("api.example.test").unwrap().set(true);
        assert_eq!(kernel.timed(&set).unwrap().len(), 1);
        // A generation that is taken over is not read, until the table is forgotten.
        site.router
            .output("nft flush chain inet metalmesh-firewall input");
        let damaged = kernel.generation().unwrap();
        assert!(!service.made_all_since(fresh.generation, damaged));
        kernel.adopt(damaged);
        assert_eq!(kernel.enforce(&after).unwrap().changes, vec![]);
        kernel.forget();
        kernel.adopt(damaged);
        assert_eq!(kernel.known_generation(), None);
        assert_ne!(kernel.enforce(&after).unwrap().changes, vec![]);
    });
}
