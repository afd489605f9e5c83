//! Addresses of names when there is no room for all.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use super::learned::LearnedNames;
use super::{NameLimits, ResolvedAddress};
use crate::rule::{NameSelector, Network, NetworkKind, RuleSet};

const LIMITS: NameLimits = NameLimits {
    lifetime_min: Duration::from_secs(60),
    lifetime_max: Duration::from_secs(3600),
    answer_addresses_max: 8,
    name_addresses_max: 32,
    addresses_max: 48,
};
const VICTIM: &str = "10.1.0.1";
const FLOOD: &str = "10.2.0.1";

fn learned(names: &BTreeSet<NameSelector>) -> LearnedNames {
    let network = |id: &str, prefix: &str| Network {
        id: id.to_owned(),
        kind: NetworkKind::Private,
        interfaces: vec![id.to_owned()],
        prefixes: vec![prefix.parse().unwrap()],
        addresses: None,
        nat_addresses: Vec::new(),
        masquerade: false,
    };
    let rules = RuleSet {
        networks: vec![network("one", "10.1.0.0/16"), network("two", "10.2.0.0/16")],
        ..RuleSet::default()
    };
    let mut learned = LearnedNames::new(LIMITS);
    learned.configure(&names.iter().collect(), &rules);
    learned
}

fn answer(first: u32, count: u32) -> Vec<ResolvedAddress> {
    let one = |index| ResolvedAddress {
        address: Ipv4Addr::from(0x0808_0000 + first + index).into(),
        lifetime: Duration::from_secs(7 * 24 * 3600),
    };
    (0..count).map(one).collect()
}

fn held(learned: &LearnedNames, addresses: &[ResolvedAddress]) -> usize {
    let all: BTreeSet<IpAddr> = learned.all().map(|own| own.address).collect();
    let is_held = |one: &&ResolvedAddress| all.contains(&one.address);
    addresses.iter().filter(is_held).count()
}

#[test]
fn a_network_that_asks_for_very_many_displaces_its_own() {
    let names: BTreeSet<_> = ["*.a.com", "*.b.com"]
        .map(|text| NameSelector::pattern(text).unwrap())
        .into();
    let mut learned = learned(&names);
    let (victim, flood): (IpAddr, IpAddr) = (VICTIM.parse().unwrap(), FLOOD.parse().unwrap());
    let begin = Instant::now();
    let at = |second| begin + Duration::from_secs(second);
    let mine = answer(0, 8);
    learned.learn("x.a.com", &mine, victim, at(0));
    // Also if it has asked for them, too.
    learned.learn("x.a.com", &mine, flood, at(1));
    for round in 0..20 {
        let name = if round % 3 == 0 { "y.b.com" } else { "y.a.com" };
        let more = answer(1000 + round * 8, 8);
        let outcome = learned.learn(name, &more, flood, at(2 + u64::from(round)));
        assert_eq!((outcome.elements.len(), outcome.without_room), (8, 0));
        assert!(learned.len() <= LIMITS.addresses_max);
    }
    assert_eq!(held(&learned, &mine), 8);
    // The network that has few takes places of the one that has many, and keeps them.
    let later = answer(100, 8);
    let outcome = learned.learn("z.a.com", &later, victim, at(50));
    assert_eq!((outcome.elements.len(), outcome.without_room), (8, 0));
    let mine = [mine, later].concat();
    let gone: BTreeSet<Vec<u8>> = outcome.evicted.into_iter().map(|own| own.key).collect();
    assert!(!gone.is_empty());
    learned.learn("y.a.com", &answer(5000, 8), flood, at(51));
    assert_eq!(held(&learned, &mine), 16);
    // An hour after the last answer an address ends, whatever its TTL.
    learned.expire(at(50 + 3600));
    assert_eq!(held(&learned, &mine), 0);
}

#[test]
fn an_answer_with_too_many_addresses_is_cut() {
    let name = NameSelector::name("a.com").unwrap();
    let mut learned = learned(&[name].into());
    let client = VICTIM.parse().unwrap();
    let now = Instant::now();
    for first in [0, 8, 16, 24, 32] {
        learned.learn("a.com", &answer(first, 9), client, now);
    }
    let count = learned.learn("a.com", &answer(40, 9), client, now);
    assert_eq!(count.without_room, 8, "all others are as new");
    assert_eq!(learned.len(), 32);
}

#[test]
fn addresses_whose_lifetime_has_ended_go_once_a_second() {
    let name = NameSelector::name("a.com").unwrap();
    let mut learned = learned(&[name].into());
    let client = VICTIM.parse().unwrap();
    let begin = Instant::now();
    let mut learn = |ms: u64, first, count| {
        let now = begin + Duration::from_millis(ms);
        learned.learn("a.com", &answer(first, count), client, now);
        learned.len()
    };
    let hour = 3_600_000;
    assert_eq!(learn(0, 0, 8), 8);
    assert_eq!(learn(hour - 500, 100, 8), 16);
    assert_eq!(learn(hour, 200, 1), 17, "too early for another walk");
    assert_eq!(learn(hour + 500, 300, 1), 10);
}

#[test]
fn addresses_whose_lifetime_has_ended_make_room_first() {
    for (names, full) in [(1, 32), (2, 48)] {
        let selectors = ["a.com", "b.com"].into_iter().take(names);
        let selectors = selectors.map(|text| NameSelector::name(text).unwrap());
        let mut learned = learned(&selectors.collect());
        let client = VICTIM.parse().unwrap();
        let begin = Instant::now();
        let hour = Duration::from_secs(3600);
        for first in (0..full).step_by(8) {
            let is_first = names == 1 || first < full / 2;
            let name = if is_first { "a.com" } else { "b.com" };
            learned.learn(name, &answer(first, 8), client, begin);
        }
        assert_eq!(learned.len(), usize::try_from(full).unwrap());
        // One of them is asked for again, and the walk over all is done.
        let just_before = begin + hour - Duration::from_millis(500);
        learned.learn("a.com", &answer(0, 1), client, just_before);
        let outcome = learned.learn("a.com", &answer(500, 8), client, begin + hour);
        assert_eq!(outcome.evicted, vec![], "{names} names");
        assert_eq!((outcome.elements.len(), outcome.without_room), (8, 0));
        assert_eq!(held(&learned, &answer(0, 1)), 1);
    }
}
