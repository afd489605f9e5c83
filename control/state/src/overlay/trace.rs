//! A packet's way from a machine to an address.

/// The way of a packet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketTrace {
    /// Its hops. The last one may be where it stops.
    pub hops: Vec<TraceHop>,
    /// `true` if it arrives, by all that is known.
    pub arrives: bool,
    /// Where it ends, and why.
    pub verdict: String,
}

/// A hop of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceHop {
    /// Kind of the object: `machine`, `port`, `leaf`, `tunnel`, `firewall`.
    pub kind: &'static str,
    /// The object.
    pub at: String,
    /// The event there.
    pub detail: String,
    /// `true` if the packet cannot pass. Another cable may be tried after a port.
    pub stops: bool,
}

impl TraceHop {
    pub(super) fn pass(kind: &'static str, at: impl ToString, detail: impl Into<String>) -> Self {
        let (at, detail) = (at.to_string(), detail.into());
        Self {
            kind,
            at,
            detail,
            stops: false,
        }
    }

    pub(super) fn stop(kind: &'static str, at: impl ToString, detail: impl Into<String>) -> Self {
        Self {
            stops: true,
            ..Self::pass(kind, at, detail)
        }
    }
}
