//! The certificate authority's generations.

use control_state::*;

use crate::world::*;

const MINUTE: u64 = 60_000;
const DAY: u64 = 24 * 60 * MINUTE;

fn record(name: &str, generation: u32) -> CaRecord {
    let id = match (name, generation) {
        ("root", 1) => "root".to_owned(),
        _ => format!("{name}-{generation}"),
    };
    CaRecord {
        id,
        certificate: vec![1],
        sealed_key: vec![2],
        created_at: ms(1),
        not_after: ms(1 << 50),
        retired: false,
        generation,
        crossed: Vec::new(),
    }
}

fn generation(number: u32) -> Vec<CaRecord> {
    let names = ["agents", "nodes", "peers", "root"];
    names.iter().map(|name| record(name, number)).collect()
}

fn with_authority() -> World {
    let mut world = World::new();
    for record in generation(1) {
        world.ok(PutCa(record));
    }
    world
}

fn begin(world: &World, number: u32, overlap: u64, is_forced: bool) -> BeginCaRotation {
    BeginCaRotation {
        authorities: generation(number),
        until: world.now.plus_ms(overlap),
        is_forced,
    }
}

fn rotation(world: &World) -> CaRotation {
    let found = world.tables.get::<CaRotation>(&CaRotation::ONE.to_owned());
    CaRotation::clone(found.unwrap())
}

fn records(world: &World) -> usize {
    world.tables.all::<CaRecord>().count()
}

/// A certificate of a generation for a switch's agent.
fn issue(world: &mut World, serial: &str, authority: u32, cause: Cause) {
    let op = certificate(world, serial, authority, cause);
    world.ok(op);
}

fn certificate(world: &World, serial: &str, authority: u32, cause: Cause) -> IssueCertificate {
    IssueCertificate {
        certificate: Certificate {
            serial: serial.into(),
            identity: "spiffe://test/partition/lab/core/leaf1".into(),
            issued_at: world.now,
            not_after: world.now.plus_ms(60 * MINUTE),
            machine: None,
            allocation: None,
            key: Some(sha(7)),
            authority,
            revoked_at: None,
            revoked_reason: String::new(),
        },
        cause,
    }
}

fn good(world: &World, serial: &str) -> bool {
    query::is_certificate_good(&world.tables, serial, world.now)
}

#[test]
fn one_generation_follows_the_other_with_an_overlap() {
    let mut world = with_authority();
    for overlap in [MINUTE - 1, 91 * DAY] {
        let wrong = begin(&world, 2, overlap, false);
        assert_eq!(world.refused(wrong), ErrorCode::InvalidField);
    }
    let wrong = begin(&world, 3, DAY, false);
    assert_eq!(
        world.refused(wrong),
        ErrorCode::InvalidField,
        "not the next one"
    );
    let first = begin(&world, 2, 30 * DAY, false);
    world.ok(first);
    assert_eq!((rotation(&world).from, rotation(&world).to), (1, 2));
    let again = begin(&world, 3, DAY, false);
    assert_eq!(world.refused(again), ErrorCode::CaRotationOpen);
    world.tick(29 * DAY - 1);
    assert_eq!(rotation(&world).phase, CaPhase::Overlap);
    world.tick(1);
    assert_eq!(
        rotation(&world).phase,
        CaPhase::Switched,
        "a day before the end"
    );
    world.tick(DAY - 1);
    assert_eq!(
        (rotation(&world).phase, records(&world)),
        (CaPhase::Switched, 8)
    );
    world.tick(1);
    assert_eq!(
        (rotation(&world).phase, records(&world)),
        (CaPhase::Done, 4)
    );
    assert!(
        world
            .tables
            .all::<CaRecord>()
            .all(|record| record.generation == 2)
    );
    let third = begin(&world, 3, DAY, false);
    world.ok(third);
    assert_eq!((rotation(&world).from, rotation(&world).to), (2, 3));
}

#[test]
fn a_forced_one_waits_for_everybody_who_lives_or_for_its_end() {
    let mut world = with_authority();
    world.ok(CreateJoinTicket {
        id: id(1),
        kind: AgentKind::Core,
        partition: text(PARTITION),
        agent: "leaf1".into(),
        secret: sha(1),
        key: None,
        tpm: None,
        reenrols: false,
        expires_at: world.now.plus_ms(MINUTE),
    });
    world.ok(RedeemJoinTicket {
        id: id(1),
        secret: sha(1),
        key: sha(7),
        tpm: None,
    });
    let by = JoinedBy::JoinTicket(id(1));
    issue(&mut world, "aa", 1, Cause::Join(by));
    let forced = begin(&world, 2, 50 * MINUTE, true);
    world.ok(forced);
    let mut asleep = world.clone();
    asleep.tick(50 * MINUTE - 1);
    assert_eq!(rotation(&asleep).phase, CaPhase::Overlap);
    asleep.tick(1);
    assert_eq!(rotation(&asleep).phase, CaPhase::Switched);
    assert!(good(&asleep, "aa"));
    asleep.tick(20_000);
    assert_eq!(rotation(&asleep).phase, CaPhase::Done);
    assert!(!good(&asleep, "aa"), "of the old generation");
    let late = certificate(&asleep, "bb", 1, Cause::Renewal(sha(7)));
    assert_eq!(asleep.refused(late), ErrorCode::Unavailable);

    world.tick(1000);
    assert_eq!(rotation(&world).phase, CaPhase::Overlap);
    issue(&mut world, "bb", 2, Cause::Renewal(sha(7)));
    world.tick(1000);
    assert_eq!(rotation(&world).phase, CaPhase::Switched);
    world.tick(19_999);
    assert_eq!(rotation(&world).phase, CaPhase::Switched);
    world.tick(1);
    assert_eq!(rotation(&world).phase, CaPhase::Done);
    assert!(good(&world, "bb") && !good(&world, "aa"));
}

#[test]
fn one_under_way_can_be_hurried() {
    let mut world = with_authority();
    let until = world.now.plus_ms(5 * MINUTE);
    let hurry = ForceCaRotation { until };
    assert_eq!(world.refused(hurry.clone()), ErrorCode::NotFound);
    let slow = begin(&world, 2, 30 * DAY, false);
    world.ok(slow);
    world.ok(hurry);
    let now = rotation(&world);
    assert!(now.is_forced && now.until == until);
    world.tick(1);
    assert_eq!(
        rotation(&world).phase,
        CaPhase::Switched,
        "nobody has an old one"
    );
}
