//! Invitation, joining and removal of control nodes.

use proto_errors::{Error, ErrorCode};
use proto_types::Timestamp;

use crate::cluster::command::{AnnounceNode, InviteNode, JoinNode, RemoveNode};
use crate::cluster::entity::ControlNode;
use crate::levels::lowest_level;
use crate::reply::{ApplyResult, CheckResult, Reply};
use crate::tables::Tx;

/// Longest life of an invitation, milliseconds: a day.
const INVITATION_LIFE_MAX_MS: u64 = 24 * 3_600_000;
/// Longest life of an invitation that is bound to no key, milliseconds: an hour. Until it is used,
/// its secret alone opens the cluster at its address.
const KEYLESS_LIFE_MAX_MS: u64 = 3_600_000;
/// Most control nodes and open invitations together; another invitation is refused.
const NODES_MAX: usize = 32;

pub(crate) fn invite(tx: &mut Tx<'_>, op: &InviteNode) -> ApplyResult {
    let life = op.expires_at.since_ms(tx.now);
    if life == 0 || life > INVITATION_LIFE_MAX_MS {
        return Err(Error::invalid("minutes", "must be in 1..=1440"));
    }
    if op.key.is_none() {
        check_keyless(op, life)?;
    }
    let now = tx.now;
    let counts = |node: &ControlNode| {
        node.removed_at.is_none()
            && (node.joined_at.is_some() || node.expires_at.is_some_and(|end| end >= now))
    };
    let nodes = tx.tables().all::<ControlNode>();
    let (count, last) = nodes.fold((0, 0), |(count, last), node| {
        (count + usize::from(counts(node)), last.max(node.id))
    });
    if count >= NODES_MAX {
        let what = format!("there are {NODES_MAX} control nodes and invitations already");
        return Err(
            Error::new(ErrorCode::TooMany, what).hint("let invitations end, or remove nodes")
        );
    }
    let node = ControlNode {
        id: last + 1,
        secret: Some(op.secret.clone()),
        key: op.key.clone(),
        invited_by: tx.actor.to_owned(),
        invited_at: tx.now,
        expires_at: Some(op.expires_at),
        peer_address: op.peer_address.clone(),
        ..empty(last + 1, tx.now)
    };
    Ok(Reply::ControlNode(tx.save(node)))
}

/// Refuses an invitation that is bound to neither a key nor an address, and one without a key that
/// lives too long.
fn check_keyless(op: &InviteNode, life_ms: u64) -> CheckResult {
    if op.peer_address.is_empty() {
        let rule = "is needed without key_sha256: an invitation is bound to a key or an address";
        return Err(Error::invalid("peer_address", rule));
    }
    if life_ms > KEYLESS_LIFE_MAX_MS {
        let rule = "must be in 1..=60 without key_sha256";
        return Err(Error::invalid("minutes", rule));
    }
    Ok(())
}

pub(crate) fn join(tx: &mut Tx<'_>, op: &JoinNode) -> ApplyResult {
    let refuse = |code: ErrorCode, what: &str| {
        let message = format!("the invitation of control node {} {what}", op.id);
        Err(Error::new(code, message)
            .hint("create a new one: `metalmesh cluster invite HOST:PORT` on a running node"))
    };
    let known = tx
        .get::<ControlNode>(&op.id)
        .map(|node| ControlNode::clone(node));
    let secret = known.as_ref().and_then(|node| node.secret.as_ref());
    let (Some(mut node), true) = (known.clone(), secret.is_some_and(|s| s.same_as(&op.secret)))
    else {
        return refuse(
            ErrorCode::TicketUnknown,
            "is unknown or its secret is wrong",
        );
    };
    if node.removed_at.is_some() {
        return refuse(ErrorCode::TicketRevoked, "was withdrawn");
    }
    if node.key.as_ref().is_some_and(|key| !key.same_as(&op.key)) {
        // The key of an invitation without one is that of the node which used it.
        let what = match node.joined_at {
            Some(_) => "is bound to another key, which used it already",
            None => "is bound to another key",
        };
        return refuse(ErrorCode::TicketForeign, what);
    }
    if node.joined_at.is_some() {
        return refuse(ErrorCode::TicketUsed, "was used already");
    }
    if !node.peer_address.is_empty() && node.peer_address != op.peer_address {
        let what = format!(
            "is for {:?}, but the node's peers.address is {:?}",
            node.peer_address, op.peer_address
        );
        return refuse(ErrorCode::TicketForeign, &what);
    }
    if node.expires_at.is_some_and(|end| tx.now > end) {
        return refuse(ErrorCode::TicketExpired, "has ended");
    }
    check_level(tx, op.level)?;
    // From here on the invitation is of no use to another key, so a line that was copied is dead.
    node.key = Some(op.key.clone());
    node.level = op.level;
    node.joined_at = Some(tx.now);
    node.peer_address.clone_from(&op.peer_address);
    Ok(Reply::ControlNode(tx.save(node)))
}

