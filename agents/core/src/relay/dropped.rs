/// The reason why a message is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Dropped {
    /// Not a request to a DHCP server by broadcast.
    #[error("no broadcast request")]
    NoRequest,
    /// Not a DHCP message.
    #[error("malformed message")]
    Malformed,
    /// An answer from a port of machines: no server is there.
    #[error("an answer from a machine")]
    RogueServer,
    /// A request that names a relay, from a port of machines: no relay is there (RFC 3046 §2.1).
    #[error("a request with a relay's data from a machine")]
    ForgedRelay,
    /// A request in the name of another MAC address than its frame's.
    #[error("a request for another MAC address")]
    ForgedSender,
    /// Too many relays.
    #[error("too many hops")]
    Hops,
    /// Too many requests of one port.
    #[error("too many requests")]
    Rate,
    /// An answer from another host than the boot server.
    #[error("an answer from a stranger")]
    Stranger,
    /// An answer that came in at a port of machines: the boot server is not there.
    #[error("an answer at a port of machines")]
    ForgedServer,
    /// An answer for another relay, or without the data that this one gave.
    #[error("an answer for another relay")]
    OtherRelay,
    /// An answer for a port that no machine without a tenant is at now.
    #[error("an answer for a port outside of the provisioning segment")]
    NoPort,
    /// An answer to a request that no machine at the port made.
    #[error("an answer that nobody asked for")]
    Unasked,
}

impl Dropped {
    /// The reason as a metric's label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoRequest => "no_request",
            Self::Malformed => "malformed",
            Self::RogueServer => "rogue_server",
            Self::ForgedRelay => "forged_relay",
            Self::ForgedSender => "forged_sender",
            Self::Hops => "hops",
            Self::Rate => "rate",
            Self::Stranger => "stranger",
            Self::ForgedServer => "forged_server",
            Self::OtherRelay => "other_relay",
            Self::NoPort => "no_port",
            Self::Unasked => "unasked",
        }
    }
}
