//! The projects that may claim: policies of pools and hosts, labels of administrators, revocation.

use control_state::*;

use super::site::*;
use crate::world::*;

fn named(alias: &str, of: &[&str]) -> SetProjectLabels {
    SetProjectLabels {
        project: id(1),
        alias: (!alias.is_empty()).then(|| alias.to_owned()),
        labels: labels(of),
    }
}

fn pattern(text: &str) -> DeployPolicy {
    DeployPolicy {
        name: "pattern".into(),
        pattern: Some(text.into()),
        ..DeployPolicy::default()
    }
}

fn labelled(name: &str, value: Option<&str>) -> DeployPolicy {
    DeployPolicy {
        name: "labels".into(),
        labels: vec![RequiredLabel {
            name: name.into(),
            value: value.map(str::to_owned),
        }],
        ..DeployPolicy::default()
    }
}

/// Policies, what an administrator says of project 1, and what its claim gets.
#[test]
fn a_pool_admits_by_its_policies() {
    for (what, policies, project, is_admitted) in [
        ("nothing", vec![], named("prod", &[]), false),
        ("everybody", vec![everybody()], named("", &[]), true),
        ("its id", vec![only(1)], named("", &[]), true),
        ("another id", vec![only(2)], named("", &[]), false),
        ("one of two", vec![only(2), only(1)], named("", &[]), true),
        ("its alias", vec![pattern("prod")], named("prod", &[]), true),
        (
            "not inside another",
            vec![pattern("prod")],
            named("not-prod", &[]),
            false,
        ),
        (
            "not the beginning",
            vec![pattern("prod")],
            named("production", &[]),
            false,
        ),
        (
            "not the middle",
            vec![pattern("prod")],
            named("reproduce", &[]),
            false,
        ),
        (
            "a prefix",
            vec![pattern("prod.*")],
            named("production", &[]),
            true,
        ),
        (
            "alternatives",
            vec![pattern("n1|n2")],
            named("n2", &[]),
            true,
        ),
        (
            "without an alias",
            vec![pattern("prod")],
            named("", &["a=b"]),
            false,
        ),
        (
            "its label",
            vec![labelled("tier", None)],
            named("", &["tier=gold"]),
            true,
        ),
        (
            "its value",
            vec![labelled("tier", Some("gold"))],
            named("", &["tier=gold"]),
            true,
        ),
        (
            "another value",
            vec![labelled("tier", Some("gold"))],
            named("", &["tier=iron"]),
            false,
        ),
        (
            "a missing label",
            vec![labelled("tier", None)],
            named("", &[]),
            false,
        ),
    ] {
        let mut world = World::hosting(&[&["kind=medium"]]);
        world.ok(SetPool {
            policies,
            ..pool(POOL)
        });
        world.ok(project);
        world.ok(claim(1, 1, ClaimSpec::default()));
        let expected = is_admitted.then_some(1);
        assert_eq!(world.host_of(1), expected, "{what}");
        if !is_admitted {
            let refused = (PendingReason::NoPolicy, 0);
            assert_eq!(world.reason(1), refused, "{what}");
        }
    }
}

#[test]
fn labels_that_a_project_gives_itself_admit_it_nowhere() {
    let mut world = World::hosting(&[&[]]);
    world.ok(SetPool {
        policies: vec![labelled("tier", Some("gold")), pattern("gold.*")],
        ..pool(POOL)
    });
    world.ok(UpdateProject {
        id: id(1),
        lock: Lock::Server,
        name: Some("gold-project".into()),
        description: None,
        avatar_url: None,
        labels: Some(LabelsUpdate::Replace(labels(&["tier=gold"]))),
    });
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(world.reason(1), (PendingReason::NoPolicy, 0));
    // An administrator's word does.
    world.ok(named("", &["tier=gold"]));
    assert_eq!(world.host_of(1), Some(1));
}

#[test]
fn policies_that_are_wrong_are_refused_when_they_are_written() {
    let mut world = World::pooled();
    for wrong in [pattern("("), pattern("(?i)a"), DeployPolicy::default()] {
        let refused = world.refused(SetPool {
            policies: vec![wrong.clone()],
            ..pool(POOL)
        });
        assert_eq!(refused, ErrorCode::InvalidField);
        world.waiting(1);
        let narrow = SetPoolHost {
            only: vec![wrong],
            ..host(1, &[])
        };
        assert_eq!(world.refused(narrow), ErrorCode::InvalidField);
        world = World::pooled();
    }
}

