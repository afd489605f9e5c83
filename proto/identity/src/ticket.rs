//! The join ticket file: one line, `mmt1.` + base64url (no padding) of JSON. Mode 0600.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::IdentityError;

/// First characters of a ticket file.
pub const PREFIX: &str = "mmt1.";
/// Largest ticket file that is looked at, bytes.
pub const FILE_LEN_MAX: usize = 16 * 1024;
/// Length of a ticket's secret, bytes.
pub const SECRET_LEN: usize = 32;
/// Most roots, and most addresses, in a ticket.
pub const LIST_LEN_MAX: usize = 16;

/// A join ticket: an operator hands it to an agent, which can join with it once.
#[derive(Clone, PartialEq, Eq)]
pub struct JoinTicket {
    /// Public name of the ticket.
    pub id: String,
    /// Proof of the right to join; control keeps only its SHA-256.
    pub secret: [u8; SECRET_LEN],
    /// SHA-256 of the roots' DER, hex.
    pub roots: Vec<String>,
    /// Where control is, host:port.
    pub control: Vec<String>,
    /// `true` if the ticket is bound to a TPM, which must answer the agent's challenge.
    pub tpm: bool,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    id: String,
    secret: String,
    roots: Vec<String>,
    control: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tpm: bool,
}

impl JoinTicket {
    /// Reads a ticket file's content.
    pub fn parse(text: &str) -> Result<Self, IdentityError> {
        if text.len() > FILE_LEN_MAX {
            return Err(IdentityError::Ticket("too long"));
        }
        let body = text
            .trim()
            .strip_prefix(PREFIX)
            .ok_or(IdentityError::Ticket("unknown prefix"))?;
        let json = URL_SAFE_NO_PAD
            .decode(body)
            .map_err(|_| IdentityError::Ticket("not base64url"))?;
        let wire: Wire =
            serde_json::from_slice(&json).map_err(|_| IdentityError::Ticket("not its JSON"))?;
        let secret = URL_SAFE_NO_PAD
            .decode(&wire.secret)
            .ok()
            .and_then(|s| <[u8; SECRET_LEN]>::try_from(s).ok())
            .ok_or(IdentityError::Ticket("secret is not 32 bytes"))?;
        let is_plain = |text: &String| !text.chars().any(char::is_control);
        if wire.id.is_empty() || wire.id.len() > 64 || !is_plain(&wire.id) {
            return Err(IdentityError::Ticket("malformed id"));
        }
        let hash = |h: &String| h.len() == 64 && h.bytes().all(|b| b.is_ascii_hexdigit());
        if wire.roots.is_empty() || wire.roots.len() > LIST_LEN_MAX || !wire.roots.iter().all(hash)
        {
            return Err(IdentityError::Ticket("malformed roots"));
        }
        if wire.control.len() > LIST_LEN_MAX {
            return Err(IdentityError::Ticket("too many addresses"));
        }
        // They are shown at a terminal before the ticket is used.
        if !wire.control.iter().all(is_plain) {
            return Err(IdentityError::Ticket("malformed addresses"));
        }
        Ok(Self {
            id: wire.id,
            secret,
            roots: wire.roots,
            control: wire.control,
            tpm: wire.tpm,
        })
    }

    /// The ticket file's content, one line without its end. Secret.
    pub fn encode(&self) -> String {
        let wire = Wire {
            id: self.id.clone(),
            secret: URL_SAFE_NO_PAD.encode(self.secret),
            roots: self.roots.clone(),
            control: self.control.clone(),
            tpm: self.tpm,
        };
        let json = serde_json::to_vec(&wire).unwrap_or_default();
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
    }
}

impl fmt::Debug for JoinTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinTicket")
            .field("id", &self.id)
            .field("secret", &"<redacted>")
            .field("roots", &self.roots)
            .field("control", &self.control)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket() -> JoinTicket {
        JoinTicket {
            id: "t1".into(),
            secret: [7; SECRET_LEN],
            roots: vec!["ab".repeat(32)],
            control: vec!["10.90.0.1:4443".into()],
            tpm: true,
        }
    }

    #[test]
    fn round_trips_and_hides_its_secret() {
        let t = ticket();
        assert_eq!(JoinTicket::parse(&format!("{}\n", t.encode())).unwrap(), t);
        assert!(format!("{t:?}").contains("<redacted>"));
    }

    #[test]
    fn refuses() {
        let no_roots = JoinTicket {
            roots: vec![],
            ..ticket()
        }
        .encode();
        let bad_root = JoinTicket {
            roots: vec!["zz".repeat(32)],
            ..ticket()
        }
        .encode();
        let no_id = JoinTicket {
            id: String::new(),
            ..ticket()
        }
        .encode();
        let steering = JoinTicket {
            control: vec!["\u{1b}[2J:4443".into()],
            ..ticket()
        }
        .encode();
        let cut = {
            let mut s = ticket().encode();
            s.truncate(s.len() - 5);
            s
        };
        let long = "x".repeat(FILE_LEN_MAX + 1);
        for bad in [
            "", "mmt1.", "mmt2.e30", "mmt1.e30", "mmt1.!", &no_roots, &bad_root, &no_id, &cut,
            &long, &steering,
        ] {
            assert!(JoinTicket::parse(bad).is_err(), "{bad:.40}");
        }
    }
}
