//! Which host a claim gets: the choices of the upstream's table, and ours.

use control_state::*;
use proto_types::*;

use super::site::*;
use crate::world::*;

/// The number of the host that a claim gets, or why it waits and how many hosts fit.
type Choice = Result<u128, (PendingReason, u32)>;

fn term(key: &str, op: SelectorOp, values: &[&str]) -> ClaimSpec {
    ClaimSpec {
        selector: ClaimSelector {
            labels: Labels::new(),
            terms: vec![SelectorTerm {
                key: key.into(),
                op,
                values: values.iter().map(|value| (*value).into()).collect(),
            }],
        },
        ..ClaimSpec::default()
    }
}

fn domain(name: &str, required: bool) -> ClaimSpec {
    ClaimSpec {
        domain: Some(DomainWish {
            name: name.into(),
            required,
        }),
        ..ClaimSpec::default()
    }
}

fn tolerating(value: Option<&str>) -> ClaimSpec {
    ClaimSpec {
        tolerations: vec![ClaimToleration {
            key: "gpu".into(),
            value: value.map(str::to_owned),
        }],
        ..asking(&["kind=gpu"])
    }
}

/// The site, one claim, and what it gets.
fn check_choices<const N: usize>(cases: [(&str, ClaimSpec, Choice); N]) {
    for (what, spec, expected) in cases {
        let mut world = site();
        world.ok(claim(1, 1, spec));
        match expected {
            Ok(host) => {
                assert_eq!(world.host_of(1), Some(host), "{what}");
                assert_eq!(world.state(1), ClaimState::Bound, "{what}");
            }
            Err(reason) => {
                assert_eq!(world.host_of(1), None, "{what}");
                assert_eq!(world.reason(1), reason, "{what}");
            }
        }
    }
}

#[test]
fn a_claim_gets_a_host_with_its_labels() {
    use PendingReason::NoMatch;
    use SelectorOp::{DoesNotExist, Exists, In, NotIn};
    let nothing = Err((NoMatch, 0));
    check_choices([
        ("a label", asking(&["kind=medium"]), Ok(1)),
        ("another value", asking(&["kind=large"]), nothing),
        ("a missing label", asking(&["colour=red"]), nothing),
        (
            "one of several values",
            term("kind", In, &["medium", "huge"]),
            Ok(1),
        ),
        ("none of several", term("kind", In, &["huge"]), nothing),
        (
            "not a value",
            term("kind", NotIn, &["gpu", "busy", "held"]),
            Ok(1),
        ),
        ("a label that is there", term("disk", Exists, &[]), Ok(3)),
        (
            "a label that is not",
            term("kind", DoesNotExist, &[]),
            nothing,
        ),
        (
            "the fewest labels beyond those asked",
            ClaimSpec::default(),
            Ok(1),
        ),
    ]);
}

#[test]
fn a_claim_gets_the_host_that_fits() {
    use PendingReason::{AllBusy, Cordoned, FailureDomainFull, NoMatch, NoPolicy};
    let preferring = ClaimSpec {
        preferred: vec![PreferredTerm {
            weight: 10,
            selector: asking(&["disk=ssd"]).selector,
        }],
        ..ClaimSpec::default()
    };
    let elsewhere = ClaimSpec {
        pools: [text("other")].into(),
        ..ClaimSpec::default()
    };
    let nothing = Err((NoMatch, 0));
    check_choices([
        ("a better one", preferring, Ok(3)),
        ("a taint", asking(&["kind=gpu"]), nothing),
        ("a taint that is tolerated", tolerating(Some("a")), Ok(2)),
        ("whatever its value", tolerating(None), Ok(2)),
        ("not with another value", tolerating(Some("b")), nothing),
        ("a failure domain", domain("b", true), Ok(3)),
        (
            "another failure domain",
            domain("c", true),
            Err((FailureDomainFull, 0)),
        ),
        ("a better failure domain", domain("b", false), Ok(3)),
        ("any, if none is better", domain("c", false), Ok(1)),
        (
            "one that others have",
            asking(&["kind=busy"]),
            Err((AllBusy, 1)),
        ),
        (
            "one out of service",
            asking(&["kind=held"]),
            Err((Cordoned, 1)),
        ),
        ("a pool that is not there", elsewhere, Err((NoPolicy, 0))),
    ]);
}

/// Five hosts: a plain one, a tainted one, one with a disk, one that another project has, and one
/// out of service.
fn site() -> World {
    let mut world = World::hosting(&[&["kind=medium"]]);
    let gpu = HostTaint {
        key: "gpu".into(),
        value: "a".into(),
    };
    for (number, kind, domain) in [
        (2, "gpu", "a"),
        (3, "disk", "b"),
        (4, "busy", ""),
        (5, "held", ""),
    ] {
        world.waiting(number);
        let of = format!("kind={kind}");
        let mut of = vec![of.as_str()];
        of.extend((number == 3).then_some("disk=ssd"));
        world.ok(SetPoolHost {
            taints: if number == 2 {
                [gpu.clone()].into()
            } else {
                [].into()
            },
            domain: domain.into(),
            cordon: (number == 5).then(|| "broken fan".to_owned()),
            ..host(number, &of)
        });
    }
    world.ok(claim(9, 2, asking(&["kind=busy"])));
    assert_eq!(world.host_of(9), Some(4));
    world
}

