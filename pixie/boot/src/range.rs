//! Address ranges, and the pool that each belongs to.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::lease::Pool;

/// Largest range, addresses: those of a /16. A larger one is refused.
const RANGE_LEN_MAX: u32 = 1 << 16;

/// First and last address of a pool, both part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    first: Ipv4Addr,
    last: Ipv4Addr,
}

/// The reason why a range is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    #[error("{first} - {last} is not a range: the last address is below the first")]
    Reversed { first: Ipv4Addr, last: Ipv4Addr },
    #[error("{first} - {last} has more than {RANGE_LEN_MAX} addresses")]
    Long { first: Ipv4Addr, last: Ipv4Addr },
    #[error("{address} is not a host address of {subnet}")]
    Outside { address: Ipv4Addr, subnet: Ipv4Net },
}

impl Range {
    /// Checks a range inside a subnet.
    ///
    /// # Errors
    /// [`RangeError`] if it is reversed, too long, or has an end that is not a host address of the
    /// subnet.
    pub fn new(first: Ipv4Addr, last: Ipv4Addr, subnet: Ipv4Net) -> Result<Self, RangeError> {
        if first > last {
            return Err(RangeError::Reversed { first, last });
        }
        // An offer searches the range from its start. The bound keeps that short while the pool is
        // full.
        if u32::from(last) - u32::from(first) >= RANGE_LEN_MAX {
            return Err(RangeError::Long { first, last });
        }
        for address in [first, last] {
            let host = address != subnet.network() && address != subnet.broadcast();
            if !subnet.contains(&address) || !host {
                return Err(RangeError::Outside { address, subnet });
            }
        }
        Ok(Self { first, last })
    }

    /// `true` if the address is in the range.
    #[must_use]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    /// All addresses, in order.
    pub fn iter(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        (u32::from(self.first)..=u32::from(self.last)).map(Ipv4Addr::from)
    }
}

/// A range with the pool whose leases it gives.
#[derive(Debug, Clone, Copy)]
pub struct PoolRange<'a> {
    pub pool: Pool,
    pub range: &'a Range,
}
