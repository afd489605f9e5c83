//! Tickets and certificates at the edges of their validity.

use control_state::AgentKind;
use uuid::Uuid;

use super::*;

const NOW: Timestamp = Timestamp::from_ms(10_000_000);

fn digest(byte: u8) -> Digest {
    Digest::sha256([byte; 32])
}

fn ago(ms: u64) -> Option<Timestamp> {
    Some(Timestamp::from_ms(NOW.ms() - ms))
}

fn ticket() -> JoinTicket {
    JoinTicket {
        id: Uuid::nil().into(),
        kind: AgentKind::Core,
        partition: "p1".parse().unwrap(),
        agent: "leaf1".into(),
        secret: digest(1),
        key: None,
        tpm: None,
        reenrols: false,
        created_by: String::new(),
        created_at: Timestamp::ZERO,
        expires_at: NOW.plus_ms(1000),
        redeemed_at: None,
        redeemed_key: None,
        revoked_at: None,
    }
}

fn used(at: Option<Timestamp>, key: u8) -> JoinTicket {
    JoinTicket {
        redeemed_at: at,
        redeemed_key: Some(digest(key)),
        ..ticket()
    }
}

#[test]
fn join_tickets() {
    use ErrorCode::{TicketExpired, TicketForeign, TicketRevoked, TicketUnknown, TicketUsed};
    let bound = |key| JoinTicket {
        key: Some(digest(key)),
        ..ticket()
    };
    let revoked = |ticket| JoinTicket {
        revoked_at: ago(1),
        ..ticket
    };
    let ended = JoinTicket {
        expires_at: Timestamp::from_ms(NOW.ms() - 1),
        ..ticket()
    };
    let long = ago(REPEAT_MAX + 1);
    // The caller's key is 7, the right secret 1.
    for (case, ticket, secret, expected) in [
        ("good", Some(ticket()), 1, Ok(JoinVerdict::Redeem)),
        ("unknown", None, 1, Err(TicketUnknown)),
        ("wrong secret", Some(ticket()), 2, Err(TicketUnknown)),
        ("bound", Some(bound(7)), 1, Ok(JoinVerdict::Redeem)),
        ("bound to another", Some(bound(8)), 1, Err(TicketForeign)),
        ("revoked", Some(revoked(ticket())), 1, Err(TicketRevoked)),
        (
            "used just now by this key",
            Some(used(ago(1), 7)),
            1,
            Ok(JoinVerdict::Repeat),
        ),
        ("used by another", Some(used(ago(1), 8)), 1, Err(TicketUsed)),
        ("used long ago", Some(used(long, 7)), 1, Err(TicketUsed)),
        (
            "revoked after use",
            Some(revoked(used(ago(1), 7))),
            1,
            Err(TicketRevoked),
        ),
        ("ended", Some(ended.clone()), 1, Err(TicketExpired)),
        (
            "ended, a wrong secret tells nothing",
            Some(ended),
            2,
            Err(TicketUnknown),
        ),
    ] {
        let got = join(ticket.as_ref(), &digest(secret), &digest(7), NOW);
        assert_eq!(got.map_err(|e| e.code), expected, "{case}");
    }
}

#[test]
fn boot_tickets() {
    use ErrorCode::{TicketExpired, TicketForeign, TicketUnknown, TicketUsed};
    let machine = MachineId::new(Uuid::from_u128(5));
    let mac = MacAddr([2, 0, 0, 0, 0, 1]);
    let ticket = BootTicket {
        id: Uuid::nil().into(),
        machine,
        mac,
        secret: digest(1),
        expires_at: NOW.plus_ms(1),
        redeemed_at: None,
        epoch: 0,
    };
    let used = BootTicket {
        redeemed_at: ago(1),
        ..ticket.clone()
    };
    let ended = BootTicket {
        expires_at: Timestamp::from_ms(1),
        ..ticket.clone()
    };
    let other = MachineId::new(Uuid::from_u128(6));
    let moved = MacAddr([2, 0, 0, 0, 0, 2]);
    for (case, ticket, secret, machine, mac, expected) in [
        ("good", Some(&ticket), 1, machine, mac, Ok(())),
        ("unknown", None, 1, machine, mac, Err(TicketUnknown)),
        (
            "wrong secret",
            Some(&ticket),
            2,
            machine,
            mac,
            Err(TicketUnknown),
        ),
        (
            "another machine",
            Some(&ticket),
            1,
            other,
            mac,
            Err(TicketForeign),
        ),
        (
            "another address",
            Some(&ticket),
            1,
            machine,
            moved,
            Err(TicketForeign),
        ),
        ("used", Some(&used), 1, machine, mac, Err(TicketUsed)),
        ("ended", Some(&ended), 1, machine, mac, Err(TicketExpired)),
    ] {
        let got = boot(ticket, &digest(secret), machine, mac, NOW);
        assert_eq!(got.map_err(|e| e.code), expected, "{case}");
    }
}