pub(crate) fn announce(tx: &mut Tx<'_>, op: &AnnounceNode) -> ApplyResult {
    let mut node = match tx.get::<ControlNode>(&op.id) {
        Some(node) => ControlNode::clone(node),
        None => empty(op.id, tx.now),
    };
    if node.removed_at.is_some() {
        let what = format!("control node {} was removed from the cluster", op.id);
        let hint =
            "join it again with an empty data directory: `metalmesh cluster invite HOST:PORT`";
        return Err(Error::new(ErrorCode::PermissionDenied, what).hint(hint));
    }
    check_level(tx, op.level)?;
    node.joined_at = node.joined_at.or(Some(tx.now));
    if !op.peer_address.is_empty() {
        node.peer_address.clone_from(&op.peer_address);
    }
    node.mesh_addresses.clone_from(&op.mesh_addresses);
    node.level = op.level;
    node.version.clone_from(&op.version);
    Ok(Reply::ControlNode(tx.save(node)))
}

pub(crate) fn remove(tx: &mut Tx<'_>, op: &RemoveNode) -> ApplyResult {
    let mut node: ControlNode = tx.require(&op.id)?;
    node.removed_at = node.removed_at.or(Some(tx.now));
    Ok(Reply::ControlNode(tx.save(node)))
}

/// Refuses a node whose program is below the level of the cluster: it could not decode the log. The
/// level of this program is not compared: programs of all levels must reach the same result.
fn check_level(tx: &Tx<'_>, level: u32) -> CheckResult {
    let used = lowest_level(tx.tables()).unwrap_or(0);
    if level >= used {
        return Ok(());
    }
    let what = format!("the node's program knows feature level {level}, the cluster uses {used}");
    Err(Error::new(ErrorCode::MembershipRefused, what).hint("install a newer metalmeshd on it"))
}

