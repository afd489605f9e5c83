//! BMCs that no agent reaches: their machines are on offer to nobody until an agent reads them again.

use control_state::*;
use proto_types::Timestamp;

use crate::restored::restored;
use crate::world::*;

/// Readings that were told of a BMC, each with its time.
type Readings = &'static [(u64, Option<&'static str>)];

const HOUR_MS: u64 = 3_600_000;

/// How a reading of machine 1's BMC went.
fn reading(world: &World, error: Option<&str>) -> BmcReading {
    BmcReading {
        machine: Some(id(1)),
        address: "10.0.0.1:623".into(),
        power_state: "on".into(),
        error: error.map(str::to_owned),
        observed_at: world.now,
        ..BmcReading::default()
    }
}

/// The agent of machine 1's BMC tells how a reading went.
pub(crate) fn read(world: &mut World, error: Option<&str>) {
    let reading = reading(world, error);
    world.ok(ReportBmc {
        partition: text(PARTITION),
        readings: vec![reading],
    });
}

/// Time passes under a leader that began to listen at a time; hammer is heard all along.
pub(crate) fn pass(world: &mut World, by_ms: u64, listening_since: Timestamp) {
    world.later(by_ms);
    world.ok(Tick {
        listening_since,
        heard: [(id(1), world.now)].into(),
        ..Tick::default()
    });
}

/// A machine on offer whose BMC was read.
fn offered() -> World {
    let mut world = upgraded();
    world.waiting(1);
    read(&mut world, None);
    world
}

fn obstacle(world: &World) -> Option<String> {
    query::machine_obstacle(&world.tables, id(1))
}

fn by_id(allocation: u128) -> AllocateMachine {
    AllocateMachine {
        machine: Some(id(1)),
        partition: None,
        size: None,
        ..allocation_of(allocation)
    }
}

/// A reading of a BMC that succeeds, and one that fails.
const READ: Option<&str> = None;
const FAILED: Option<&str> = Some("timeout");

#[test]
fn a_bmc_is_reached_until_its_agent_fails_or_is_silent_for_too_long() {
    const SILENT_MS: u64 = BMC_SILENT_AFTER_MS;
    const FAILED_MS: u64 = BMC_FAILED_AFTER_MS;
    // Each has the readings that were told at some times, and the judgement of a tick at another one.
    let cases: [(&str, Readings, u64, bool); 9] = [
        ("silent, not long", &[(0, READ)], SILENT_MS - 1, true),
        ("silent", &[(0, READ)], SILENT_MS, false),
        ("failed once", &[(0, FAILED)], SILENT_MS - 1, true),
        ("and silent then", &[(0, FAILED)], SILENT_MS, false),
        (
            "failing, not long",
            &[(0, FAILED), (FAILED_MS - 1, FAILED)],
            FAILED_MS - 1,
            true,
        ),
        (
            "failing",
            &[(0, FAILED), (60_000, FAILED), (FAILED_MS, FAILED)],
            FAILED_MS,
            false,
        ),
        (
            "read in between",
            &[(0, FAILED), (60_000, READ), (FAILED_MS, FAILED)],
            FAILED_MS,
            true,
        ),
        (
            "read at last",
            &[(0, FAILED), (FAILED_MS, FAILED), (FAILED_MS, READ)],
            FAILED_MS,
            true,
        ),
        (
            "read all along",
            &[(0, READ), (SILENT_MS / 2, READ)],
            SILENT_MS,
            true,
        ),
    ];
    for (what, told, tick_ms, is_reached) in cases {
        let mut world = offered();
        let began = world.now;
        for (at_ms, error) in told {
            world.now = began.plus_ms(*at_ms);
            read(&mut world, *error);
        }
        world.now = began.plus_ms(tick_ms);
        pass(&mut world, 0, Timestamp::ZERO);
        assert_eq!(obstacle(&world).is_none(), is_reached, "{what}");
    }
}

#[test]
fn a_machine_whose_bmc_nobody_reaches_is_on_offer_to_nobody() {
    let mut world = offered();
    world.ok(crate::node_allocations::capable(1, "gold", &[]));
    pass(&mut world, BMC_SILENT_AFTER_MS, Timestamp::ZERO);
    let why = obstacle(&world);
    assert_eq!(why.as_deref(), Some("no agent reaches its BMC"));
    assert!(world.apply(allocation_of(7)).result.is_err());
    assert_eq!(world.refused(by_id(7)), ErrorCode::MachineNotReady);
    let wanted = crate::node_allocations::wanted(60, None, "gold");
    let held = world.ok(wanted).node_allocation().unwrap();
    assert_eq!(held.machine, None, "{held:?}");
    // An attempt that fails is no sign of it, one that succeeds is.
    read(&mut world, FAILED);
    assert!(obstacle(&world).is_some());
    read(&mut world, READ);
    assert_eq!(obstacle(&world), None);
    let bmc = world.machine(1).bmc.as_ref().unwrap();
    assert_eq!((bmc.failing_since, bmc.unreached), (None, false));
    world.ok(by_id(7));
}

