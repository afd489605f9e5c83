//! Network numbers: VNIs and AS numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ParseError;

/// The largest VXLAN network identifier: 24 bits.
pub const VNI_MAX: u32 = (1 << 24) - 1;

/// Base of the machines' private AS numbers. A number of the pool 1..=131072 is added.
pub const ASN_BASE: u32 = 4_210_000_000;

/// A VXLAN network identifier. 0 means no segment.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u32", into = "u32")]
pub struct Vni(u32);

impl Vni {
    /// No segment: the port is isolated.
    pub const NONE: Self = Self(0);

    /// The number itself.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl TryFrom<u32> for Vni {
    type Error = ParseError;
    fn try_from(number: u32) -> Result<Self, ParseError> {
        if number <= VNI_MAX {
            Ok(Self(number))
        } else {
            Err(ParseError::new(
                "VNI",
                &number.to_string(),
                "must be at most 16777215",
            ))
        }
    }
}

impl From<Vni> for u32 {
    fn from(vni: Vni) -> u32 {
        vni.0
    }
}

impl fmt::Display for Vni {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A 32-bit autonomous system number.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Asn(pub u32);

impl fmt::Display for Asn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
