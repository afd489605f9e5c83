//! Words that give nothing: labels of a claim, ids of other claims, names of projects that were there
//! before.

use control_state::*;

use super::site::*;
use crate::world::*;

/// The next claim of the project gets the host back.
fn reusing() -> ClaimSpec {
    ClaimSpec {
        reuse: Some(ReuseWish {
            key: "workers".into(),
            required: false,
            keep_ms: 1_800_000,
            wipe: None,
        }),
        ..asking(&[])
    }
}

#[test]
fn labels_of_a_claim_decide_nothing() {
    let mut world = World::hosting(&[&["kind=medium"]]);
    world.ok(claim(1, 1, asking(&["kind=medium"])));
    let (machine, first) = (world.machine(1).id, claim_id(1));
    for pair in [
        format!("metalmesh.dev/machine={machine}"),
        format!("baremetalhost={POOL}/{machine}"),
        format!("claim={first}"),
        "state=bound".to_owned(),
        // Those of the host, which a selector reads.
        "kind=medium".to_owned(),
    ] {
        let said = labels(&[&pair]);
        let mut world = world.clone();
        world.ok(CreateClaim {
            labels: said.clone(),
            ..claim(2, 2, asking(&["kind=medium"]))
        });
        world.ok(UpdateClaim {
            project: id(2),
            spec: None,
            labels: Some(said),
            ..intent(2, ClaimSpec::default())
        });
        assert_eq!(world.host_of(2), None, "{pair}");
        assert_eq!(world.reason(2), (PendingReason::AllBusy, 1), "{pair}");
        assert_eq!(world.host_of(1), Some(1), "{pair}");
    }
    // Nor do they loosen the project's own claim.
    world.ok(UpdateClaim {
        spec: None,
        labels: Some(labels(&["state=gone"])),
        ..intent(1, ClaimSpec::default())
    });
    assert_eq!(world.state(1), ClaimState::Bound);
}

#[test]
fn an_id_of_another_claim_is_a_hint_and_no_right() {
    let mut world = World::hosting(&[&[], &[], &[]]);
    let paused = ClaimSpec {
        paused: true,
        ..asking(&[])
    };
    for (number, project) in [(1, 1), (2, 1), (3, 2)] {
        world.ok(claim(number, project, asking(&[])));
    }
    world.ok(intent(1, paused.clone()));
    world.ok(UpdateClaim {
        project: id(2),
        ..intent(3, paused.clone())
    });
    let adopting = |name: &str, adopted: u128| CreateClaim {
        name: name.into(),
        adopt: Some(claim_id(adopted)),
        ..claim(9, 1, asking(&[]))
    };
    // Of another project, of nobody, under a name in use, and one that is not paused.
    for (what, op, code) in [
        ("foreign", adopting("new", 3), ErrorCode::NotFound),
        ("absent", adopting("new", 8), ErrorCode::NotFound),
        ("named", adopting("claim-2", 1), ErrorCode::AlreadyExists),
        ("at work", adopting("new", 2), ErrorCode::ClaimNotPaused),
        (
            "under the id of a claim",
            adopting(&claim_id(2).to_string(), 1),
            ErrorCode::InvalidField,
        ),
        ("unreadable", adopting("a\nb", 1), ErrorCode::InvalidField),
        (
            "with too many labels",
            CreateClaim {
                labels: (0..65)
                    .map(|number| (format!("k-{number}"), String::new()))
                    .collect(),
                ..adopting("new", 1)
            },
            ErrorCode::InvalidField,
        ),
    ] {
        assert_eq!(world.refused(op), code, "{what}");
    }
    world.ok(deletion(1, 1));
    assert_eq!(world.state(1), ClaimState::Gone);
    assert_eq!(world.refused(adopting("new", 1)), ErrorCode::ClaimOver);
    assert!(world.host_of(3).is_some());
}

#[test]
fn a_project_that_is_deleted_leaves_no_reservation() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 2, reusing()));
    // As long as it has a claim it stays.
    let deleted = DeleteProject { id: id(2) };
    assert_eq!(world.refused(deleted.clone()), ErrorCode::StillInUse);
    world.ok(deletion(1, 2));
    assert_eq!(world.state(1), ClaimState::Gone);
    assert!(world.pool_host(1).reserved.is_some());
    world.ok(claim(2, 1, asking(&[])));
    assert_eq!(world.reason(2), (PendingReason::AllBusy, 1));
    world.ok(deleted);
    assert_eq!(world.pool_host(1).reserved, None);
    assert_eq!(world.host_of(2), Some(1));
}

#[test]
fn a_project_of_the_same_name_inherits_no_labels() {
    let mut world = World::hosting(&[&[]]);
    world.ok(SetPool {
        policies: vec![DeployPolicy {
            name: "production".into(),
            pattern: Some("prod".into()),
            ..DeployPolicy::default()
        }],
        ..pool(POOL)
    });
    let named = |project: u128| SetProjectLabels {
        project: id(project),
        alias: Some("prod".into()),
        labels: labels(&["tier=gold"]),
    };
    world.ok(named(2));
    world.ok(claim(1, 2, asking(&[])));
    assert_eq!(world.host_of(1), Some(1));
    world.ok(deletion(1, 2));
    world.ok(DeleteProject { id: id(2) });
    world.ok(CreateProject {
        name: "project-2".into(),
        ..project(3, "acme")
    });
    world.ok(claim(2, 3, asking(&[])));
    assert_eq!(world.reason(2), (PendingReason::NoPolicy, 0));
    // The alias is free: an administrator gives it anew.
    world.ok(named(3));
    assert_eq!(world.host_of(2), Some(1));
}
