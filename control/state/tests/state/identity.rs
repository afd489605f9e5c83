//! Identities: issued, renewed, rotated, revoked.

use control_state::*;
use proto_types::Timestamp;

use crate::world::*;

const LEAF: &str = "spiffe://test/partition/lab/core/leaf1";
const HOUR: u64 = 3_600_000;

/// A world with a ticket of leaf1 that the key 7 has redeemed.
fn joined() -> World {
    let mut world = World::new();
    ticket(&mut world, 1, 7);
    world.ok(join(&world, "aa", 7, 1));
    world
}

fn ticket(world: &mut World, number: u128, key: u8) {
    world.ok(new_ticket(world, number, false));
    world.ok(redeem(number, key));
}

fn new_ticket(world: &World, number: u128, reenrols: bool) -> CreateJoinTicket {
    CreateJoinTicket {
        id: id(number),
        kind: AgentKind::Core,
        partition: text(PARTITION),
        agent: "leaf1".into(),
        secret: sha(1),
        key: None,
        tpm: None,
        reenrols,
        expires_at: world.now.plus_ms(900_000),
    }
}

fn redeem(number: u128, key: u8) -> RedeemJoinTicket {
    RedeemJoinTicket {
        id: id(number),
        secret: sha(1),
        key: sha(key),
        tpm: None,
    }
}

fn issue(world: &World, serial: &str, key: u8, cause: Cause) -> IssueCertificate {
    IssueCertificate {
        certificate: Certificate {
            serial: serial.into(),
            identity: LEAF.into(),
            issued_at: world.now,
            not_after: world.now.plus_ms(HOUR),
            machine: None,
            allocation: None,
            key: Some(sha(key)),
            authority: 1,
            revoked_at: None,
            revoked_reason: String::new(),
        },
        cause,
    }
}

fn join(world: &World, serial: &str, key: u8, ticket: u128) -> IssueCertificate {
    let by = JoinedBy::JoinTicket(id(ticket));
    issue(world, serial, key, Cause::Join(by))
}

/// The bearer of `shown` asks for a certificate of `key`.
fn renew(world: &World, serial: &str, shown: u8, key: u8) -> IssueCertificate {
    issue(world, serial, key, Cause::Renewal(sha(shown)))
}

fn leaf(world: &World) -> Identity {
    let found = world.tables.get::<Identity>(&LEAF.to_owned());
    Identity::clone(found.unwrap())
}

fn revoke() -> RevokeIdentity {
    RevokeIdentity {
        identity: LEAF.into(),
        reason: "test".into(),
    }
}

fn good(world: &World, serial: &str) -> bool {
    query::is_certificate_good(&world.tables, serial, world.now)
}

#[test]
fn what_is_issued_is_known() {
    let mut world = joined();
    let first = leaf(&world);
    assert_eq!(first.joined_by, JoinedBy::JoinTicket(id(1)));
    assert_eq!((first.serial.as_str(), first.key), ("aa", sha(7)));
    world.later(HOUR / 2);
    world.ok(renew(&world, "bb", 7, 7));
    let renewed = leaf(&world);
    assert_eq!(
        (renewed.serial.as_str(), renewed.key_since),
        ("bb", first.key_since)
    );
    assert_eq!(renewed.joined_at, first.joined_at);
    // Nobody joins by a ticket of somebody else, or by none.
    assert_eq!(
        world.refused(join(&world, "cc", 8, 1)),
        ErrorCode::TicketRevoked
    );
    assert_eq!(
        world.refused(join(&world, "cc", 7, 2)),
        ErrorCode::TicketRevoked
    );
    let foreign = renew(&world, "cc", 8, 8);
    assert_eq!(world.refused(foreign), ErrorCode::TicketForeign);
}

#[test]
fn a_new_key_takes_the_place_of_the_old_one() {
    let mut world = joined();
    world.later(1000);
    let rotate = RotateIdentity {
        identity: LEAF.into(),
    };
    world.ok(rotate.clone());
    assert_eq!(
        world.refused(renew(&world, "bb", 7, 7)),
        ErrorCode::KeyNotNew
    );
    world.ok(renew(&world, "bb", 7, 8));
    let now = leaf(&world);
    assert_eq!((now.key, now.rotate_since), (sha(8), None));
    let ticket = world.tables.get::<JoinTicket>(&id(1)).unwrap();
    assert_eq!(
        ticket.redeemed_key,
        Some(sha(8)),
        "it comes back with the new key"
    );
    // The answer was lost: whoever has the new key asks again. Whoever stole the old one has not.
    world.ok(renew(&world, "cc", 7, 8));
    assert_eq!(
        world.refused(renew(&world, "dd", 7, 9)),
        ErrorCode::TicketForeign
    );
    assert_eq!(
        world.refused(renew(&world, "dd", 7, 7)),
        ErrorCode::TicketForeign
    );
    world.tick(30_000);
    assert!(good(&world, "aa"), "calls in flight go on");
    world.tick(31_000);
    assert!(!good(&world, "aa"));
    assert!(good(&world, "bb") && good(&world, "cc"));
    world.later(2 * HOUR);
    assert_eq!(world.refused(rotate), ErrorCode::IdentityAway);
}

#[test]
fn whoever_was_away_comes_back_before_its_key_is_replaced() {
    let mut world = joined();
    world.ok(RotateIdentity {
        identity: LEAF.into(),
    });
    world.ok(issue(&world, "bb", 7, Cause::Resume(sha(7))));
    assert!(leaf(&world).rotate_since.is_some());
    assert_eq!(
        world.refused(renew(&world, "cc", 7, 7)),
        ErrorCode::KeyNotNew
    );
}

