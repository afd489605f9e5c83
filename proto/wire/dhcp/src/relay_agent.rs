//! The relay agent information (RFC 3046): the port that a request came in at.

use std::net::Ipv4Addr;

/// Sub-option: the port of the relay (RFC 3046 §2.0).
const CIRCUIT_ID: u8 = 1;
/// Sub-option: the relay itself (RFC 3046 §2.0).
const REMOTE_ID: u8 = 2;
/// Sub-option: the client's subnet, where it is not that of `giaddr` (RFC 3527).
const LINK_SELECTION: u8 = 5;
/// Longest name of a port or a switch, bytes. Longer ones are refused.
const NAME_LEN_MAX: usize = 64;

/// Option 82 as the agent of a switch writes it, and no other: names are text, each sub-option
/// occurs once, and unknown ones are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayAgentInfo {
    /// Circuit id: name of the port that the request came in at.
    port: String,
    /// Remote id: id of the switch.
    switch: String,
    /// An address of the client's subnet. `None` means that of `giaddr`.
    link: Option<Ipv4Addr>,
}

/// The reason why an option 82 is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelayAgentError {
    /// A sub-option is longer than the option.
    #[error("the option ends within a sub-option")]
    Short,
    /// A sub-option occurs twice.
    #[error("sub-option {0} occurs twice")]
    Twice(u8),
    /// A sub-option that no agent of a switch writes.
    #[error("sub-option {0} is unknown")]
    Unknown(u8),
    /// Circuit id or remote id is missing.
    #[error("sub-option {0} is missing")]
    Missing(u8),
    /// A name is empty, too long or has other characters than those of names.
    #[error("sub-option {0} is not a name")]
    Name(u8),
    /// The link selection is not one address of a host.
    #[error("the link selection is not an address")]
    Link,
}

impl RelayAgentInfo {
    /// Checks the names.
    ///
    /// # Errors
    /// [`RelayAgentError::Name`] if one is not a name.
    pub fn new(switch: &str, port: &str, link: Option<Ipv4Addr>) -> Result<Self, RelayAgentError> {
        if link.is_some_and(|link| link.is_unspecified() || link.is_broadcast()) {
            return Err(RelayAgentError::Link);
        }
        Ok(Self {
            port: name(CIRCUIT_ID, port.as_bytes())?,
            switch: name(REMOTE_ID, switch.as_bytes())?,
            link,
        })
    }

    /// Name of the port.
    #[must_use]
    pub fn port(&self) -> &str {
        &self.port
    }

    /// Id of the switch.
    #[must_use]
    pub fn switch(&self) -> &str {
        &self.switch
    }

    /// An address of the client's subnet. `None` means that of `giaddr`.
    #[must_use]
    pub fn link(&self) -> Option<Ipv4Addr> {
        self.link
    }

    /// Decodes the bytes of option 82.
    ///
    /// # Errors
    /// When [`Self::encode`] does not write such bytes.
    pub fn decode(mut bytes: &[u8]) -> Result<Self, RelayAgentError> {
        let (mut port, mut switch, mut link) = (None, None, None);
        while let [code, rest @ ..] = bytes {
            let (len, rest) = rest.split_first().ok_or(RelayAgentError::Short)?;
            let split = rest.split_at_checked(usize::from(*len));
            let (value, rest) = split.ok_or(RelayAgentError::Short)?;
            let is_new = match *code {
                CIRCUIT_ID => port.replace(name(*code, value)?).is_none(),
                REMOTE_ID => switch.replace(name(*code, value)?).is_none(),
                LINK_SELECTION => {
                    let octets: [u8; 4] = value.try_into().map_err(|_| RelayAgentError::Link)?;
                    link.replace(Ipv4Addr::from(octets)).is_none()
                }
                code => return Err(RelayAgentError::Unknown(code)),
            };
            if !is_new {
                return Err(RelayAgentError::Twice(*code));
            }
            bytes = rest;
        }
        let port = port.ok_or(RelayAgentError::Missing(CIRCUIT_ID))?;
        let switch = switch.ok_or(RelayAgentError::Missing(REMOTE_ID))?;
        Self::new(&switch, &port, link)
    }

    /// The bytes of option 82.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let link = self.link.map(|link| link.octets());
        let parts = [
            (CIRCUIT_ID, Some(self.port.as_bytes())),
            (REMOTE_ID, Some(self.switch.as_bytes())),
            (LINK_SELECTION, link.as_ref().map(<[u8; 4]>::as_slice)),
        ];
        let mut out = Vec::new();
        for (code, value) in parts {
            let Some(value) = value else { continue };
            out.push(code);
            out.push(u8::try_from(value.len()).unwrap_or(u8::MAX));
            out.extend_from_slice(value);
        }
        out
    }
}

/// Checks a name: of 1 to 64 letters, digits and the marks that names of ports and hosts have. It
/// goes into logs and is compared with names of switches.
fn name(code: u8, bytes: &[u8]) -> Result<String, RelayAgentError> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_/:".contains(byte);
    let fits = (1..=NAME_LEN_MAX).contains(&bytes.len()) && bytes.iter().all(is_plain);
    let text = std::str::from_utf8(bytes).ok().filter(|_| fits);
    text.map(str::to_owned).ok_or(RelayAgentError::Name(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for link in [None, Some(Ipv4Addr::new(10, 77, 1, 0))] {
            let info = RelayAgentInfo::new("leaf1", "swp1", link).unwrap();
            assert_eq!(RelayAgentInfo::decode(&info.encode()), Ok(info));
        }
        let info = RelayAgentInfo::new("leaf1", "swp1", None).unwrap();
        assert_eq!(info.encode(), b"\x01\x04swp1\x02\x05leaf1");
    }

    #[test]
    fn other_options_are_refused_by_reason() {
        use RelayAgentError::{Link, Missing, Name, Short, Twice, Unknown};
        let rows: [(&[u8], RelayAgentError); 12] = [
            (b"", Missing(1)),
            (b"\x01\x04swp1", Missing(2)),
            (b"\x02\x05leaf1", Missing(1)),
            (b"\x01\x04swp", Short),
            (b"\x01\x04swp1\x02", Short),
            (b"\x01\x04swp1\x01\x04swp2\x02\x01a", Twice(1)),
            (b"\x01\x00\x02\x05leaf1", Name(1)),
            (b"\x01\x04sw\n1\x02\x05leaf1", Name(1)),
            (b"\x01\x04swp1\x02\x02\xc3\xa9", Name(2)),
            (b"\x01\x04swp1\x02\x05leaf1\x05\x02\x0a\x00", Link),
            (b"\x01\x04swp1\x02\x05leaf1\x05\x04\x00\x00\x00\x00", Link),
            (b"\x01\x04swp1\x02\x05leaf1\x09\x00", Unknown(9)),
        ];
        for (bytes, why) in rows {
            assert_eq!(RelayAgentInfo::decode(bytes), Err(why), "{bytes:?}");
        }
        let long = "a".repeat(NAME_LEN_MAX + 1);
        assert_eq!(RelayAgentInfo::new(&long, "swp1", None), Err(Name(2)));
    }
}