fn empty(id: u64, now: Timestamp) -> ControlNode {
    ControlNode {
        id,
        secret: None,
        key: None,
        invited_by: String::new(),
        invited_at: now,
        expires_at: None,
        joined_at: None,
        removed_at: None,
        peer_address: String::new(),
        mesh_addresses: Vec::new(),
        level: 0,
        version: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use proto_types::Digest;

    use super::*;
    use crate::command::Command;
    use crate::levels::{check_enabled, feature_level};
    use crate::tables::Tables;
    use crate::{Op, apply};

    fn announced(tables: &mut Tables, id: u64, level: u32) -> ApplyResult {
        let announce = AnnounceNode {
            id,
            peer_address: String::new(),
            mesh_addresses: Vec::new(),
            level,
            version: String::new(),
        };
        let command = Command::new(Timestamp::from_ms(1), "test", announce);
        apply(tables, &command).result
    }

    #[test]
    fn what_the_slowest_node_does_not_know_stays_off() {
        let mut tables = Tables::new();
        assert_eq!(feature_level(&tables), 1, "no node has announced its level");
        let newer = Command {
            version: 2,
            ..Command::new(Timestamp::ZERO, "test", Op::from(RemoveNode { id: 9 }))
        };
        check_enabled(&tables, &newer).unwrap_err();
        announced(&mut tables, 1, 2).unwrap();
        check_enabled(&tables, &newer).unwrap();
        assert_eq!(feature_level(&tables), 2);
        let refused = announced(&mut tables, 2, 1).unwrap_err();
        assert_eq!(refused.code, ErrorCode::MembershipRefused);
        announced(&mut tables, 2, 3).unwrap();
        assert_eq!(feature_level(&tables), 2, "the slowest counts");

        let mut mixed = Tables::new();
        announced(&mut mixed, 1, 1).unwrap();
        announced(&mut mixed, 2, 2).unwrap();
        let refused = check_enabled(&mixed, &newer).unwrap_err();
        assert_eq!(refused.code, ErrorCode::NotEnabled);
        assert!(
            refused.message.contains("RemoveNode"),
            "{}",
            refused.message
        );
        announced(&mut mixed, 1, 2).unwrap();
        check_enabled(&mixed, &newer).unwrap();
    }

    /// Seconds that the invitation of a case lives.
    const LIFE_S: u64 = 600;

    fn digest(of: &str) -> Digest {
        Digest::sha256([of.as_bytes()[0]; 32])
    }

    fn invite(tables: &mut Tables, key: Option<&str>, address: &str, life_s: u64) -> ApplyResult {
        let invite = InviteNode {
            secret: digest("s"),
            key: key.map(digest),
            expires_at: Timestamp::from_ms(life_s * 1000),
            peer_address: address.to_owned(),
        };
        apply(tables, &Command::new(Timestamp::ZERO, "admin", invite)).result
    }

    fn join_at(tables: &mut Tables, key: &str, address: &str, at_s: u64) -> ApplyResult {
        let join = JoinNode {
            id: 1,
            secret: digest("s"),
            key: digest(key),
            peer_address: address.to_owned(),
            level: 2,
        };
        let now = Timestamp::from_ms(at_s * 1000);
        apply(tables, &Command::new(now, "node", join)).result
    }

    #[test]
    fn invitations_are_bound_to_a_key_or_an_address() {
        for (key, address, life_s, refused) in [
            (Some("k"), "", 24 * 3600, ""),
            (Some("k"), "a:1", 24 * 3600, ""),
            (None, "a:1", 3600, ""),
            (None, "a:1", 3601, "minutes must be in 1..=60"),
            (None, "", LIFE_S, "peer_address is needed"),
            (Some("k"), "", 24 * 3600 + 1, "minutes must be in 1..=1440"),
        ] {
            let answer = invite(&mut Tables::new(), key, address, life_s);
            let message = answer.err().map_or_else(String::new, |error| error.message);
            assert_eq!(message.is_empty(), refused.is_empty(), "{message}");
            assert!(message.contains(refused), "{message}");
        }
    }

    #[test]
    fn an_invitation_is_for_one_node_at_one_address_once() {
        for (key, joins) in [
            // The first key is recorded, and no other one joins by the same line.
            (
                None,
                &[
                    ("a", "a:1", 1, ""),
                    ("b", "a:1", 2, "which used it already"),
                ][..],
            ),
            (
                None,
                &[("a", "a:1", 1, ""), ("a", "a:1", 2, "used already")],
            ),
            (
                None,
                &[("a", "b:1", 1, "is for \"a:1\""), ("a", "a:1", 2, "")],
            ),
            (None, &[("a", "a:1", LIFE_S + 1, "has ended")]),
            (
                Some("a"),
                &[("b", "a:1", 1, "bound to another key"), ("a", "a:1", 2, "")],
            ),
            (Some("a"), &[("a", "b:1", 1, "is for \"a:1\"")]),
        ] {
            let mut tables = Tables::new();
            invite(&mut tables, key, "a:1", LIFE_S).unwrap();
            for (by, address, at_s, refused) in joins {
                let answer = join_at(&mut tables, by, address, *at_s);
                let message = answer.err().map_or_else(String::new, |error| error.message);
                assert_eq!(message.is_empty(), refused.is_empty(), "{message}");
                assert!(message.contains(refused), "{message}");
            }
        }
    }

    #[test]
    fn invitations_that_level_1_cannot_read_need_level_2() {
        let op = |key: Option<&str>, address: &str| {
            Op::from(InviteNode {
                secret: digest("s"),
                key: key.map(digest),
                expires_at: Timestamp::from_ms(1),
                peer_address: address.to_owned(),
            })
        };
        assert_eq!(op(Some("k"), "").level(), 1);
        assert_eq!(op(Some("k"), "a:1").level(), 2);
        assert_eq!(op(None, "a:1").level(), 2);
    }
}
