//! Tickets, certificates and audit.

use control_state::*;
use proto_types::{AllocationId, Timestamp};

use crate::world::*;

fn ticket(world: &World, number: u128, key: Option<u8>) -> CreateJoinTicket {
    CreateJoinTicket {
        id: id(number),
        kind: AgentKind::Core,
        partition: text(PARTITION),
        agent: "leaf1".into(),
        secret: sha(1),
        key: key.map(sha),
        tpm: None,
        reenrols: false,
        expires_at: world.now.plus_ms(900_000),
    }
}

fn redeem(number: u128, secret: u8, key: u8) -> RedeemJoinTicket {
    RedeemJoinTicket {
        id: id(number),
        secret: sha(secret),
        key: sha(key),
        tpm: None,
    }
}

#[test]
fn join_tickets_work_once() {
    let mut world = World::new();
    for number in 1..=4 {
        let key = (number == 1).then_some(9);
        world.ok(ticket(&world, number, key));
    }
    assert_eq!(world.refused(redeem(7, 1, 9)), ErrorCode::TicketUnknown);
    assert_eq!(
        world.refused(redeem(1, 2, 9)),
        ErrorCode::TicketUnknown,
        "wrong secret"
    );
    assert_eq!(world.refused(redeem(1, 1, 8)), ErrorCode::TicketForeign);
    let used = world.ok(redeem(1, 1, 9)).join_ticket().unwrap();
    assert_eq!(
        (used.redeemed_at, used.redeemed_key.clone()),
        (Some(world.now), Some(sha(9)))
    );
    assert_eq!(world.refused(redeem(1, 1, 9)), ErrorCode::TicketUsed);
    world.ok(redeem(2, 1, 5));
    world.ok(RevokeJoinTicket { id: id(3) });
    assert_eq!(world.refused(redeem(3, 1, 9)), ErrorCode::TicketRevoked);
    world.later(900_000);
    assert_eq!(world.refused(redeem(4, 1, 9)), ErrorCode::TicketExpired);
    let nowhere = CreateJoinTicket {
        partition: text("nowhere"),
        ..ticket(&world, 5, None)
    };
    assert_eq!(world.refused(nowhere), ErrorCode::NotFound);
    let long = CreateJoinTicket {
        expires_at: world.now.plus_ms(1 << 40),
        ..ticket(&world, 5, None)
    };
    assert_eq!(world.refused(long), ErrorCode::InvalidField);
}

#[test]
fn a_join_ticket_is_not_for_a_switch_of_another_partition() {
    let mut world = World::new();
    world.ok(CreatePartition(partition("other")));
    let elsewhere = |world: &World, number, agent: &str| CreateJoinTicket {
        partition: text("other"),
        agent: agent.into(),
        ..ticket(world, number, None)
    };
    let taken = elsewhere(&world, 1, "leaf1");
    assert_eq!(world.refused(taken), ErrorCode::AlreadyExists);
    let of_bmcs = CreateJoinTicket {
        kind: AgentKind::Bmc,
        ..elsewhere(&world, 1, "leaf1")
    };
    world.ok(of_bmcs);
    world.ok(elsewhere(&world, 2, "leaf2"));
    // It registered in the first partition meanwhile.
    world.ok(leaf("leaf2", "rack-1"));
    assert_eq!(world.refused(redeem(2, 1, 9)), ErrorCode::AlreadyExists);
}

