//! The line by which a new control node joins: `mmi1.` + base64url (no padding) of JSON.
//!
//! It has the join ticket, and the facts about the cluster that the new node writes into its
//! configuration. The ticket pins the SHA-256 of the cluster's roots, so that the new node trusts
//! nothing of the network, and its secret is what the cluster trusts.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::IdentityError;
use crate::ticket::{FILE_LEN_MAX, JoinTicket};

/// First characters of the line.
pub const PREFIX: &str = "mmi1.";
/// Longest text of one field, bytes.
const TEXT_LEN_MAX: usize = 255;

/// The invitation of a control node. Secret.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeInvitation {
    /// The ticket by which the node joins.
    pub ticket: JoinTicket,
    /// Name of the cluster.
    pub cluster: String,
    /// Id of the cluster.
    pub cluster_id: Uuid,
    /// Trust domain of the cluster.
    pub trust_domain: String,
    /// The only address for other control nodes, host:port, with which the node may join. Empty means
    /// any.
    pub peer_address: String,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    ticket: String,
    cluster: String,
    cluster_id: Uuid,
    trust_domain: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    peer_address: String,
}

impl NodeInvitation {
    /// Reads the line. White space around it, and line breaks within it, are ignored: terminals wrap
    /// long lines.
    ///
    /// # Errors
    /// It is too long, cut, or something else.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        if text.len() > FILE_LEN_MAX {
            return Err(IdentityError::Invitation("too long"));
        }
        let line: String = text.split_whitespace().collect();
        let body = line
            .strip_prefix(PREFIX)
            .ok_or(IdentityError::Invitation("it does not begin with mmi1."))?;
        let json = URL_SAFE_NO_PAD
            .decode(body)
            .map_err(|_| IdentityError::Invitation("cut, or not base64url"))?;
        let wire: Wire =
            serde_json::from_slice(&json).map_err(|_| IdentityError::Invitation("cut"))?;
        let texts = [&wire.cluster, &wire.trust_domain, &wire.peer_address];
        let is_plain =
            |text: &&String| text.len() <= TEXT_LEN_MAX && !text.chars().any(char::is_control);
        if !texts.iter().all(is_plain) || wire.cluster.is_empty() {
            return Err(IdentityError::Invitation("a malformed name"));
        }
        Ok(Self {
            ticket: JoinTicket::parse(&wire.ticket)?,
            cluster: wire.cluster,
            cluster_id: wire.cluster_id,
            trust_domain: wire.trust_domain,
            peer_address: wire.peer_address,
        })
    }

    /// The line, without its end. Secret.
    pub fn encode(&self) -> String {
        let wire = Wire {
            ticket: self.ticket.encode(),
            cluster: self.cluster.clone(),
            cluster_id: self.cluster_id,
            trust_domain: self.trust_domain.clone(),
            peer_address: self.peer_address.clone(),
        };
        let json = serde_json::to_vec(&wire).unwrap_or_default();
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
    }
}

impl fmt::Debug for NodeInvitation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The ticket hides its secret by itself.
        f.debug_struct("NodeInvitation")
            .field("ticket", &self.ticket)
            .field("cluster", &self.cluster)
            .field("cluster_id", &self.cluster_id)
            .field("trust_domain", &self.trust_domain)
            .field("peer_address", &self.peer_address)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ticket::SECRET_LEN;

    fn invitation() -> NodeInvitation {
        NodeInvitation {
            ticket: JoinTicket {
                id: "node-2".into(),
                secret: [7; SECRET_LEN],
                roots: vec!["ab".repeat(32)],
                control: vec!["10.90.0.1:4443".into()],
                tpm: false,
            },
            cluster: "metalmesh".into(),
            cluster_id: Uuid::from_u128(5),
            trust_domain: "metalmesh.local".into(),
            peer_address: "control-2.example:4444".into(),
        }
    }

    #[test]
    fn lines_round_trip_even_when_they_were_wrapped() {
        let whole = invitation();
        let line = whole.encode();
        assert!(line.bytes().all(|byte| byte.is_ascii_graphic()), "{line}");
        let (left, right) = line.split_at(80);
        for text in [
            line.clone(),
            format!("  {line}\n"),
            format!("{left}\r\n{right}\n"),
        ] {
            assert_eq!(NodeInvitation::parse(&text).unwrap(), whole);
        }
        assert!(format!("{whole:?}").contains("<redacted>"));
    }

    #[test]
    fn others_are_refused() {
        let line = invitation().encode();
        let steering = NodeInvitation {
            cluster: "a\u{1b}b".into(),
            ..invitation()
        };
        let nameless = NodeInvitation {
            cluster: String::new(),
            ..invitation()
        };
        let long = "x".repeat(FILE_LEN_MAX + 1);
        for text in [
            "",
            "mmi1.",
            "mmi1.e30",
            &line[..line.len() - 7],
            &invitation().ticket.encode(),
            &steering.encode(),
            &nameless.encode(),
            &long,
        ] {
            assert!(NodeInvitation::parse(text).is_err(), "{text:.40}");
        }
    }
}