#[test]
fn a_bad_policy_in_one_pool_denies_nobody_elsewhere() {
    let mut world = World::hosting(&[&[]]);
    // Stored by a program whose patterns were others.
    let mut stored = HostPool {
        id: text("old"),
        policies: vec![pattern("(")],
        ..HostPool::clone(world.tables.get::<HostPool>(&text(POOL)).unwrap())
    };
    stored.meta.generation = 9;
    let record = Record::HostPool(stored.into());
    let bytes = record.encode().unwrap();
    world.tables.load(Kind::HostPool, &bytes, 1).unwrap();
    let mut world = World::of(world.tables, world.now);
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(world.host_of(1), Some(1));
}

#[test]
fn a_host_may_narrow_its_pool_and_never_widen_it() {
    let mut world = World::hosting(&[&[]]);
    world.ok(SetPoolHost {
        only: vec![only(2)],
        ..host(1, &[])
    });
    world.ok(claim(1, 1, ClaimSpec::default()));
    assert_eq!(world.reason(1), (PendingReason::NoMatch, 0));
    world.ok(claim(2, 2, ClaimSpec::default()));
    assert_eq!(world.host_of(2), Some(1));
    world.ok(SetPool {
        policies: vec![only(1)],
        ..pool(POOL)
    });
    world.ok(deletion(2, 2));
    world.ok(claim(3, 2, ClaimSpec::default()));
    assert_eq!(
        world.reason(3),
        (PendingReason::NoPolicy, 0),
        "the pool does not admit it"
    );
}

#[test]
fn labels_that_are_not_published_are_as_if_they_were_not_there() {
    let mut world = World::hosting(&[&["kind=medium", "asset=4711"]]);
    world.ok(SetPool {
        published: ["kind".to_owned()].into(),
        ..pool(POOL)
    });
    world.ok(claim(1, 1, asking(&["asset=4711"])));
    assert_eq!(world.reason(1), (PendingReason::NoMatch, 0));
    let without = ClaimSpec {
        selector: ClaimSelector {
            labels: Labels::new(),
            terms: vec![SelectorTerm {
                key: "asset".into(),
                op: SelectorOp::DoesNotExist,
                values: [].into(),
            }],
        },
        ..ClaimSpec::default()
    };
    world.ok(claim(2, 1, without));
    assert_eq!(world.host_of(2), Some(1));
    let shown = query::published_labels(&world.tables, world.pool_host(1));
    assert_eq!(shown, labels(&["kind=medium"]));
}

#[test]
fn a_revoked_claim_keeps_its_host_or_is_evicted() {
    for evicts in [false, true] {
        let mut world = World::hosting(&[&[]]);
        world.ok(claim(1, 1, ClaimSpec::default()));
        let on_revoke = match evicts {
            true => RevokeRule::Evict { grace_ms: 60_000 },
            false => RevokeRule::Keep,
        };
        world.ok(SetPool {
            policies: vec![only(2)],
            on_revoke,
            ..pool(POOL)
        });
        world.tick(2_000);
        let satisfied = world.condition(1, ClaimConditionKind::PolicySatisfied);
        assert!(!satisfied.status);
        assert_eq!(satisfied.reason, "Revoked");
        world.tick(30_000);
        assert_eq!(world.state(1), ClaimState::Bound, "within the grace");
        world.tick(60_000);
        let expected = match evicts {
            true => ClaimState::Lost,
            false => ClaimState::Bound,
        };
        assert_eq!(world.state(1), expected);
        // Admitted again, nothing is held against it.
        world.ok(pool(POOL));
        world.tick(2_000);
        assert!(
            world
                .condition(1, ClaimConditionKind::PolicySatisfied)
                .status
        );
    }
}

#[test]
fn pools_and_labels_of_projects_have_bounds() {
    let mut world = World::pooled();
    let mut many = pool(POOL);
    many.policies = vec![everybody(); DEPLOY_POLICIES_MAX + 1];
    assert_eq!(world.refused(many), ErrorCode::InvalidField);
    for published in ["", "a*b", "a b"] {
        let refused = world.refused(SetPool {
            published: [published.to_owned()].into(),
            ..pool(POOL)
        });
        assert_eq!(refused, ErrorCode::InvalidField, "{published:?}");
    }
    assert_eq!(world.refused(named("a b", &[])), ErrorCode::InvalidField);
    world.ok(named("prod", &[]));
    let taken = SetProjectLabels {
        project: id(2),
        ..named("prod", &[])
    };
    assert_eq!(world.refused(taken), ErrorCode::AlreadyExists);
    // Without anything the record is gone.
    world.ok(named("", &[]));
    assert!(world.tables.get::<ProjectLabels>(&id(1)).is_none());
    let stale = SetPool {
        expected: Some(7),
        ..pool(POOL)
    };
    assert_eq!(world.refused(stale), ErrorCode::Conflict);
    world.waiting(1);
    world.ok(host(1, &[]));
    assert_eq!(
        world.refused(DeletePool { id: text(POOL) }),
        ErrorCode::StillInUse
    );
}
