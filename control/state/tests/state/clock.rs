//! The cluster's time under wrong clocks of leaders.

use std::collections::BTreeMap;

use control_state::{
    AcceptTime, AgentKind, ClusterClock, CreateJoinTicket, CreateToken, ErrorCode, JoinTicket,
    Labels, Tick, Token, TokenType,
};

use crate::world::{PARTITION, World, id, sha, text};

const HOUR_MS: u64 = 3_600_000;
const YEAR_MS: u64 = 365 * 24 * HOUR_MS;

fn tick() -> Tick {
    Tick {
        node: 3,
        ..Tick::default()
    }
}

/// A token and a ticket that end within an hour.
fn perishable(world: &mut World) {
    let expires_at = world.now.plus_ms(HOUR_MS);
    world.ok(CreateJoinTicket {
        id: id(3),
        kind: AgentKind::Core,
        partition: text(PARTITION),
        agent: "leaf1".into(),
        secret: sha(1),
        key: None,
        tpm: None,
        reenrols: false,
        expires_at,
    });
    world.ok(CreateToken {
        id: id(4),
        user: "acme".into(),
        description: String::new(),
        labels: Labels::new(),
        permissions: Vec::new(),
        expires: expires_at,
        token_type: TokenType::Api,
        project_roles: BTreeMap::new(),
        tenant_roles: BTreeMap::new(),
        admin_role: None,
        warrant: None,
        infra_role: None,
        machine_roles: BTreeMap::new(),
    });
}

fn clock(world: &World) -> ClusterClock {
    let key = ClusterClock::ONE.to_owned();
    world
        .tables
        .get::<ClusterClock>(&key)
        .unwrap()
        .as_ref()
        .clone()
}

#[test]
fn a_leader_with_a_wrong_clock_ends_nothing() {
    let mut world = World::new();
    perishable(&mut world);
    world.ok(tick());
    let time = world.now;
    let count = |world: &World| {
        let tokens = world.tables.all::<Token>().count();
        (tokens, world.tables.all::<JoinTicket>().count())
    };
    let had = count(&world);

    world.now = time.plus_ms(YEAR_MS);
    world.ok(tick());
    assert_eq!(count(&world), had);
    let held = clock(&world).held.unwrap();
    assert_eq!((held.node, held.claimed), (3, world.now));
    assert_eq!(clock(&world).time, time);
    // The next ticks of the same clock write nothing.
    world.later(2_000);
    let revision = world.tables.revision();
    world.ok(tick());
    assert_eq!(world.tables.revision(), revision);

    // A leader with a sound clock goes on as if nothing had been.
    world.now = time.plus_ms(2_000);
    world.ok(tick());
    assert_eq!(clock(&world).held, None);
    assert_eq!(clock(&world).time, world.now);
}

#[test]
fn an_operator_confirms_a_jump_by_another_clock() {
    let mut world = World::new();
    perishable(&mut world);
    world.ok(tick());
    let time = world.now;
    world.now = time.plus_ms(YEAR_MS);
    world.ok(tick());
    assert_eq!(world.refused(AcceptTime { time }), ErrorCode::ClocksDiffer);
    assert!(clock(&world).held.is_some());

    world.ok(AcceptTime {
        time: world.now.plus_ms(1_000),
    });
    assert_eq!(clock(&world), ClusterClock::at(world.now));
    world.later(2_000);
    world.ok(tick());
    assert_eq!(world.tables.all::<Token>().count(), 0, "it ended long ago");
}

#[test]
fn the_time_goes_back_only_by_an_operator() {
    let mut world = World::new();
    world.ok(tick());
    let time = world.now;
    world.now = time.plus_ms(HOUR_MS / 2);
    world.ok(tick());
    let ahead = world.now;
    world.now = time.plus_ms(2_000);
    world.ok(tick());
    assert_eq!(clock(&world).time, ahead);
    world.ok(AcceptTime { time: world.now });
    assert_eq!(clock(&world).time, time.plus_ms(2_000));
}

#[test]
fn an_idle_cluster_writes_its_time_four_times_an_hour() {
    let mut world = World::new();
    world.ok(tick());
    let revision = world.tables.revision();
    for _ in 0..1_800 {
        world.later(2_000);
        world.ok(tick());
    }
    assert_eq!(world.tables.revision() - revision, 4);
}
