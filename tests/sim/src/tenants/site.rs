//! The site: where its machines are, and which pools they are in.

use std::collections::BTreeSet;

use control_state::{
    DeployPolicy, HostTaint, Labels, MetadataRules, RequiredLabel, RevokeRule, SetPool,
    SetPoolHost, WipeLevel,
};
use proto_types::{NetworkId, PoolId};
use tests_support::objects::text;

use super::ids;

/// Tenants, each with a project of its number.
pub(crate) const TENANTS: u64 = 100;
/// Machines of pools: the first ones.
pub(crate) const HOSTS: u64 = 48;
/// Machines with owners: the others.
pub(crate) const OWNED: u64 = 16;
/// All machines.
pub(crate) const MACHINES: u64 = HOSTS + OWNED;
/// Projects that own machines: the first ones.
pub(crate) const OWNERS: u64 = 4;
/// Leaves, and their ports.
pub(crate) const LEAVES: u64 = 2;
pub(crate) const PORTS: u64 = MACHINES / LEAVES;

/// Kinds of hosts, as their labels name them.
pub(crate) const KINDS: [&str; 3] = ["small", "medium", "large"];
/// Failure domains.
pub(crate) const DOMAINS: [&str; 2] = ["hall-a", "hall-b"];
/// The taint of some hosts.
pub(crate) const TAINT: &str = "gpu";
/// The pools.
pub(crate) const POOLS: [&str; 3] = ["shared", "gold", "night"];
/// Longest reservation of a released host, milliseconds.
const REUSE_MAX_MS: u64 = 60_000;
/// Time after which the pool `night` takes hosts from projects that it does not admit any more,
/// milliseconds.
const GRACE_MS: u64 = 40_000;

pub(crate) fn leaf_name(number: u64) -> String {
    format!("leaf{number}")
}

/// Leaf and port of a machine.
pub(crate) fn port_of(machine: u64) -> (String, String) {
    let place = machine - 1;
    let port = format!("swp{}", place % PORTS + 1);
    (leaf_name(place / PORTS + 1), port)
}

/// The machine at a port of a leaf.
pub(crate) fn machine_at(leaf: u64, port: &str) -> Option<u64> {
    let port: u64 = port.strip_prefix("swp")?.parse().ok()?;
    Some((leaf - 1) * PORTS + port)
}

/// The project that owns a machine beyond the pools.
pub(crate) fn owner_of(machine: u64) -> u64 {
    machine % OWNERS + 1
}

/// The network of a tenant.
pub(crate) fn network_of(tenant: u64) -> NetworkId {
    text(&format!("net-{tenant}"))
}

pub(crate) fn pool_of(host: u64) -> PoolId {
    // Half of the hosts are everybody's.
    let place = (host / 3) % 4;
    text(match place {
        0 => POOLS[1],
        1 => POOLS[2],
        _ => POOLS[0],
    })
}

/// A host with its labels, in service.
pub(crate) fn host(number: u64) -> SetPoolHost {
    let kind = KINDS[(number % 3) as usize];
    let mut labels: Labels = [("kind", kind), ("row", "7")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    if number.is_multiple_of(4) {
        labels.insert("disk".to_owned(), "ssd".to_owned());
    }
    let taint = HostTaint {
        key: TAINT.to_owned(),
        value: "a".to_owned(),
    };
    let is_tainted = number.is_multiple_of(8);
    SetPoolHost {
        machine: ids::machine(number),
        expected: None,
        pool: pool_of(number),
        labels,
        annotations: Labels::new(),
        taints: is_tainted.then_some(taint).into_iter().collect(),
        domain: DOMAINS[(number % 2) as usize].to_owned(),
        only: Vec::new(),
        cordon: None,
    }
}

/// A host that everybody may get.
pub(crate) fn plain_host(number: u64) -> SetPoolHost {
    SetPoolHost {
        taints: BTreeSet::new(),
        ..host(number)
    }
}

fn everybody() -> DeployPolicy {
    DeployPolicy {
        name: "all".to_owned(),
        allow_all: true,
        priority_max: 100,
        ..DeployPolicy::default()
    }
}

/// A pool that everybody may claim from.
pub(crate) fn open_pool(name: &str) -> SetPool {
    SetPool {
        id: text(name),
        expected: None,
        labels: Labels::new(),
        description: String::new(),
        policies: vec![everybody()],
        published: ["kind", "disk"].map(str::to_owned).into(),
        floor: WipeLevel::Erase,
        reuse_max_ms: REUSE_MAX_MS,
        reuse_floor: Some(WipeLevel::Metadata),
        metadata: MetadataRules::default(),
        on_revoke: RevokeRule::Keep,
    }
}

/// A pool as its administrator wants it: `night` is for every second tenant, of one half or the other.
pub(crate) fn pool(name: &str, half: u64) -> SetPool {
    let open = open_pool(name);
    let policies = match name {
        "gold" => vec![DeployPolicy {
            name: "gold".to_owned(),
            labels: vec![RequiredLabel {
                name: "tier".to_owned(),
                value: Some("gold".to_owned()),
            }],
            priority_max: 500,
            ..DeployPolicy::default()
        }],
        "night" => vec![DeployPolicy {
            name: "one half".to_owned(),
            projects: (1..=TENANTS)
                .filter(|tenant| tenant % 2 == half % 2)
                .map(ids::project)
                .collect(),
            priority_max: 50,
            ..DeployPolicy::default()
        }],
        _ => return open,
    };
    let is_night = name == "night";
    SetPool {
        policies,
        floor: match is_night {
            true => WipeLevel::Erase,
            false => WipeLevel::Sanitize,
        },
        on_revoke: match is_night {
            true => RevokeRule::Evict { grace_ms: GRACE_MS },
            false => RevokeRule::Keep,
        },
        ..open
    }
}
