//! The kernel command line: pixie's address, and the settings of one boot.

use std::net::Ipv4Addr;
use std::time::Duration;

/// Default wait for LLDP neighbours: slightly more than the 30 s between two frames of a switch
/// (IEEE 802.1AB msgTxInterval).
const LLDP_WAIT_DEFAULT: Duration = Duration::from_secs(32);
/// Upper bound of `metalmesh.lldp_wait`, seconds. Larger values are cut to it, so that a typing
/// error cannot keep a machine from registering.
const LLDP_WAIT_MAX_S: u64 = 120;
/// Arguments that the installed system inherits, because they describe the machine and not the
/// boot image.
const INHERITED: [&str; 6] = [
    "console",
    "no_timer_check",
    "nomodeset",
    "earlyprintk",
    "tsc",
    "pci",
];

/// The arguments of `/proc/cmdline` that hammer reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cmdline {
    /// `metalmesh.pixie=http://host:port`.
    pub pixie: Option<String>,
    /// `metalmesh.mac=…` from pixie, or `BOOTIF=01-52-54-…` from another boot loader; lower case
    /// with colons. `None` if neither is a MAC address.
    pub boot_mac: Option<String>,
    /// `ip=…` with a static address. `None` means DHCP.
    pub static_ip: Option<StaticIp>,
    /// `metalmesh.lldp_wait=<seconds>`.
    pub lldp_wait: Duration,
    /// `metalmesh.debug`: `true` if debug messages are logged.
    pub debug: bool,
    /// Arguments for the installed kernel, in order.
    pub inherited: Vec<String>,
}

/// `ip=<client>:<server>:<gateway>:<netmask>:<host>:<device>:<autoconf>:<dns>`, in the kernel's
/// syntax (Documentation/admin-guide/nfs/nfsroot.rst).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticIp {
    /// The machine's address.
    pub address: Ipv4Addr,
    /// Length of the prefix, bits.
    pub prefix: u8,
    /// Default gateway.
    pub gateway: Option<Ipv4Addr>,
    /// Interface name. Empty means the first interface with a carrier.
    pub device: String,
    /// DNS servers, at most two.
    pub dns: Vec<Ipv4Addr>,
}

impl Cmdline {
    /// Parses the line. Unknown arguments are ignored: they are for the kernel or other programs.
    #[must_use]
    pub fn parse(line: &str) -> Self {
        let mut out = Self {
            pixie: None,
            boot_mac: None,
            static_ip: None,
            lldp_wait: LLDP_WAIT_DEFAULT,
            debug: false,
            inherited: Vec::new(),
        };
        for word in line.split_whitespace() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match key {
                "metalmesh.pixie" => out.pixie = Some(value.trim_end_matches('/').to_string()),
                "metalmesh.lldp_wait" => {
                    if let Ok(seconds) = value.parse::<u64>() {
                        out.lldp_wait = Duration::from_secs(seconds.min(LLDP_WAIT_MAX_S));
                    }
                }
                "metalmesh.debug" => out.debug = true,
                // A second, unreadable argument must not hide a good first one: some loaders add
                // a BOOTIF of their own format to pixie's line.
                "metalmesh.mac" | "BOOTIF" => {
                    out.boot_mac = boot_mac(value).or_else(|| out.boot_mac.take());
                }
                "ip" => out.static_ip = static_ip(value),
                _ if INHERITED.contains(&key) => out.inherited.push(word.to_string()),
                _ => {}
            }
        }
        out
    }
}

/// Parses a MAC address. PXELINUX writes the hardware type 01 before it, iPXE's `${mac}` does not.
fn boot_mac(value: &str) -> Option<String> {
    let text = value.replace('-', ":").to_lowercase();
    let mac = if text.len() == 20 {
        text.strip_prefix("01:")?
    } else {
        text.as_str()
    };
    mac.parse::<proto_types::MacAddr>()
        .ok()
        .map(|m| m.to_string())
}

fn static_ip(value: &str) -> Option<StaticIp> {
    let fields: Vec<&str> = value.split(':').collect();
    let field = |at: usize| fields.get(at).copied().unwrap_or("");
    // `ip=dhcp`, `ip=on` and `ip=any` have a word where the address would be.
    let address = field(0).parse().ok()?;
    // The kernel derives a missing netmask from the class of the address. That would be wrong on
    // most networks today, so DHCP decides instead.
    let netmask: Ipv4Addr = field(3).parse().ok()?;
    let prefix = u8::try_from(netmask.to_bits().leading_ones()).ok()?;
    Some(StaticIp {
        address,
        prefix,
        gateway: field(2).parse().ok(),
        device: field(5).to_string(),
        dns: (7..9).filter_map(|at| field(at).parse().ok()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_pixie_writes() {
        let c = Cmdline::parse(
            "initrd=x metalmesh.pixie=http://10.77.1.2:8080/ console=tty0 console=ttyS0,115200 \
             metalmesh.mac=52:54:00:AB:01:02 BOOTIF=nonsense no_timer_check quiet metalmesh.lldp_wait=5",
        );
        assert_eq!(c.pixie.as_deref(), Some("http://10.77.1.2:8080"));
        assert_eq!(c.boot_mac.as_deref(), Some("52:54:00:ab:01:02"));
        assert_eq!(
            c.inherited,
            ["console=tty0", "console=ttyS0,115200", "no_timer_check"]
        );
        assert_eq!(c.lldp_wait, Duration::from_secs(5));
    }

    #[test]
    fn boot_interface_in_each_spelling() {
        for (text, want) in [
            ("01-52-54-00-ab-01-02", Some("52:54:00:ab:01:02")),
            ("52:54:00:AB:01:02", Some("52:54:00:ab:01:02")),
            ("52-54-00-ab-01-02", Some("52:54:00:ab:01:02")),
            ("20-52-54-00-ab-01-02", None),
            ("eth0", None),
        ] {
            assert_eq!(boot_mac(text).as_deref(), want, "{text}");
        }
    }

    #[test]
    fn static_addresses() {
        let ip = static_ip("10.0.0.5::10.0.0.1:255.255.255.0:m1:eth0:none:1.1.1.1").unwrap();
        assert_eq!((ip.prefix, ip.device.as_str()), (24, "eth0"));
        assert_eq!(ip.gateway, Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(ip.dns, [Ipv4Addr::new(1, 1, 1, 1)]);
        for dhcp in ["dhcp", "on", "eth0:dhcp", "", "::::::"] {
            assert_eq!(static_ip(dhcp), None, "{dhcp}");
        }
    }
}
