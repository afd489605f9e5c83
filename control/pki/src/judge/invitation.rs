//! The decision on the invitation of a control node that is shown.

use control_state::ControlNode;
use proto_types::{Digest, Timestamp};

use super::REPEAT_MAX;

/// How far an invitation speaks for a key. The state decides about all but a repetition when the
/// command is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvitationStanding {
    /// This key used it a moment ago, and the answer may have been lost. A second command would be
    /// refused because the invitation is used up.
    Repeated,
    /// Open and bound to no key: the secret is right, and the key may be anybody's.
    Keyless,
    /// Neither.
    Unproven,
}

/// How far an invitation speaks for the key and the secret that are shown.
pub(crate) fn standing(
    node: &ControlNode,
    secret: &Digest,
    key: &Digest,
    now: Timestamp,
) -> InvitationStanding {
    let is_secret = node.secret.as_ref().is_some_and(|s| s.same_as(secret));
    if node.removed_at.is_some() || !is_secret {
        return InvitationStanding::Unproven;
    }
    match (&node.key, node.joined_at) {
        (Some(bound), Some(at)) if bound.same_as(key) && now.since_ms(at) <= REPEAT_MAX => {
            InvitationStanding::Repeated
        }
        (None, None) => InvitationStanding::Keyless,
        _ => InvitationStanding::Unproven,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(of: u8) -> Digest {
        Digest::sha256([of; 32])
    }

    #[test]
    fn an_invitation_speaks_for_one_key() {
        use InvitationStanding::{Keyless, Repeated, Unproven};
        for (key, joined_s, removed_s, shown, at_s, expected) in [
            (None, None, None, (1, 2), 5, Keyless),
            (None, None, None, (9, 2), 5, Unproven),
            (None, None, Some(4), (1, 2), 5, Unproven),
            (Some(2), None, None, (1, 2), 5, Unproven),
            (Some(2), Some(5), None, (1, 2), 6, Repeated),
            (Some(2), Some(5), None, (1, 3), 6, Unproven),
            (Some(2), Some(5), None, (9, 2), 6, Unproven),
            (Some(2), Some(5), Some(6), (1, 2), 6, Unproven),
            (Some(2), Some(5), None, (1, 2), 5 + 121, Unproven),
        ] {
            let at = |seconds: u64| Timestamp::from_ms(seconds * 1000);
            let node = ControlNode {
                id: 2,
                secret: Some(digest(1)),
                key: key.map(digest),
                invited_by: "admin".to_owned(),
                invited_at: at(1),
                expires_at: Some(at(900)),
                joined_at: joined_s.map(at),
                removed_at: removed_s.map(at),
                peer_address: String::new(),
                mesh_addresses: Vec::new(),
                level: 0,
                version: String::new(),
            };
            let (secret, key) = (digest(shown.0), digest(shown.1));
            assert_eq!(
                standing(&node, &secret, &key, at(at_s)),
                expected,
                "{node:?}"
            );
        }
    }
}
