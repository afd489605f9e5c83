//! VRFs and the BGP instances in them.

use std::fmt;
use std::num::NonZeroU32;

use super::name::WordError;

/// Name of a VRF of ours: `Vrf` and a number from 1 to 4294967295 (`Vrf27`), as SONiC demands.
/// A VRF with another name is foreign, and never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VrfName(NonZeroU32);

/// The VRF that a BGP instance is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BgpVrf {
    /// The default VRF: the underlay, and the ports of firewalls.
    Default,
    /// A tenant's VRF.
    Tenant(VrfName),
}

impl VrfName {
    /// Name of the VRF with this number.
    #[must_use]
    pub fn numbered(number: NonZeroU32) -> Self {
        Self(number)
    }

    /// Reads a name.
    ///
    /// # Errors
    /// When it is not `Vrf` and a number without leading zeros.
    pub fn new(name: &str) -> Result<Self, WordError> {
        let number = name
            .strip_prefix("Vrf")
            .filter(|n| n.bytes().all(|b| b.is_ascii_digit()) && !n.starts_with('0'))
            .and_then(|n| n.parse().ok());
        number.map(Self).ok_or_else(|| WordError {
            word: name.to_owned(),
            expected: "a VRF of ours: Vrf and a number",
        })
    }

    /// The number in the name.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for VrfName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vrf{}", self.0)
    }
}

impl fmt::Display for BgpVrf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Tenant(name) => name.fmt(f),
        }
    }
}
