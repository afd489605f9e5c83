//! Changes that make a host fit a waiting claim: the command that makes them binds it.

use control_state::*;

use super::site::*;
use crate::restored::restored;
use crate::world::*;

const MEDIUM: &[&str] = &["kind=medium"];

/// A change of the site.
type SiteChange = fn(&mut World);

/// Machine 1 as a host that claims without a toleration do not get.
fn tainted() -> SetPoolHost {
    let gpu = HostTaint {
        key: "gpu".into(),
        value: String::new(),
    };
    SetPoolHost {
        taints: [gpu].into(),
        ..host(1, MEDIUM)
    }
}

/// The pool with other policies.
fn admitting(policies: Vec<DeployPolicy>) -> SetPool {
    SetPool {
        policies,
        ..pool(POOL)
    }
}

fn availability(state: Availability) -> SetMachineState {
    let description = match state {
        Availability::Available => "",
        _ => "a test",
    };
    SetMachineState {
        id: id(1),
        state,
        description: description.into(),
    }
}

/// A state that keeps host 1 from claim 1, why the claim waits, and the command that ends it.
const SITE_CASES: &[(&str, SiteChange, PendingReason, SiteChange)] = &[
    (
        "a label of the host",
        |world| drop(world.ok(host(1, &[]))),
        PendingReason::NoMatch,
        |world| drop(world.ok(host(1, MEDIUM))),
    ),
    (
        "a taint",
        |world| drop(world.ok(tainted())),
        PendingReason::NoMatch,
        |world| drop(world.ok(host(1, MEDIUM))),
    ),
    (
        "a cordon",
        |world| {
            world.ok(SetPoolHost {
                cordon: Some("broken fan".into()),
                ..host(1, MEDIUM)
            });
        },
        PendingReason::Cordoned,
        |world| drop(world.ok(host(1, MEDIUM))),
    ),
    (
        "the host's own policy",
        |world| {
            world.ok(SetPoolHost {
                only: vec![only(2)],
                ..host(1, MEDIUM)
            });
        },
        PendingReason::NoMatch,
        |world| drop(world.ok(host(1, MEDIUM))),
    ),
    (
        "the pool's policies",
        |world| drop(world.ok(admitting(vec![only(2)]))),
        PendingReason::NoPolicy,
        |world| drop(world.ok(admitting(vec![only(2), only(1)]))),
    ),
    (
        "a label that the pool does not publish",
        |world| {
            world.ok(SetPool {
                published: [].into(),
                ..pool(POOL)
            });
        },
        PendingReason::NoMatch,
        |world| drop(world.ok(pool(POOL))),
    ),
    (
        "the project's alias",
        |world| {
            world.ok(admitting(vec![DeployPolicy {
                name: "production".into(),
                pattern: Some("prod-.*".into()),
                ..DeployPolicy::default()
            }]));
        },
        PendingReason::NoPolicy,
        |world| {
            world.ok(SetProjectLabels {
                project: id(1),
                alias: Some("prod-1".into()),
                labels: Labels::new(),
            });
        },
    ),
    (
        "a machine outside of the pool",
        |world| {
            world.ok(RemovePoolHost {
                machine: id(1),
                force: false,
            });
        },
        PendingReason::NoMatch,
        |world| drop(world.ok(host(1, MEDIUM))),
    ),
    (
        "a lock of the machine",
        |world| drop(world.ok(availability(Availability::Locked))),
        PendingReason::AllBusy,
        |world| drop(world.ok(availability(Availability::Available))),
    ),
    (
        "a taint of the machine",
        |world| drop(world.ok(availability(Availability::Tainted))),
        PendingReason::AllBusy,
        |world| drop(world.ok(availability(Availability::Available))),
    ),
    (
        "a machine that gives no sign of life",
        |world| world.tick(6 * 60_000),
        PendingReason::AllBusy,
        |world| {
            world.boot(1, "boot-9");
            world.event(1, EventKind::Waiting);
        },
    ),
];

