//! Relays: which requests they may pass on.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use proto_wire_dhcp::{Kind, Message, RelayAgentError, RelayAgentInfo, code};

/// The port that a request came in at, as the relay says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayedPort {
    /// Id of the switch.
    pub switch: String,
    /// Name of its port.
    pub port: String,
}

/// The reason why a request is refused before it is read as one of a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RelayRefusal {
    #[error("the sender is no known relay")]
    UnknownRelay,
    #[error("the relay names another address than its own")]
    OtherAddress,
    #[error("option 82 is missing or malformed")]
    Info(#[source] RelayAgentError),
    #[error("the relay speaks for another switch")]
    OtherSwitch,
    #[error("a client of the network speaks as a relay")]
    Forged,
    #[error("the request came without a relay")]
    Unrelayed,
}

impl RelayRefusal {
    /// The reason as a key of a counter.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::UnknownRelay => "unknown_relay",
            Self::OtherAddress => "other_address",
            Self::Info(_) => "malformed_option_82",
            Self::OtherSwitch => "other_switch",
            Self::Forged => "forged_relay",
            Self::Unrelayed => "unrelayed",
        }
    }
}

/// The relays that may pass requests on: the switches of the partition, by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Relays(BTreeMap<Ipv4Addr, String>);

impl Relays {
    /// Takes the switches by the address of their relay. Two at one address are both left out:
    /// neither can be told from the other.
    #[must_use]
    pub fn new(relays: impl IntoIterator<Item = (Ipv4Addr, String)>) -> Self {
        let mut found: BTreeMap<Ipv4Addr, Option<String>> = BTreeMap::new();
        for (address, switch) in relays {
            let entry = found.entry(address).or_insert_with(|| Some(switch.clone()));
            if entry.as_ref() != Some(&switch) {
                *entry = None;
            }
        }
        let unique = found
            .into_iter()
            .filter_map(|(address, switch)| Some((address, switch?)));
        Self(unique.collect())
    }

    /// Checks a request that a relay passed on, and returns the port that the relay names.
    ///
    /// # Errors
    /// The reason why it is refused.
    pub fn check(&self, from: Ipv4Addr, request: &Message) -> Result<RelayedPort, RelayRefusal> {
        let known = self.0.get(&from).ok_or(RelayRefusal::UnknownRelay)?;
        if request.giaddr != from {
            return Err(RelayRefusal::OtherAddress);
        }
        let info = request.options.get(code::RELAY_AGENT).unwrap_or_default();
        let info = RelayAgentInfo::decode(info).map_err(RelayRefusal::Info)?;
        if info.switch() != known {
            return Err(RelayRefusal::OtherSwitch);
        }
        Ok(RelayedPort {
            switch: info.switch().to_owned(),
            port: info.port().to_owned(),
        })
    }
}

/// Checks a request that came from the network itself, where every client is behind a relay. Only a
/// client that uses its address already, and asks the server for more time, comes without one.
///
/// # Errors
/// The reason why it is refused.
pub fn check_direct(request: &Message) -> Result<(), RelayRefusal> {
    let has_info = request.options.get(code::RELAY_AGENT).is_some();
    if has_info || !request.giaddr.is_unspecified() {
        return Err(RelayRefusal::Forged);
    }
    // A client with an address renews, asks and leaves by unicast (RFC 2131 §4.4.5).
    let has_address = !request.ciaddr.is_unspecified();
    match request.kind {
        Kind::Request | Kind::Inform | Kind::Release if has_address => Ok(()),
        _ => Err(RelayRefusal::Unrelayed),
    }
}

/// The address that decides the client's subnet: that of the relay, or the one that it names
/// (RFC 3527). `None` for a client that is not behind a relay.
#[must_use]
pub fn link_of(request: &Message) -> Option<Ipv4Addr> {
    if request.giaddr.is_unspecified() {
        return None;
    }
    let info = request.options.get(code::RELAY_AGENT);
    let info = info.and_then(|bytes| RelayAgentInfo::decode(bytes).ok());
    let link = info.and_then(|info| info.link());
    Some(link.unwrap_or(request.giaddr))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::tests::message;

    const LEAF: Ipv4Addr = Ipv4Addr::new(10, 90, 0, 11);

    fn relayed(switch: &str, port: &str) -> Message {
        let link = Some(Ipv4Addr::new(10, 77, 1, 0));
        let info = RelayAgentInfo::new(switch, port, link).unwrap();
        let mut message = message(Kind::Discover, &[(code::RELAY_AGENT, &info.encode())]);
        message.giaddr = LEAF;
        message
    }

    #[test]
    fn only_a_known_relay_speaks_and_only_for_its_own_switch() {
        let relays = Relays::new([(LEAF, "leaf1".to_owned())]);
        let good = relayed("leaf1", "swp1");
        let port = relays.check(LEAF, &good).unwrap();
        assert_eq!(
            (port.switch.as_str(), port.port.as_str()),
            ("leaf1", "swp1")
        );
        assert_eq!(link_of(&good), Some(Ipv4Addr::new(10, 77, 1, 0)));
        let other = Ipv4Addr::new(10, 90, 0, 12);
        let check = |from, message: &Message| relays.check(from, message).unwrap_err().as_str();
        assert_eq!(check(other, &good), "unknown_relay");
        let mut elsewhere = good.clone();
        elsewhere.giaddr = other;
        assert_eq!(check(LEAF, &elsewhere), "other_address");
        assert_eq!(check(LEAF, &relayed("leaf2", "swp1")), "other_switch");
        let mut bare = good.clone();
        bare.options.remove(code::RELAY_AGENT);
        assert_eq!(check(LEAF, &bare), "malformed_option_82");
        assert_eq!(link_of(&bare), Some(LEAF));
        let twins = Relays::new(["leaf1", "leaf2"].map(|switch| (LEAF, switch.to_owned())));
        let refused = twins.check(LEAF, &good).unwrap_err();
        assert_eq!(refused, RelayRefusal::UnknownRelay);
    }

    #[test]
    fn without_a_relay_only_a_client_with_an_address_is_heard() {
        let refused = |message: &Message| check_direct(message).err().map(|why| why.as_str());
        assert_eq!(refused(&relayed("leaf1", "swp1")), Some("forged_relay"));
        for kind in [Kind::Discover, Kind::Request, Kind::Decline, Kind::Offer] {
            assert_eq!(refused(&message(kind, &[])), Some("unrelayed"), "{kind:?}");
        }
        let mut renewing = message(Kind::Request, &[]);
        renewing.ciaddr = Ipv4Addr::new(10, 77, 1, 100);
        assert_eq!(refused(&renewing), None);
        renewing.giaddr = LEAF;
        assert_eq!(refused(&renewing), Some("forged_relay"));
    }
}