#[test]
fn only_ready_hosts_are_bound() {
    // Not registered, not wiped, tainted, locked, dead: none is offered, and each is once it is well.
    let mut world = World::pooled();
    world.seen(1);
    world.ok(host(1, &[]));
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(world.reason(1), (PendingReason::AllBusy, 1));
    world.boot(1, "boot-1");
    assert_eq!(world.state(1), ClaimState::Pending);
    world.wipe(1);
    assert_eq!(
        world.state(1),
        ClaimState::Pending,
        "hammer does not wait yet"
    );
    world.event(1, EventKind::Waiting);
    assert_eq!(world.state(1), ClaimState::Bound);
    assert_eq!(world.host_of(1), Some(1));
}

#[test]
fn a_machine_out_of_the_pool_is_nobodys_to_claim_and_one_in_it_nobodys_to_allocate() {
    let mut world = World::pooled();
    world.waiting(1);
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(world.reason(1), (PendingReason::NoMatch, 0));
    world.ok(deletion(1, 1));
    world.ok(host(1, &[]));
    assert_eq!(
        world.refused(allocation_of(7)),
        ErrorCode::NoMachineAvailable
    );
    world.ok(RemovePoolHost {
        machine: id(1),
        force: false,
    });
    world.ok(allocation_of(7));
    // A machine that a project has does not enter a pool.
    assert_eq!(world.refused(host(1, &[])), ErrorCode::MachineAllocated);
}

#[test]
fn an_administrator_cannot_allocate_a_host() {
    let mut world = World::hosting(&[&[]]);
    let by_id = AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        ..allocation_of(7)
    };
    assert_eq!(world.refused(by_id.clone()), ErrorCode::HostOfPool);
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(world.refused(by_id), ErrorCode::HostOfPool);
}

#[test]
fn claims_of_a_project_are_spread_over_racks() {
    let mut world = World::hosting(&[&[], &[]]);
    world.ok(leaf("leaf2", "rack-2"));
    // The third machine is at another leaf, in another rack.
    let mut third = registration(3, "boot-1");
    third.hardware.nics[0].neighbours[0].system_name = "leaf2".into();
    world.seen(3);
    world.hear("leaf2", "swp3", &[mac(3)]);
    world.ok(third);
    world.wipe(3);
    world.event(3, EventKind::Waiting);
    world.ok(host(3, &[]));
    world.ok(claim(1, 1, ClaimSpec::default()));
    world.ok(claim(2, 1, ClaimSpec::default()));
    let first = world.host_of(1).unwrap();
    let second = world.host_of(2).unwrap();
    assert!(
        first == 3 || second == 3,
        "{first} and {second} share a rack"
    );
}

#[test]
fn of_equal_hosts_the_one_with_the_fewest_installations_is_taken() {
    let mut world = World::hosting(&[&[], &[]]);
    world.ok(claim(1, 1, installing(&[])));
    let worn = world.host_of(1).unwrap();
    world.installed_claim(1);
    world.ok(deletion(1, 1));
    world.reclaimed(worn, "zero");
    assert_eq!(world.pool_host(worn).provisions, 1);
    world.ok(claim(2, 1, asking(&[])));
    assert_ne!(world.host_of(2), Some(worn));
    world.ok(claim(3, 1, asking(&[])));
    assert_eq!(world.host_of(3), Some(worn));
}

#[test]
fn a_claim_is_created_once() {
    let mut world = World::hosting(&[&[], &[]]);
    let first = world.ok(claim(1, 1, ClaimSpec::default())).claim().unwrap();
    // The same key again, with another id as a client that lost its answer makes.
    let again = CreateClaim {
        id: claim_id(2),
        name: "claim-1".into(),
        ..claim(1, 1, ClaimSpec::default())
    };
    let second = world.ok(again.clone()).claim().unwrap();
    assert_eq!(first.id, second.id);
    assert!(world.tables.get::<Claim>(&claim_id(2)).is_none());
    let other = CreateClaim {
        spec: asking(&["kind=large"]),
        ..again
    };
    assert_eq!(world.refused(other), ErrorCode::AlreadyExists);
    // The key of another project is another key.
    world.ok(CreateClaim {
        name: "claim-1".into(),
        ..claim(3, 2, ClaimSpec::default())
    });
}

#[test]
fn intents_that_break_a_rule_are_refused() {
    let named = |name: &str| CreateClaim {
        name: name.into(),
        ..claim(1, 1, ClaimSpec::default())
    };
    let mut world = World::pooled();
    for name in ["", " a", "a\n", "0f8fad5b-d9cb-469f-a165-70867728950e"] {
        assert_eq!(
            world.refused(named(name)),
            ErrorCode::InvalidField,
            "{name:?}"
        );
    }
    let term = |op, values: &[&str]| SelectorTerm {
        key: "a".into(),
        op,
        values: values.iter().map(|value| (*value).into()).collect(),
    };
    for terms in [
        vec![term(SelectorOp::In, &[])],
        vec![term(SelectorOp::Exists, &["b"])],
        vec![term(SelectorOp::Exists, &[]); 33],
    ] {
        let mut spec = ClaimSpec::default();
        spec.selector.terms = terms;
        assert_eq!(world.refused(claim(1, 1, spec)), ErrorCode::InvalidField);
    }
    let heavy = ClaimSpec {
        preferred: vec![PreferredTerm {
            weight: 101,
            selector: ClaimSelector::default(),
        }],
        ..ClaimSpec::default()
    };
    assert_eq!(world.refused(claim(1, 1, heavy)), ErrorCode::InvalidField);
    let lost = ClaimSpec {
        networks: vec![],
        ..installing(&[])
    };
    assert_eq!(world.refused(claim(1, 1, lost)), ErrorCode::InvalidField);
    let strange = ClaimSpec {
        image: Some(text::<ImageId>("nope-1.0.0")),
        ..installing(&[])
    };
    assert_eq!(world.refused(claim(1, 1, strange)), ErrorCode::NotFound);
}
