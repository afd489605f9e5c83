//! Numbers with a range.

use std::fmt;

use super::error::ModelError;

/// Ethernet MTU, bytes without the Ethernet header: 1280 to 9216.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mtu(u32);

/// VLAN id of a segment inside this switch: 1 to 4094 (IEEE 802.1Q).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vlan(u16);

/// Routing table of a VRF. Not one of the kernel's own: 0, 253 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table(u32);

impl Mtu {
    /// Smallest MTU, bytes: IPv6 needs it (RFC 8200 §5).
    pub const MIN: u32 = 1280;
    /// Largest MTU, bytes: the jumbo frames of common switches.
    pub const MAX: u32 = 9216;
    /// The MTU of Ethernet.
    pub const ETHERNET: Self = Self(1500);

    /// Checks a number of bytes.
    ///
    /// # Errors
    /// When it is out of range.
    pub fn new(bytes: u32) -> Result<Self, ModelError> {
        (Self::MIN..=Self::MAX)
            .contains(&bytes)
            .then_some(Self(bytes))
            .ok_or(ModelError::Mtu(bytes))
    }

    /// The MTU in range that is nearest to a number of bytes.
    #[must_use]
    pub fn nearest(bytes: u32) -> Self {
        Self(bytes.clamp(Self::MIN, Self::MAX))
    }

    /// The number of bytes.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Vlan {
    /// Checks a number.
    ///
    /// # Errors
    /// When it is 0 or above 4094.
    pub fn new(number: u16) -> Result<Self, ModelError> {
        (1..=4094)
            .contains(&number)
            .then_some(Self(number))
            .ok_or(ModelError::Vlan(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0
    }
}

impl Table {
    /// Checks a number.
    ///
    /// # Errors
    /// When it is one of the kernel's own tables. A VRF on the main table would route into the
    /// underlay.
    pub fn new(number: u32) -> Result<Self, ModelError> {
        let is_own = number != 0 && !(253..=255).contains(&number);
        is_own
            .then_some(Self(number))
            .ok_or(ModelError::Table(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Vlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
