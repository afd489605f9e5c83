//! The settings of one network that pixie serves.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::client::BmcMatch;
use crate::range::Range;

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
    /// The files of Debian's package `ipxe`. For UEFI it is `snponly.efi`, which uses the firmware's
    /// own network driver: it starts faster, and `ipxe.efi` hangs when it leaves an HTTP boot.
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

/// One network: the values that its clients are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Our own address there: DHCP server identifier, TFTP and HTTP server.
    pub address: Ipv4Addr,
    pub subnet: Ipv4Net,
    /// Addresses for machines. `None` means that machines get no address.
    pub machines: Option<Range>,
    /// Addresses for BMCs. `None` means that BMCs get no address.
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
    /// Base URL of pixie for machines, without a slash at the end.
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