#[test]
fn boot_tickets_are_for_one_machine() {
    let mut world = World::new();
    world.ok(CreatePartition(partition("other")));
    let seen_at = world.now;
    world.ok(MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(mac(1)),
        seen_at,
        to_disk: false,
        stated_at: None,
        relayed: None,
    });
    let issue = |number, from: u128, place: &str, expires_at: Timestamp| IssueBootTicket {
        id: id(number),
        machine: id(1),
        mac: mac(from),
        partition: text(place),
        secret: sha(1),
        expires_at,
    };
    let soon = world.now.plus_ms(300_000);
    assert_eq!(
        world.refused(issue(1, 1, "other", soon)),
        ErrorCode::MachineForeign
    );
    assert_eq!(
        world.refused(issue(1, 2, PARTITION, soon)),
        ErrorCode::MachineForeign
    );
    world.ok(issue(1, 1, PARTITION, soon));
    world.ok(issue(2, 1, PARTITION, soon));
    let redeem = |number, machine, from, secret| RedeemBootTicket {
        id: id(number),
        secret: sha(secret),
        machine: id(machine),
        mac: mac(from),
        nonce: None,
    };
    assert_eq!(
        world.refused(redeem(1, 1, 1, 1)),
        ErrorCode::TicketUnknown,
        "a newer one was made"
    );
    assert_eq!(world.refused(redeem(2, 1, 1, 2)), ErrorCode::TicketUnknown);
    assert_eq!(world.refused(redeem(2, 2, 1, 1)), ErrorCode::TicketForeign);
    assert_eq!(world.refused(redeem(2, 1, 2, 1)), ErrorCode::TicketForeign);
    world.ok(redeem(2, 1, 1, 1));
    assert_eq!(world.refused(redeem(2, 1, 1, 1)), ErrorCode::TicketUsed);
    world.ok(issue(3, 1, PARTITION, soon));
    world.later(300_000);
    assert_eq!(world.refused(redeem(3, 1, 1, 1)), ErrorCode::TicketExpired);
}

#[test]
fn a_card_that_the_inventory_does_not_know_gets_no_boot_ticket() {
    let mut world = World::new();
    world.boot(1, "first");
    let (seen_at, expires_at) = (world.now, world.now.plus_ms(300_000));
    let claim = mac(99);
    world.ok(MachineSeen {
        id: id(1),
        partition: text(PARTITION),
        mac: Some(claim),
        seen_at,
        to_disk: false,
        stated_at: None,
        relayed: None,
    });
    let issue = |from| IssueBootTicket {
        id: id(1),
        machine: id(1),
        mac: from,
        partition: text(PARTITION),
        secret: sha(1),
        expires_at,
    };
    assert_eq!(world.refused(issue(claim)), ErrorCode::MachineForeign);
    let own = world.machine(1).hardware.nics[0].mac;
    world.ok(issue(own));
}

pub(crate) fn certificate(
    world: &World,
    serial: &str,
    allocation: Option<u128>,
) -> IssueCertificate {
    let cause = match allocation {
        Some(allocation) => Cause::Join(JoinedBy::Allocation(id(allocation))),
        None => Cause::Renewal(sha(7)),
    };
    IssueCertificate {
        certificate: Certificate {
            serial: serial.into(),
            identity: format!("spiffe://test/{serial}"),
            issued_at: world.now,
            not_after: world.now.plus_ms(3_600_000),
            machine: allocation.map(|_| id(1)),
            allocation: allocation.map(id::<AllocationId>),
            key: Some(sha(7)),
            authority: 1,
            revoked_at: None,
            revoked_reason: String::new(),
        },
        cause,
    }
}

#[test]
fn freeing_revokes_the_allocations_certificates() {
    let mut world = World::new();
    world.running(1, 1);
    world.ok(certificate(&world, "aa", Some(1)));
    world.ok(certificate(&world, "bb", None));
    assert_eq!(
        world.refused(certificate(&world, "aa", Some(1))),
        ErrorCode::AlreadyExists
    );
    assert_eq!(
        world.refused(certificate(&world, "cc", Some(2))),
        ErrorCode::MachineNotAllocated
    );
    let good = |world: &World, serial| query::is_certificate_good(&world.tables, serial, world.now);
    assert!(good(&world, "aa") && good(&world, "bb"));
    world.free(1);
    assert!(!good(&world, "aa") && good(&world, "bb"));
    let choice = CertificateChoice::Identity("spiffe://test/bb".into());
    let reply = world.ok(RevokeCertificates {
        choice,
        reason: "test".into(),
    });
    assert_eq!(reply, Reply::Serials(vec!["bb".into()]));
    world.tick(2 * 3_600_000);
    assert_eq!(world.tables.all::<Certificate>().count(), 0);
}