#[test]
fn a_revoked_identity_is_revoked_as_a_whole() {
    let mut world = joined();
    world.ok(renew(&world, "bb", 7, 7));
    world.ok(new_ticket(&world, 2, false));
    let before = world.tables.revision();
    world.ok(revoke());
    assert_eq!(world.tables.revision(), before + 1, "one command");
    assert!(!good(&world, "aa") && !good(&world, "bb"));
    // A renewal that was under way comes too late, whatever it read before.
    assert_eq!(
        world.refused(renew(&world, "cc", 7, 7)),
        ErrorCode::CertificateRevoked
    );
    let resume = issue(&world, "cc", 7, Cause::Resume(sha(7)));
    assert_eq!(world.refused(resume), ErrorCode::CertificateRevoked);
    assert_eq!(
        world.refused(join(&world, "cc", 7, 1)),
        ErrorCode::TicketRevoked
    );
    assert_eq!(world.refused(redeem(2, 9)), ErrorCode::TicketRevoked);
    let revoked = leaf(&world).revoked_at;
    world.later(1);
    world.ok(revoke());
    assert_eq!(leaf(&world).revoked_at, revoked, "once");
    // It stays on record for as long as its last certificate could bring it back.
    world.tick(30 * 24 * HOUR);
    assert!(leaf(&world).revoked_at.is_some());
    ticket(&mut world, 3, 9);
    world.ok(join(&world, "dd", 9, 3));
    assert_eq!(leaf(&world).revoked_at, None, "an operator let it in again");
    world.tick(32 * 24 * HOUR);
    assert!(world.tables.get::<Identity>(&LEAF.to_owned()).is_none());
}

#[test]
fn a_revoked_agent_joins_again_only_by_a_ticket_that_was_made_for_it() {
    let mut world = joined();
    world.ok(revoke());
    // A control node of level 1 makes it, and the level is raised before it is used.
    world.ok(new_ticket(&world, 2, false));
    world.ok(tests_support::announcement(1));
    assert_eq!(world.refused(redeem(2, 9)), ErrorCode::IdentityRevoked);
    let automatic = new_ticket(&world, 3, false);
    assert_eq!(world.refused(automatic), ErrorCode::IdentityRevoked);
    let of_another = CreateJoinTicket {
        agent: "leaf2".into(),
        ..new_ticket(&world, 3, false)
    };
    world.ok(of_another);
    world.ok(new_ticket(&world, 4, true));
    world.ok(redeem(4, 9));
    world.ok(join(&world, "bb", 9, 4));
    assert_eq!(leaf(&world).revoked_at, None);
    // It is an agent like any other again.
    world.ok(new_ticket(&world, 5, false));
    // The ticket was for one revocation.
    world.ok(revoke());
    let next = new_ticket(&world, 6, false);
    assert_eq!(world.refused(next), ErrorCode::IdentityRevoked);
}

#[test]
fn an_older_control_node_is_not_sent_a_ticket_that_it_would_make_a_plain_one() {
    let world = World::new();
    for (reenrols, level) in [(false, 1), (true, 2)] {
        let op = Op::from(new_ticket(&world, 1, reenrols));
        assert_eq!(op.level(), level, "{reenrols}");
    }
}

#[test]
fn an_identity_that_a_backup_lacks_is_bound_to_its_ticket() {
    let mut world = World::new();
    ticket(&mut world, 1, 7);
    let mut lost = world.clone();
    lost.ok(renew(&lost, "aa", 7, 7));
    assert_eq!(leaf(&lost).joined_by, JoinedBy::JoinTicket(id(1)));
    // The revocation came between the judgement of the renewal and its proposal.
    world.ok(RevokeJoinTicket { id: id(1) });
    for cause in [Cause::Renewal(sha(7)), Cause::Resume(sha(7))] {
        let late = issue(&world, "aa", 7, cause);
        assert_eq!(world.refused(late), ErrorCode::CertificateRevoked);
    }
}

#[test]
fn an_installed_system_loses_its_identity_with_its_allocation_or_by_name() {
    let mut world = World::new();
    world.running(1, 1);
    let name = format!("spiffe://test/project/{}/machine/{}", uuid(1), uuid(1));
    let of = |world: &World, serial: &str, cause| {
        let mut op = issue(world, serial, 7, cause);
        op.certificate.identity.clone_from(&name);
        op.certificate.machine = Some(id(1));
        op.certificate.allocation = Some(id(1));
        op
    };
    let by = JoinedBy::Allocation(id(1));
    world.ok(of(&world, "aa", Cause::Join(by.clone())));
    world.ok(RevokeIdentity {
        identity: name.clone(),
        reason: String::new(),
    });
    let resume = of(&world, "bb", Cause::Resume(sha(7)));
    assert_eq!(world.refused(resume), ErrorCode::CertificateRevoked);
    // The record of its certificate goes with its end; that it was revoked is known longer.
    world.tick(2 * HOUR);
    assert_eq!(world.tables.all::<Certificate>().count(), 0);
    let resume = of(&world, "bb", Cause::Resume(sha(7)));
    assert_eq!(world.refused(resume), ErrorCode::CertificateRevoked);
    world.ok(of(&world, "bb", Cause::Join(by)));
    world.free(1);
    assert!(!good(&world, "bb"));
    let late = of(&world, "cc", Cause::Renewal(sha(7)));
    assert_eq!(world.refused(late), ErrorCode::CertificateRevoked);
}

fn uuid(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

#[test]
fn times_are_those_of_the_proposer() {
    let world = joined();
    assert_eq!(leaf(&world).joined_at, world.now);
    assert!(leaf(&world).is_live(world.now));
    assert!(!leaf(&world).is_live(Timestamp::from_ms(world.now.ms() + HOUR)));
}
