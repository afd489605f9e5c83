//! Numbers of autonomous systems.

use std::fmt;
use std::num::NonZeroU32;

/// Number of an autonomous system, 1 to 4294967295 (RFC 6793; 0 is reserved, RFC 7607).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asn(pub NonZeroU32);

/// The autonomous system that a neighbour must be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemoteAs {
    /// Any but our own.
    External,
    /// Our own.
    Internal,
    /// This one.
    Number(Asn),
}

impl Asn {
    /// Reads a number in decimal. `None` if it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }
}

impl RemoteAs {
    /// Reads the words of FRR: `external`, `internal` or a number. `None` for other words.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "external" => Some(Self::External),
            "internal" => Some(Self::Internal),
            number => Asn::parse(number).map(Self::Number),
        }
    }
}

impl fmt::Display for Asn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RemoteAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::External => f.write_str("external"),
            Self::Internal => f.write_str("internal"),
            Self::Number(asn) => asn.fmt(f),
        }
    }
}
