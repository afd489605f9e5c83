//! Wishes of tenants: the claims they make.

use control_state::{
    ClaimSelector, ClaimSpec, ClaimToleration, DomainWish, LAYOUT_DEFAULT, LostRule, ReuseWish,
    SelectorOp, SelectorTerm, WantedNetwork, WipeLevel,
};
use tests_support::objects::text;

use crate::random::Random;
use crate::tenants::site::{self, DOMAINS, KINDS, POOLS, TAINT};

/// Priorities; pools allow less than the highest.
const PRIORITIES: [u32; 5] = [0, 10, 60, 200, 600];

/// An intent of a tenant.
pub(super) fn spec(random: &mut Random, tenant: u64) -> ClaimSpec {
    let pool = random.pick(&POOLS).filter(|_| random.chance(20));
    let toleration = ClaimToleration {
        key: TAINT.to_owned(),
        value: None,
    };
    let reuse = ReuseWish {
        key: "workers".to_owned(),
        required: random.chance(20),
        keep_ms: 30_000,
        wipe: random.chance(60).then_some(WipeLevel::Metadata),
    };
    let mut spec = ClaimSpec {
        pools: pool.map(|pool| text(pool)).into_iter().collect(),
        selector: selector(random),
        tolerations: random
            .chance(40)
            .then_some(toleration)
            .into_iter()
            .collect(),
        domain: domain(random),
        priority: random.pick(&PRIORITIES).copied().unwrap_or(0),
        reuse: random.chance(10).then_some(reuse),
        spread: match random.chance(30) {
            true => "web".to_owned(),
            false => String::new(),
        },
        on_lost: match random.chance(50) {
            true => LostRule::Rebind,
            false => LostRule::Stay,
        },
        paused: random.chance(4),
        powered_on: random.chance(90),
        ..ClaimSpec::default()
    };
    if random.chance(75) {
        install(&mut spec, tenant);
    }
    spec
}

/// Has an image installed.
pub(super) fn install(spec: &mut ClaimSpec, tenant: u64) {
    spec.image = Some(text("debian-12.0"));
    spec.layout = Some(text(LAYOUT_DEFAULT));
    spec.networks = vec![WantedNetwork {
        network: site::network_of(tenant),
        ips: Vec::new(),
    }];
}

/// Takes the image away.
pub(super) fn uninstall(spec: &mut ClaimSpec) {
    spec.image = None;
    spec.layout = None;
    spec.networks = Vec::new();
}

pub(super) fn selector(random: &mut Random) -> ClaimSelector {
    let mut selector = ClaimSelector::default();
    let kind = random.pick(&KINDS).copied().unwrap_or(KINDS[0]);
    let mut term = |key: &str, op, values: &[&str]| {
        selector.terms.push(SelectorTerm {
            key: key.to_owned(),
            op,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        });
    };
    match random.within(0..8) {
        0 | 1 => {}
        2 => term("kind", SelectorOp::In, &[kind, KINDS[2]]),
        3 => term("kind", SelectorOp::NotIn, &[kind]),
        4 => term("disk", SelectorOp::Exists, &[]),
        // A label that the pools do not publish: to tenants no host has it.
        5 if random.chance(10) => term("row", SelectorOp::Exists, &[]),
        _ => {
            let label = ("kind".to_owned(), kind.to_owned());
            selector.labels.extend([label]);
        }
    }
    selector
}

fn domain(random: &mut Random) -> Option<DomainWish> {
    let name = random.pick(&DOMAINS).copied().unwrap_or(DOMAINS[0]);
    let required = random.chance(50);
    let wish = DomainWish {
        name: name.to_owned(),
        required,
    };
    random.chance(20).then_some(wish)
}