/// A new leader, also after the whole control was away, has heard no agent yet.
#[test]
fn a_young_leader_judges_no_bmc_by_the_time_before_it() {
    for (error, bound_ms) in [(READ, BMC_SILENT_AFTER_MS), (FAILED, BMC_FAILED_AFTER_MS)] {
        let mut world = offered();
        read(&mut world, error);
        world.later(HOUR_MS);
        let began = world.now;
        for (by_ms, is_offered) in [(0, true), (bound_ms - 1, true), (1, false)] {
            world.later(by_ms);
            if error.is_some() {
                read(&mut world, error);
            }
            pass(&mut world, 0, began);
            assert_eq!(obstacle(&world).is_none(), is_offered, "{error:?}");
        }
        // A judgement of before stays.
        let next = world.now;
        pass(&mut world, 0, next);
        assert!(obstacle(&world).is_some());
        read(&mut world, READ);
        assert_eq!(obstacle(&world), None);
    }
}

#[test]
fn a_restored_state_judges_no_bmc_by_the_time_before_its_reconciliation() {
    let mut world = restored(&offered());
    for _ in 0..3 {
        pass(&mut world, HOUR_MS / 2, Timestamp::ZERO);
    }
    world.ok(ReconcileRestore { judge_silent: true });
    for (by_ms, is_reached) in [(0, true), (BMC_SILENT_AFTER_MS - 1, true), (1, false)] {
        pass(&mut world, by_ms, Timestamp::ZERO);
        let bmc = world.machine(1).bmc.as_ref().unwrap();
        assert_eq!(!bmc.unreached, is_reached);
    }
}

#[test]
fn nobody_judges_a_bmc_that_was_never_read_or_before_every_node_knows_the_rule() {
    let mut unread = upgraded();
    unread.waiting(1);
    let mut earlier = World::new();
    earlier.waiting(1);
    read(&mut earlier, Some("timeout"));
    for world in [&mut unread, &mut earlier] {
        for _ in 0..3 {
            pass(world, HOUR_MS / 2, Timestamp::ZERO);
            assert_eq!(obstacle(world), None);
        }
    }
    let bmc = earlier.machine(1).bmc.as_ref().unwrap();
    assert_eq!((bmc.failing_since, bmc.unreached), (None, false));
}

#[test]
fn what_is_told_of_a_bmc_is_written_until_it_counts_as_not_reached() {
    let mut world = offered();
    let matters = |world: &World, error: Option<&str>| {
        life::bmc_reading_matters(&world.tables, &reading(world, error), world.now)
    };
    assert!(!matters(&world, READ));
    for _ in 0..6 {
        assert!(matters(&world, FAILED));
        read(&mut world, FAILED);
        pass(&mut world, BMC_FAILED_AFTER_MS / 5, Timestamp::ZERO);
    }
    assert!(world.machine(1).bmc.as_ref().unwrap().unreached);
    assert!(!matters(&world, FAILED), "it is known");
    assert!(matters(&world, Some("refused")));
    assert!(matters(&world, READ));
}

/// An agent that reads its BMCs as seldom as it may, each time a little earlier or later.
#[test]
fn the_longest_interval_of_readings_keeps_a_bmc_reached() {
    const INTERVAL_MS: u64 = 600_000;
    const JITTER_MS: u64 = 5_000;
    let mut world = offered();
    for turn in 0..6 {
        let by_ms = match turn % 2 {
            0 => INTERVAL_MS - JITTER_MS,
            _ => INTERVAL_MS + JITTER_MS,
        };
        pass(&mut world, by_ms, Timestamp::ZERO);
        assert_eq!(obstacle(&world), None, "{turn}");
        if life::bmc_reading_matters(&world.tables, &reading(&world, READ), world.now) {
            read(&mut world, READ);
        }
    }
}

/// Agents of the published stack tell the time of a reading by their own clock.
#[test]
fn an_agent_whose_clock_is_behind_takes_no_machine_off_the_offer() {
    let mut world = offered();
    for turn in 0..6 {
        pass(&mut world, BMC_SILENT_AFTER_MS / 2, Timestamp::ZERO);
        assert_eq!(obstacle(&world), None, "{turn}");
        let told = BmcReading {
            observed_at: Timestamp::from_ms(1),
            heard_at: Some(world.now),
            ..reading(&world, READ)
        };
        assert!(life::bmc_reading_matters(&world.tables, &told, world.now));
        world.ok(ReportBmc {
            partition: text(PARTITION),
            readings: vec![told.clone()],
        });
        assert!(!life::bmc_reading_matters(&world.tables, &told, world.now));
    }
    assert_eq!(world.machine(1).bmc.as_ref().unwrap().updated_at.ms(), 1);
    pass(&mut world, BMC_SILENT_AFTER_MS, Timestamp::ZERO);
    assert!(obstacle(&world).is_some());
}

