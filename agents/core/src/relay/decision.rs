//! The decision of a relay on each message, without I/O.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proto_bounds::{Buckets, Rate};
use proto_types::MacAddr;
use proto_wire_dhcp::{
    BOOTP_REPLY, BOOTP_REQUEST, ClientFrame, Kind, Message, RelayAgentError, RelayAgentInfo,
    ServerFrame, code,
};

use super::dropped::Dropped;
use super::open_requests::OpenRequests;
use super::settings::RelayConfig;
use crate::config::Config;

/// Requests of one port. Firmware sends about ten messages in a boot, and repeats one without an
/// answer after 4 s. MAC addresses are not counted: a machine could send in the name of another one
/// until that one's requests are dropped at its own port.
const RATE: Rate = Rate {
    per_minute: 60,
    burst_ms: 20_000,
};
/// Ports that are counted at most. More get nothing until others pause.
const PORTS_MAX: usize = 4096;
/// Relays on the way of a request at most, this one included. A client is at the port itself.
const HOPS_MAX: u8 = 4;

/// An answer for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The port that the request came in at.
    pub port: String,
    /// The whole frame.
    pub frame: Vec<u8>,
}

/// The relay of one switch.
#[derive(Debug)]
pub struct Relay {
    switch: String,
    address: Ipv4Addr,
    server: SocketAddr,
    link: Ipv4Addr,
    /// Uplinks and ports towards spines.
    backs: BTreeSet<String>,
    ports: Buckets<String>,
    open: OpenRequests,
}

impl Relay {
    /// The relay of a switch.
    ///
    /// # Errors
    /// When the switch has no IPv4 address for it, or its id cannot be a remote id.
    pub fn new(switch: &str, config: &Config, relay: &RelayConfig) -> Result<Self, String> {
        let own = match config.management_ip {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        };
        let address = relay.address.or(own);
        let address = address.ok_or("relay: no IPv4 address")?;
        let made = Self {
            switch: switch.to_owned(),
            address,
            server: (relay.server, relay.port).into(),
            link: relay.link,
            backs: config.backs().cloned().collect(),
            ports: Buckets::new(PORTS_MAX),
            open: OpenRequests::default(),
        };
        made.info("swp1")
            .map_err(|error| format!("relay: {error}"))?;
        Ok(made)
    }

    /// Own address.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// `true` for a port of the switch that leads to a machine or a firewall.
    pub(super) fn is_front(&self, port: &str) -> bool {
        !self.backs.contains(port)
    }

    /// The boot server.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.server
    }

    fn info(&self, port: &str) -> Result<RelayAgentInfo, RelayAgentError> {
        RelayAgentInfo::new(&self.switch, port, Some(self.link))
    }

    /// The message for the boot server, from a frame that came in at a port. `now_us` is of a
    /// monotonic clock, microseconds.
    ///
    /// # Errors
    /// The reason why nothing is sent.
    pub fn request(&self, port: &str, frame: &[u8], now_us: u64) -> Result<Vec<u8>, Dropped> {
        let frame = ClientFrame::decode(frame).ok_or(Dropped::NoRequest)?;
        if !frame.is_broadcast {
            return Err(Dropped::NoRequest);
        }
        // Before anything is read: a flood costs no more than this.
        let counted = self.ports.count(port.to_owned(), RATE, now_us);
        counted.map_err(|_| Dropped::Rate)?;
        let mut message = Message::decode(frame.payload).map_err(|_| Dropped::Malformed)?;
        let is_answer = matches!(message.kind, Kind::Offer | Kind::Ack | Kind::Nak);
        if message.op != BOOTP_REQUEST || is_answer {
            return Err(Dropped::RogueServer);
        }
        let has_info = message.options.get(code::RELAY_AGENT).is_some();
        if has_info || !message.giaddr.is_unspecified() {
            return Err(Dropped::ForgedRelay);
        }
        // The server answers to `chaddr`: another's would let a machine ask in its name.
        if message.chaddr != frame.source || message.chaddr.0[0] & 1 != 0 {
            return Err(Dropped::ForgedSender);
        }
        message.hops = message.hops.saturating_add(1);
        if message.hops > HOPS_MAX {
            return Err(Dropped::Hops);
        }
        let info = self.info(port).map_err(|_| Dropped::NoPort)?;
        self.open.note(port, message.xid, message.chaddr);
        message.giaddr = self.address;
        message.options.set(code::RELAY_AGENT, info.encode());
        Ok(message.encode())
    }

    /// The frame for a client, from an answer of the boot server. `mac_of` has the MAC address of a
    /// port in the provisioning segment, `None` for any other port.
    ///
    /// # Errors
    /// The reason why nothing is sent.
    pub fn answer(
        &self,
        bytes: &[u8],
        from: SocketAddr,
        mac_of: impl FnOnce(&str) -> Option<MacAddr>,
    ) -> Result<Delivery, Dropped> {
        if from != self.server {
            return Err(Dropped::Stranger);
        }
        let mut message = Message::decode(bytes).map_err(|_| Dropped::Malformed)?;
        if message.op != BOOTP_REPLY {
            return Err(Dropped::Malformed);
        }
        let info = message.options.get(code::RELAY_AGENT).unwrap_or_default();
        let info = RelayAgentInfo::decode(info).map_err(|_| Dropped::OtherRelay)?;
        if message.giaddr != self.address || info.switch() != self.switch {
            return Err(Dropped::OtherRelay);
        }
        let source_mac = mac_of(info.port()).ok_or(Dropped::NoPort)?;
        if !self.open.has(info.port(), message.xid, message.chaddr) {
            return Err(Dropped::Unasked);
        }
        // The client gets none of it (RFC 3046 §2.2).
        message.options.remove(code::RELAY_AGENT);
        let address = match message.ciaddr.is_unspecified() {
            true => message.yiaddr,
            false => message.ciaddr,
        };
        let is_broadcast =
            message.wants_broadcast() || message.kind == Kind::Nak || address.is_unspecified();
        let (target_mac, target) = match is_broadcast {
            true => (MacAddr([0xff; 6]), Ipv4Addr::BROADCAST),
            false => (message.chaddr, address),
        };
        let server = message.options.address(code::SERVER_ID);
        let own = match self.server.ip() {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
        };
        let frame = ServerFrame {
            source_mac,
            target_mac,
            source: server.unwrap_or(own),
            target,
        };
        Ok(Delivery {
            port: info.port().to_owned(),
            frame: frame.encode(&message.encode()).ok_or(Dropped::Malformed)?,
        })
    }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
