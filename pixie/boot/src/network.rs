//! The facts of one network that pixie serves.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::client::BmcMatch;

/// Addresses in one range at most: a /16's worth.
const RANGE_LEN_MAX: u32 = 1 << 16;

/// First and last address of a pool, both part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    first: Ipv4Addr,
    last: Ipv4Addr,
}

/// A range that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    #[error("{first} - {last} is no range: the last address comes first")]
    Reversed { first: Ipv4Addr, last: Ipv4Addr },
    #[error("{first} - {last} has more than {RANGE_LEN_MAX} addresses")]
    Long { first: Ipv4Addr, last: Ipv4Addr },
    #[error("{address} is not a host address of {subnet}")]
    Outside { address: Ipv4Addr, subnet: Ipv4Net },
}

impl Range {
    /// A range inside a subnet.
    ///
    /// # Errors
    /// When it is reversed, too long, or touches anything but host addresses of the subnet.
    pub fn new(first: Ipv4Addr, last: Ipv4Addr, subnet: Ipv4Net) -> Result<Self, RangeError> {
        if first > last {
            return Err(RangeError::Reversed { first, last });
        }
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

    #[must_use]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    /// All addresses, in order.
    pub fn iter(&self) -> impl Iterator<Item = Ipv4Addr> + use<> {
        (u32::from(self.first)..=u32::from(self.last)).map(Ipv4Addr::from)
    }
}

/// Names of the boot programs, as files of the asset directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootFiles {
    /// For BIOS, by TFTP.
    pub bios: Option<String>,
    /// For 64-bit x86 UEFI, by TFTP.
    pub efi64: Option<String>,
    /// For 32-bit x86 UEFI, by TFTP.
    pub efi32: Option<String>,
    /// For 64-bit ARM UEFI, by TFTP.
    pub arm64: Option<String>,
    /// For UEFI HTTP boot on 64-bit x86: iPXE.
    pub http_efi64: Option<String>,
    /// For UEFI HTTP boot on 64-bit ARM: iPXE.
    pub http_arm64: Option<String>,
    /// A unified kernel image that UEFI HTTP boot on 64-bit x86 loads in place of iPXE.
    pub http_uki: Option<String>,
}

impl Default for BootFiles {
    /// What Debian's package `ipxe` has. For UEFI the one that goes on with the firmware's own
    /// driver: it starts faster, and `ipxe.efi` hangs when it leaves an HTTP boot.
    fn default() -> Self {
        Self {
            bios: Some("undionly.kpxe".into()),
            efi64: Some("snponly.efi".into()),
            efi32: None,
            arm64: None,
            http_efi64: Some("snponly.efi".into()),
            http_arm64: None,
            http_uki: None,
        }
    }
}

/// One network: what is told to its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Our own address there: DHCP server identifier, TFTP and HTTP server.
    pub address: Ipv4Addr,
    pub subnet: Ipv4Net,
    /// Addresses for machines; without it they are given none.
    pub machines: Option<Range>,
    /// Addresses for BMCs; without it BMCs are given none.
    pub bmcs: Option<Range>,
    pub bmc_match: BmcMatch,
    pub router: Option<Ipv4Addr>,
    pub dns: Vec<Ipv4Addr>,
    pub ntp: Vec<Ipv4Addr>,
    pub domain: Option<String>,
    pub lease_time_s: u32,
    pub http_port: u16,
    pub files: BootFiles,
}

impl Network {
    /// Where machines reach pixie by HTTP, without a slash at the end.
    #[must_use]
    pub fn http_base(&self) -> String {
        format!("http://{}:{}", self.address, self.http_port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_host_addresses_of_their_subnet_only() {
        let subnet: Ipv4Net = "10.77.1.0/24".parse().unwrap();
        let range = |first: &str, last: &str| {
            Range::new(first.parse().unwrap(), last.parse().unwrap(), subnet)
        };
        let good = range("10.77.1.100", "10.77.1.102").unwrap();
        assert_eq!(good.iter().count(), 3);
        assert!(good.contains("10.77.1.102".parse().unwrap()));
        assert!(!good.contains("10.77.1.103".parse().unwrap()));
        for (first, last) in [
            ("10.77.1.9", "10.77.1.8"),
            ("10.77.1.0", "10.77.1.8"),
            ("10.77.1.200", "10.77.1.255"),
            ("10.77.1.200", "10.77.2.20"),
            ("10.0.0.0", "10.77.1.8"),
        ] {
            assert!(range(first, last).is_err(), "{first}-{last}");
        }
    }
}