/// An agent of the mesh joins.
fn joins(world: &mut World, kind: AgentKind, partition: &str) -> String {
    let ticket = CreateJoinTicket {
        id: id(90),
        kind,
        partition: text(partition),
        agent: "agent-1".into(),
        secret: sha(1),
        key: None,
        tpm: None,
        reenrols: false,
        expires_at: world.now.plus_ms(900_000),
    };
    world.ok(ticket);
    world.ok(RedeemJoinTicket {
        id: id(90),
        secret: sha(1),
        key: sha(7),
        tpm: None,
    });
    let identity = format!(
        "spiffe://test/partition/{partition}/{}/agent-1",
        kind.as_str()
    );
    let certificate = Certificate {
        serial: "aa".into(),
        identity: identity.clone(),
        issued_at: world.now,
        not_after: world.now.plus_ms(HOUR_MS),
        machine: None,
        allocation: None,
        key: Some(sha(7)),
        authority: 1,
        revoked_at: None,
        revoked_reason: String::new(),
    };
    world.ok(IssueCertificate {
        certificate,
        cause: Cause::Join(JoinedBy::JoinTicket(id(90))),
    });
    identity
}

/// Machine 1 waits; its hammer has told of a BMC, which no agent has read.
fn tells(world: &mut World) {
    world.waiting(1);
    world.ok(RegisterMachine {
        bmc_address: "10.0.0.1".into(),
        ..registration(1, "boot-1")
    });
    assert!(world.machine(1).bmc.is_some());
}

#[test]
fn a_bmc_that_its_machine_alone_tells_of_is_read_before_the_machine_is_on_offer() {
    let mut world = upgraded();
    joins(&mut world, AgentKind::Bmc, PARTITION);
    tells(&mut world);
    let why = obstacle(&world);
    assert_eq!(why.as_deref(), Some("no agent has read its BMC yet"));
    assert!(world.apply(allocation_of(7)).result.is_err());
    // An attempt that fails is no reading, and neither is another claim of the machine.
    read(&mut world, FAILED);
    assert!(obstacle(&world).is_some());
    world.ok(RegisterMachine {
        bmc_address: "10.0.0.1".into(),
        ..registration(1, "boot-1")
    });
    assert!(obstacle(&world).is_some());
    read(&mut world, READ);
    assert_eq!(obstacle(&world), None);
    world.ok(by_id(7));
}

/// Where no agent of the mesh reads BMCs, nobody knows of an agent that should: machines are on offer.
#[test]
fn a_bmc_is_awaited_only_where_an_agent_reads_bmcs() {
    let agents: [(&str, Option<(AgentKind, &str)>); 3] = [
        ("no agent", None),
        ("another agent", Some((AgentKind::Pixie, PARTITION))),
        ("another partition", Some((AgentKind::Bmc, "other"))),
    ];
    for (what, agent) in agents {
        let mut world = upgraded();
        world.ok(CreatePartition(partition("other")));
        if let Some((kind, partition)) = agent {
            joins(&mut world, kind, partition);
        }
        tells(&mut world);
        pass(&mut world, HOUR_MS / 2, Timestamp::ZERO);
        assert_eq!(obstacle(&world), None, "{what}");
    }
    let mut revoked = upgraded();
    let identity = joins(&mut revoked, AgentKind::Bmc, PARTITION);
    let reason = "gone".into();
    revoked.ok(RevokeIdentity { identity, reason });
    // Before every control node knows the rule.
    let mut earlier = World::new();
    joins(&mut earlier, AgentKind::Bmc, PARTITION);
    for world in [&mut revoked, &mut earlier] {
        tells(world);
        pass(world, HOUR_MS / 2, Timestamp::ZERO);
        assert_eq!(obstacle(world), None);
    }
}

#[test]
fn an_agent_that_joins_has_time_to_read_the_bmcs_of_machines_on_offer() {
    let mut world = upgraded();
    tells(&mut world);
    pass(&mut world, HOUR_MS / 2, Timestamp::ZERO);
    joins(&mut world, AgentKind::Bmc, PARTITION);
    for (by_ms, is_offered) in [(0, true), (BMC_SILENT_AFTER_MS - 1, true), (1, false)] {
        pass(&mut world, by_ms, Timestamp::ZERO);
        assert_eq!(obstacle(&world).is_none(), is_offered, "{by_ms}");
    }
    read(&mut world, READ);
    assert_eq!(obstacle(&world), None);
}
