//! Metadata of the host of a claim: what its pool publishes, and how it follows host and pool.

use control_state::*;

use super::site::*;
use crate::world::*;

fn rules(prefix: &str) -> KeyRules {
    KeyRules {
        prefixes: [prefix.to_owned()].into(),
        ..KeyRules::default()
    }
}

/// The pool publishes labels and annotations that begin so.
fn publishing(labels: &str, annotations: &str) -> SetPool {
    SetPool {
        metadata: MetadataRules {
            labels: rules(labels),
            annotations: rules(annotations),
        },
        ..pool(POOL)
    }
}

/// The only host, with these labels and annotations.
fn described(of: &[&str], noted: &[&str]) -> SetPoolHost {
    SetPoolHost {
        annotations: labels(noted),
        ..host(1, of)
    }
}

/// Revision, labels and annotations of the first claim.
fn shown(world: &World) -> (u64, Vec<&str>, Vec<&str>) {
    let found = &world.claim(1).metadata;
    (
        found.revision,
        found.labels.keys().map(String::as_str).collect(),
        found.annotations.keys().map(String::as_str).collect(),
    )
}

#[test]
fn a_claim_repeats_what_the_pool_publishes_of_its_host_as_long_as_it_has_it() {
    let mut world = World::hosting(&[&[]]);
    world.ok(publishing("rack/", "cost/"));
    world.ok(described(
        &["rack/row=7", "secret=x"],
        &["cost/center=4711", "owner=me"],
    ));
    world.ok(claim(1, 1, asking(&[])));
    assert_eq!(shown(&world), (1, vec!["rack/row"], vec!["cost/center"]));
    assert_eq!(world.claim(1).metadata.annotations["cost/center"], "4711");
    // Nothing that is published changes: no revision.
    world.ok(described(
        &["rack/row=7", "secret=y"],
        &["cost/center=4711"],
    ));
    assert_eq!(shown(&world).0, 1);
    world.ok(described(
        &["rack/row=8", "rack/slot=2"],
        &["cost/center=4711"],
    ));
    assert_eq!(
        shown(&world),
        (2, vec!["rack/row", "rack/slot"], vec!["cost/center"])
    );
    // The rules change: the tick brings the claims of the pool up to date.
    world.ok(publishing("rack/s", "none/"));
    world.tick(2_000);
    assert_eq!(shown(&world), (3, vec!["rack/slot"], vec![]));
    world.ok(deletion(1, 1));
    assert_eq!(shown(&world), (4, vec![], vec![]));
}

#[test]
fn without_rules_a_claim_repeats_nothing_and_never_a_key_of_a_cluster() {
    let mut world = World::hosting(&[&[]]);
    let all = [
        "kubernetes.io/a=1",
        "x.k8s.io/b=1",
        "metal3.io/c=1",
        "mine=1",
    ];
    world.ok(described(&all, &all));
    world.ok(claim(1, 1, asking(&[])));
    assert_eq!(shown(&world), (0, vec![], vec![]));
    let everything = KeyRules {
        patterns: [".*".to_owned()].into(),
        ..KeyRules::default()
    };
    world.ok(SetPool {
        metadata: MetadataRules {
            labels: everything.clone(),
            annotations: everything,
        },
        ..pool(POOL)
    });
    world.tick(2_000);
    assert_eq!(shown(&world), (1, vec!["mine"], vec!["mine"]));
}

/// A paused claim is not changed by its wish, and still tells the truth about its host.
#[test]
fn a_paused_claim_follows_its_host() {
    let mut world = World::hosting(&[&[]]);
    world.ok(publishing("rack/", "cost/"));
    world.ok(claim(1, 1, asking(&[])));
    world.ok(intent(
        1,
        ClaimSpec {
            paused: true,
            ..asking(&[])
        },
    ));
    world.ok(described(&["rack/row=7"], &[]));
    assert_eq!(shown(&world), (1, vec!["rack/row"], vec![]));
}

#[test]
fn rules_and_annotations_that_are_refused() {
    let mut world = World::hosting(&[&[]]);
    for (what, rules) in [
        ("a key of a cluster", rules("node.kubernetes.io/")),
        (
            "a pattern",
            KeyRules {
                patterns: ["(".to_owned()].into(),
                ..KeyRules::default()
            },
        ),
        (
            "too many",
            KeyRules {
                keys: (0..65).map(|number| format!("key-{number}")).collect(),
                ..KeyRules::default()
            },
        ),
    ] {
        for metadata in [
            MetadataRules {
                labels: rules.clone(),
                ..MetadataRules::default()
            },
            MetadataRules {
                annotations: rules.clone(),
                ..MetadataRules::default()
            },
        ] {
            let refused = world.refused(SetPool {
                metadata,
                ..pool(POOL)
            });
            assert_eq!(refused, ErrorCode::InvalidField, "{what}");
        }
    }
    let many: Vec<String> = (0..65).map(|number| format!("key-{number}=v")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for annotations in [&many[..], &["a key=v"], &["=v"]] {
        let refused = world.refused(described(&[], annotations));
        assert_eq!(refused, ErrorCode::InvalidField, "{annotations:?}");
    }
}
