//! VXLAN network identifiers.

use std::fmt;
use std::num::NonZeroU32;

use thiserror::Error;

/// VXLAN network identifier of a segment: 24 bits, not zero (RFC 7348 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vni(NonZeroU32);

/// A number that is not a VNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} is not a VNI: 1 to 16777215")]
pub struct VniError(pub u32);

impl Vni {
    /// Largest VNI. [`Vni::new`] refuses a larger number.
    pub const MAX: u32 = 0x00ff_ffff;

    /// Checks a number.
    ///
    /// # Errors
    /// When it is zero or has more than 24 bits.
    pub fn new(number: u32) -> Result<Self, VniError> {
        NonZeroU32::new(number)
            .filter(|n| n.get() <= Self::MAX)
            .map(Self)
            .ok_or(VniError(number))
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Vni {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