#[test]
fn the_command_that_makes_a_host_fit_binds_it() {
    for (what, before, reason, change) in SITE_CASES {
        let mut world = World::hosting(&[MEDIUM]);
        before(&mut world);
        world.ok(claim(1, 1, asking(MEDIUM)));
        assert_eq!(world.state(1), ClaimState::Pending, "{what}");
        assert_eq!(world.reason(1).0, *reason, "{what}");
        change(&mut world);
        assert_eq!(world.host_of(1), Some(1), "{what}");
        assert_eq!(world.state(1), ClaimState::Bound, "{what}");
    }
}

/// Intents that host 1 does not fit, why the claim waits, and one that it fits.
#[test]
fn the_intent_that_a_host_fits_binds_it() {
    let elsewhere = DomainWish {
        name: "b".into(),
        required: true,
    };
    let tolerating = ClaimSpec {
        tolerations: vec![ClaimToleration {
            key: "gpu".into(),
            value: None,
        }],
        ..asking(MEDIUM)
    };
    for (what, first, reason) in [
        ("a taint", asking(MEDIUM), PendingReason::NoMatch),
        (
            "a selector",
            ClaimSpec {
                selector: asking(&["kind=large"]).selector,
                ..tolerating.clone()
            },
            PendingReason::NoMatch,
        ),
        (
            "a pool",
            ClaimSpec {
                pools: [text("other")].into(),
                ..tolerating.clone()
            },
            PendingReason::NoPolicy,
        ),
        (
            "a failure domain",
            ClaimSpec {
                domain: Some(elsewhere),
                ..tolerating.clone()
            },
            PendingReason::FailureDomainFull,
        ),
    ] {
        let mut world = World::hosting(&[MEDIUM]);
        world.ok(tainted());
        world.ok(claim(1, 1, first));
        assert_eq!(world.reason(1).0, reason, "{what}");
        world.ok(intent(1, tolerating.clone()));
        assert_eq!(world.host_of(1), Some(1), "{what}");
    }
}

/// A claim has one host whatever changes around it, and a second one is never bound to it.
#[test]
fn a_claim_keeps_its_host_and_gets_no_second_one() {
    let cases: [(&str, SiteChange); 7] = [
        ("another selector", |world| {
            world.ok(intent(1, asking(&["kind=large"])));
        }),
        ("other labels of the host", |world| {
            let own = world.host_of(1).unwrap();
            world.ok(host(own, &["kind=small"]));
        }),
        ("a taint and a cordon", |world| {
            let own = world.host_of(1).unwrap();
            world.ok(SetPoolHost {
                machine: id(own),
                cordon: Some("broken fan".into()),
                ..tainted()
            });
        }),
        ("a policy of the host", |world| {
            let own = world.host_of(1).unwrap();
            world.ok(SetPoolHost {
                only: vec![only(2)],
                ..host(own, MEDIUM)
            });
        }),
        ("policies of the pool", |world| {
            world.ok(admitting(vec![only(2)]));
        }),
        ("labels that are published no more", |world| {
            world.ok(SetPool {
                published: [].into(),
                ..pool(POOL)
            });
        }),
        ("a request whose answer was lost", |world| {
            world.ok(CreateClaim {
                id: claim_id(7),
                ..claim(1, 1, asking(MEDIUM))
            });
        }),
    ];
    for (what, change) in cases {
        let mut world = World::hosting(&[MEDIUM, MEDIUM]);
        world.ok(claim(1, 1, asking(MEDIUM)));
        let own = world.host_of(1);
        change(&mut world);
        world.tick(2_000);
        assert_eq!(world.host_of(1), own, "{what}");
        assert_eq!(world.state(1), ClaimState::Bound, "{what}");
        let hosts = world.tables.all::<PoolHost>();
        let bound = hosts.filter(|host| host.binding.is_some()).count();
        assert_eq!(bound, 1, "{what}");
    }
}

#[test]
fn nothing_is_bound_before_a_restore_is_reconciled() {
    // The host is free in the backup, and may be a tenant's since.
    let mut world = restored(&World::hosting(&[MEDIUM]));
    world.ok(claim(1, 1, asking(MEDIUM)));
    assert_eq!(world.reason(1), (PendingReason::NotReconciled, 0));
    world.tick(2_000);
    assert_eq!(world.host_of(1), None);
    world.ok(ReconcileRestore { judge_silent: true });
    world.tick(2_000);
    assert_eq!(world.host_of(1), Some(1));
}