#[test]
fn audit_is_bounded_and_in_order() {
    let mut world = World::empty();
    let entry = |number: usize| AuditEntry {
        sequence: 0,
        id: number.to_string(),
        time: world.now,
        user: String::new(),
        tenant: String::new(),
        project: None,
        method: "m".into(),
        body: None,
        source_ip: String::new(),
        result_code: None,
        phase: AuditPhase::Request,
        ended: None,
        rule: None,
        count: None,
        hash: None,
    };
    let count = AUDIT_MAX + AUDIT_DROP;
    let entries: Vec<_> = (0..=count).map(entry).collect();
    for part in entries.chunks(500) {
        world.ok(AppendAudit {
            entries: part.to_vec(),
        });
    }
    let kept: Vec<_> = world
        .tables
        .all::<AuditEntry>()
        .map(|e| e.id.clone())
        .collect();
    assert_eq!(kept.len(), AUDIT_MAX);
    assert_eq!(
        (kept[0].as_str(), kept[AUDIT_MAX - 1].as_str()),
        ("257", "10256")
    );
}

#[test]
fn reports_of_bmcs() {
    let mut world = World::new();
    let reading = |number: u128, error: Option<&str>| BmcReading {
        machine: Some(id(number)),
        address: "10.0.0.1:623".into(),
        power_state: "on".into(),
        interface: "ipmi".into(),
        error: error.map(str::to_owned),
        observed_at: ms(5),
        ..BmcReading::default()
    };
    let report = |place: &str, readings| ReportBmc {
        partition: text(place),
        readings,
    };
    assert!(life::bmc_reading_matters(
        &world.tables,
        &reading(1, None),
        world.now
    ));
    let reply = world.ok(report(PARTITION, vec![reading(1, None)]));
    assert_eq!(reply, Reply::MachineIds(vec![id(1)]));
    assert!(world.machine(1).dirty);
    let early = ms(10);
    assert!(!life::bmc_reading_matters(
        &world.tables,
        &reading(1, None),
        early
    ));
    let broken = BmcReading {
        address: String::new(),
        ..reading(1, Some("timeout"))
    };
    assert!(life::bmc_reading_matters(&world.tables, &broken, early));
    world.ok(report(PARTITION, vec![broken]));
    let bmc = world.machine(1).bmc.clone().unwrap();
    assert_eq!(
        (bmc.address.as_str(), bmc.error.as_deref()),
        ("10.0.0.1:623", Some("timeout"))
    );
    world.ok(report(
        "other",
        vec![BmcReading {
            address: "evil".into(),
            ..reading(1, None)
        }],
    ));
    assert_eq!(
        world.machine(1).bmc.clone().unwrap().address,
        "10.0.0.1:623"
    );
}

#[test]
fn an_agent_ends_only_its_partitions_orders_and_only_once() {
    let mut world = World::new();
    world.running(1, 1);
    world.free(1);
    let order = life::bmc_desired(&world.tables, &text(PARTITION))[0].clone();
    let done = |place: &str, error: Option<&str>| BmcOrderDone {
        id: order.id,
        partition: text(place),
        error: error.map(str::to_owned),
        power_state: Some("off".into()),
        nonce: None,
    };
    assert_eq!(
        world.refused(done("other", None)),
        ErrorCode::MachineForeign
    );
    world.ok(done(PARTITION, None));
    let phase = world.phase(1);
    assert_eq!(world.apply(done(PARTITION, Some("late"))).changes, vec![]);
    assert_eq!(world.phase(1), phase);
}

#[test]
fn a_ticket_of_a_tpm_needs_it() {
    let mut world = World::new();
    let of_tpm = |tpm: u8| Some(sha(tpm));
    let made = CreateJoinTicket {
        tpm: of_tpm(9),
        ..ticket(&world, 1, None)
    };
    world.ok(made);
    for tpm in [None, of_tpm(8)] {
        let other = RedeemJoinTicket {
            tpm,
            ..redeem(1, 1, 7)
        };
        assert_eq!(world.refused(other), ErrorCode::TpmUnproved);
    }
    world.ok(RedeemJoinTicket {
        tpm: of_tpm(9),
        ..redeem(1, 1, 7)
    });
}
