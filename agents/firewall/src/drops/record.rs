use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::rule::{protocol_name, protocol_number};

/// A packet that the kernel has reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DropRecord {
    /// Time of the packet, milliseconds since 1970.
    pub time_ms: u64,
    /// `true` if the packet was dropped, `false` if a rule with a log accepted it.
    pub is_drop: bool,
    /// Interface that it came in by. Empty if it is gone.
    pub input: String,
    /// Interface that it would leave by.
    pub output: String,
    /// Source.
    pub source: IpAddr,
    /// Destination.
    pub destination: IpAddr,
    /// Length of the whole packet, bytes.
    pub length: u32,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// IP protocol.
    pub protocol: u8,
    /// Source port of TCP, UDP and SCTP.
    pub source_port: Option<u16>,
    /// Destination port of TCP, UDP and SCTP.
    pub destination_port: Option<u16>,
    /// Type of ICMP.
    pub icmp_type: Option<u8>,
}

impl DropRecord {
    /// The record in the words of the kernel's log lines, as the droptailer shows them.
    #[must_use]
    pub fn fields(&self) -> BTreeMap<String, String> {
        let action = if self.is_drop { "Drop" } else { "Accept" };
        let protocol = match self.protocol {
            protocol_number::ICMP6 => "ICMPv6".to_owned(),
            other => protocol_name(other).to_uppercase(),
        };
        let mut fields: Vec<(&str, String)> = vec![
            ("ACTION", action.to_owned()),
            ("IN", self.input.clone()),
            ("OUT", self.output.clone()),
            ("SRC", self.source.to_string()),
            ("DST", self.destination.to_string()),
            ("LEN", self.length.to_string()),
            ("TTL", self.ttl.to_string()),
            ("PROTO", protocol),
        ];
        fields.extend(self.source_port.map(|port| ("SPT", port.to_string())));
        fields.extend(self.destination_port.map(|port| ("DPT", port.to_string())));
        fields.extend(self.icmp_type.map(|kind| ("TYPE", kind.to_string())));
        let owned = fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        owned.collect()
    }

    /// The record as one line.
    #[must_use]
    pub fn line(&self) -> String {
        let verdict = if self.is_drop { "dropped" } else { "accepted" };
        let (protocol, length) = (protocol_name(self.protocol), self.length);
        let port =
            |port: Option<u16>| port.map_or_else(String::new, |port| format!(" port {port}"));
        let kind = self
            .icmp_type
            .map_or_else(String::new, |kind| format!(" type {kind}"));
        format!(
            "{}.{:03} {verdict} {protocol}{kind} from {}{} to {}{} in {} out {} length {length}",
            self.time_ms / 1000,
            self.time_ms % 1000,
            self.source,
            port(self.source_port),
            self.destination,
            port(self.destination_port),
            self.input,
            self.output,
        )
    }

    /// Time of the packet.
    #[must_use]
    pub fn time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.time_ms.min(u64::from(u32::MAX) * 1000))
    }
}
