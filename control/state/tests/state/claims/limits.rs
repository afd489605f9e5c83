//! Bounds of claims and pools that a request cannot pass.

use control_state::*;

use super::site::*;
use crate::world::*;

/// Most pools, tolerations and preferred terms of a claim.
const WISHES_MAX: usize = 16;

/// Applies a command without the checks of the world, which look at every machine.
fn put(world: &mut World, op: impl Into<Op>) -> Result<Reply, StateError> {
    let command = Command::new(world.now, "tester", op);
    apply(&mut world.tables, &command).result
}

#[test]
fn wishes_of_a_claim_are_bounded() {
    let reuse = |key: &str, keep_ms| ReuseWish {
        key: key.into(),
        required: false,
        keep_ms,
        wipe: None,
    };
    let toleration = ClaimToleration {
        key: "gpu".into(),
        value: None,
    };
    let term = PreferredTerm {
        weight: 1,
        selector: ClaimSelector::default(),
    };
    type Change<'a> = &'a dyn Fn(&mut ClaimSpec);
    let cases: [(&str, Change<'_>); 8] = [
        ("pools", &|spec| {
            let names = (0..=WISHES_MAX).map(|number| text(&format!("pool-{number}")));
            spec.pools = names.collect();
        }),
        ("tolerations", &|spec| {
            spec.tolerations = vec![toleration.clone(); WISHES_MAX + 1];
        }),
        ("preferred", &|spec| {
            spec.preferred = vec![term.clone(); WISHES_MAX + 1];
        }),
        ("priority", &|spec| spec.priority = PRIORITY_MAX + 1),
        ("spread", &|spec| spec.spread = "x".repeat(254)),
        ("reuse.key", &|spec| spec.reuse = Some(reuse("", 1))),
        ("reuse.keep", &|spec| {
            spec.reuse = Some(reuse("workers", REUSE_MAX_MS + 1));
        }),
        ("userdata", &|spec| {
            spec.userdata = "x".repeat(32 * 1024 + 1);
        }),
    ];
    let mut world = World::pooled();
    for (what, change) in cases {
        let mut spec = asking(&[]);
        change(&mut spec);
        let refused = world.refused(claim(1, 1, spec));
        assert_eq!(refused, ErrorCode::InvalidField, "{what}");
    }
    let most = ClaimSpec {
        tolerations: vec![toleration; WISHES_MAX],
        preferred: vec![term; WISHES_MAX],
        priority: PRIORITY_MAX,
        userdata: "x".repeat(32 * 1024),
        ..asking(&[])
    };
    world.ok(claim(1, 1, most));
}

#[test]
fn claims_of_a_project_have_a_number() {
    let mut world = World::pooled();
    for number in (0_u128..).take(CLAIMS_PER_PROJECT_MAX) {
        put(&mut world, claim(number, 1, asking(&[]))).unwrap();
    }
    let further = put(&mut world, claim(5_000, 1, asking(&[])));
    assert_eq!(further.unwrap_err().code, ErrorCode::TooMany);
    // Another project has its own number, and one that ended makes room.
    put(&mut world, claim(5_000, 2, asking(&[]))).unwrap();
    put(&mut world, deletion(0, 1)).unwrap();
    put(&mut world, claim(5_001, 1, asking(&[]))).unwrap();
}

#[test]
fn holds_have_a_number_for_each_holder() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, asking(&[])));
    let own = |key: usize| HoldClaim {
        id: claim_id(1),
        project: id(1),
        epoch: None,
        key: format!("k-{key}"),
        is_held: true,
        reason: String::new(),
    };
    let operators = |key: usize| HoldHost {
        machine: id(1),
        actor: HoldActor::Admin,
        key: format!("k-{key}"),
        is_held: true,
        reason: String::new(),
    };
    for key in 0..HOLDS_MAX {
        world.ok(own(key));
        world.ok(operators(key));
    }
    assert_eq!(world.refused(own(HOLDS_MAX)), ErrorCode::TooMany);
    assert_eq!(world.refused(operators(HOLDS_MAX)), ErrorCode::TooMany);
    // The same hold again is no further one.
    world.ok(own(0));
    world.ok(operators(0));
}

#[test]
fn pools_have_a_number() {
    let mut world = World::pooled();
    for number in 1..POOLS_MAX {
        put(&mut world, pool(&format!("pool-{number}"))).unwrap();
    }
    let further = put(&mut world, pool("further"));
    assert_eq!(further.unwrap_err().code, ErrorCode::TooMany);
    put(&mut world, pool(POOL)).unwrap();
}
