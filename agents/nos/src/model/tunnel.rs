/// The way of a segment to the other switches.
///
/// Privacy is a property of a switch: a frame that arrives over a tunnel does not say whether it is
/// from a private port. What private ports may reach over a tunnel is decided here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tunnel {
    /// Every port of the segment reaches the tunnel, and is reached over it.
    #[default]
    Open,
    /// As a private port: only ports that are not private reach the tunnel.
    Private,
    /// There is none: the segment ends at this switch.
    Absent,
}