fn peer(id: &str, not_after_ms: u64) -> PeerIdentity {
    PeerIdentity {
        id: id.parse().unwrap(),
        serial: "01".into(),
        fingerprint: digest(7).hex(),
        not_before_ms: not_after_ms.saturating_sub(3_900_000),
        not_after_ms,
    }
}

#[test]
fn resumption_of_agents() {
    use ErrorCode::{CertificateRevoked, TicketExpired, TicketForeign};
    const LEAF: &str = "spiffe://m/partition/p1/core/leaf1";
    let ended = NOW.ms() - 1;
    let joined = JoinTicket {
        redeemed_at: ago(5),
        redeemed_key: Some(digest(7)),
        ..ticket()
    };
    let stolen = JoinTicket {
        revoked_at: ago(1),
        ..joined.clone()
    };
    let foreign = JoinTicket {
        redeemed_key: Some(digest(8)),
        ..joined.clone()
    };
    let long = Timestamp::from_ms(ended).plus_ms(RESUME_MAX + 1);
    for (case, id, ticket, now, expected) in [
        ("good", LEAF, Some(&joined), NOW, Ok(())),
        ("never joined", LEAF, None, NOW, Err(CertificateRevoked)),
        ("revoked", LEAF, Some(&stolen), NOW, Err(CertificateRevoked)),
        ("another key", LEAF, Some(&foreign), NOW, Err(TicketForeign)),
        (
            "another switch",
            "spiffe://m/partition/p1/core/leaf2",
            Some(&joined),
            NOW,
            Err(TicketForeign),
        ),
        (
            "another role",
            "spiffe://m/partition/p1/bmc/leaf1",
            Some(&joined),
            NOW,
            Err(TicketForeign),
        ),
        (
            "away too long",
            LEAF,
            Some(&joined),
            long,
            Err(TicketExpired),
        ),
        (
            "a node",
            "spiffe://m/node/1",
            Some(&joined),
            NOW,
            Err(CertificateRevoked),
        ),
    ] {
        let known = IdentityFacts {
            ticket,
            ..IdentityFacts::default()
        };
        let peer = peer(id, ended);
        let got = may_resume(&peer, &peer.fingerprint, known, now);
        assert_eq!(got.map_err(|e| e.code), expected, "{case}");
    }
}

#[test]
fn a_revoked_certificate_stands_for_nothing() {
    let record = Certificate {
        serial: "01".into(),
        identity: String::new(),
        issued_at: Timestamp::ZERO,
        not_after: NOW,
        machine: None,
        allocation: None,
        key: None,
        authority: 1,
        revoked_at: ago(1),
        revoked_reason: String::new(),
    };
    let known = IdentityFacts {
        certificate: Some(&record),
        ..IdentityFacts::default()
    };
    let peer = peer("spiffe://m/partition/p1/core/leaf1", NOW.ms() + 1);
    assert_eq!(
        stands(&peer, known).unwrap_err().code,
        ErrorCode::CertificateRevoked
    );
    assert!(stands(&peer, IdentityFacts::default()).is_ok());
}

#[test]
fn machines_that_nobody_knows_stand_for_nothing() {
    let uuid = Uuid::from_u128(5);
    for id in [
        format!("spiffe://m/machine/{uuid}"),
        format!("spiffe://m/project/p1/machine/{uuid}"),
    ] {
        let peer = peer(&id, NOW.ms() + 1);
        assert!(stands(&peer, IdentityFacts::default()).is_err(), "{id}");
        let key = &peer.fingerprint;
        assert!(
            may_resume(&peer, key, IdentityFacts::default(), NOW).is_err(),
            "{id}"
        );
    }
}
