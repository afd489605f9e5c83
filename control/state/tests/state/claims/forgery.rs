//! Acts that a project is refused: take a host by its own word, see one, or act on another's claim.

use control_state::*;

use super::site::*;
use crate::world::*;

#[test]
fn the_machine_of_a_claim_is_not_its_projects() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, installing(&[])));
    world.installed_claim(1);
    let project = Some(id(1));
    for refused in [
        world.refused(FreeMachine { id: id(1), project }),
        world.refused(OrderBmc {
            user: None,
            machine: id(1),
            project,
            action: BmcAction::PowerOff,
            description: String::new(),
        }),
        world.refused(UpdateMachine {
            id: id(1),
            lock: Lock::Server,
            project: id(1),
            description: Some("mine".into()),
            labels: None,
            ssh_public_keys: None,
        }),
        world.refused(CreateIp {
            machine: Some(id(1)),
            ..ip(50, "private", 1)
        }),
    ] {
        assert_eq!(refused, ErrorCode::NotFound);
    }
    assert!(!world.machine(1).is_held_by(id(1)));
}

#[test]
fn addresses_name_the_claim_and_not_the_machine() {
    let mut world = World::hosting(&[&[]]);
    world.ok(ip(50, "private", 1));
    let fixed = world.tables.all::<Ip>().next().unwrap().ip;
    let mut spec = installing(&[]);
    spec.networks[0].ips = vec![fixed];
    world.ok(claim(1, 1, spec));
    let found = world.tables.all::<Ip>().next().unwrap().clone();
    assert_eq!(found.claim, Some(claim_id(1)));
    assert_eq!(found.shown_machine(), None);
    assert!(!found.meta.labels.contains_key(label::MACHINE_ID));
    let key = IpKey {
        namespace: found.namespace,
        ip: found.ip,
    };
    let relabelled = UpdateIp {
        key,
        project: id(1),
        lock: Lock::Server,
        name: None,
        description: None,
        labels: Some(LabelsUpdate::Replace(labels(&["a=b"]))),
        kind: None,
        underlay: false,
    };
    world.ok(relabelled);
    let delete = DeleteIp {
        key,
        project: id(1),
        underlay: false,
    };
    let refused = world.apply(delete).result.unwrap_err();
    assert_eq!(refused.code, ErrorCode::AddressInUse);
    assert!(refused.message.contains("claim"), "{refused}");
    let machine = world.machine(1).id.to_string();
    assert!(!refused.to_string().contains(&machine));
    // Released with the claim, and the project's again.
    world.ok(deletion(1, 1));
    world.reclaimed(1, "zero");
    let free = world.tables.all::<Ip>().next().unwrap();
    assert_eq!((free.machine, free.claim), (None, None));
}

#[test]
fn another_projects_claim_looks_like_none() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, ClaimSpec::default()));
    let foreign = [
        world.apply(deletion(1, 2)).result,
        world.apply(deletion(7, 2)).result,
        world
            .apply(UpdateClaim {
                project: id(2),
                ..intent(1, ClaimSpec::default())
            })
            .result,
    ];
    for refused in foreign {
        assert_eq!(refused.unwrap_err().code, ErrorCode::NotFound);
    }
}

#[test]
fn a_pool_that_the_project_may_not_use_answers_like_one_that_is_not_there() {
    let mut world = World::hosting(&[&["kind=medium"]]);
    world.ok(SetPool {
        policies: vec![only(2)],
        ..pool(POOL)
    });
    let mut answers = Vec::new();
    for (number, name) in [(1, POOL), (2, "nowhere")] {
        let spec = ClaimSpec {
            pools: [text(name)].into(),
            ..asking(&["kind=medium"])
        };
        world.ok(claim(number, 1, spec));
        let found = world.claim(number);
        let conditions = found.conditions.iter();
        let told: Vec<_> = conditions
            .map(|one| {
                (
                    one.kind,
                    one.status,
                    one.reason.clone(),
                    one.message.clone(),
                )
            })
            .collect();
        let notes: Vec<_> = found
            .notes
            .iter()
            .map(|note| note.message.clone())
            .collect();
        answers.push((world.reason(number), told, notes));
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0].0, (PendingReason::NoPolicy, 0));
}

/// A claim that is deleted and created again under its name is another claim, whatever its client
/// says.
#[test]
fn a_name_inherits_nothing() {
    let mut world = World::hosting(&[&[]]);
    world.ok(claim(1, 1, installing(&[])));
    world.installed_claim(1);
    world.ok(deletion(1, 1));
    world.reclaimed(1, "zero");
    assert_eq!(world.state(1), ClaimState::Gone);
    world.ok(CreateClaim {
        id: claim_id(2),
        ..claim(1, 1, ClaimSpec::default())
    });
    let second = world.claim(2).binding.clone().unwrap();
    assert_eq!(second.epoch, 2);
    assert_eq!(second.allocation, None);
}

/// Nothing that a claim shows names its machine, its BMC, its rack or its switch.
#[test]
fn a_claim_tells_nothing_about_its_machine() {
    let mut world = World::hosting(&[&[]]);
    world.ok(ReportBmc {
        partition: text(PARTITION),
        readings: vec![BmcReading {
            machine: Some(id(1)),
            address: "10.9.0.1:623".into(),
            ..BmcReading::default()
        }],
    });
    let mut shown = Vec::new();
    let mut look = |world: &World| {
        let claim = world.claim(1);
        let conditions = claim.conditions.iter();
        shown.extend(conditions.map(|one| format!("{} {}", one.reason, one.message)));
        let notes = claim.notes.iter();
        shown.extend(notes.map(|one| format!("{} {}", one.reason, one.message)));
    };
    world.ok(claim(1, 1, installing(&[])));
    look(&world);
    world.installed_claim(1);
    look(&world);
    let hold = HoldClaim {
        id: claim_id(1),
        project: id(1),
        epoch: None,
        key: "job".into(),
        is_held: true,
        reason: String::new(),
    };
    world.ok(hold);
    for _ in 0..STEP_ATTEMPTS_MAX {
        look(&world);
        world.bmc(BmcAction::PowerOff, Some("10.9.0.1 does not answer"));
    }
    look(&world);
    world.ok(SetMachineState {
        id: id(1),
        state: Availability::Locked,
        description: "in rack-1".into(),
    });
    world.ok(deletion(1, 1));
    look(&world);
    let machine = world.machine(1).id.to_string();
    for text in &shown {
        for secret in [machine.as_str(), "10.9.0.1", "leaf1", "rack-1", "swp1"] {
            assert!(!text.contains(secret), "{text:?} tells {secret}");
        }
    }
    let user_data = ClaimSpec {
        userdata: "c2VjcmV0".into(),
        ..ClaimSpec::default()
    };
    assert!(!format!("{user_data:?}").contains("c2VjcmV0"));
}
