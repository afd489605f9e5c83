//! Network interfaces: list, carrier, addresses and routes.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::net::if_::if_nametoindex;
use proto_types::MacAddr;
use rtnetlink::{Handle, LinkUnspec, RouteMessageBuilder};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Directory of all interfaces in sysfs.
const SYS_NET: &str = "/sys/class/net";
/// Interval of looks at the carrier.
const POLL: Duration = Duration::from_millis(50);

/// An Ethernet interface of real or virtual hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Kernel name, "eth0".
    pub name: String,
    /// MAC address.
    pub mac: MacAddr,
}

/// A connection to the kernel's rtnetlink.
#[derive(Debug)]
pub struct Netlink {
    handle: Handle,
    _connection: JoinSet<()>,
}

impl Netlink {
    /// Opens the netlink socket.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn open() -> Result<Self> {
        let (connection, handle, _) = rtnetlink::new_connection().context("rtnetlink")?;
        let mut task = JoinSet::new();
        task.spawn(connection);
        Ok(Self {
            handle,
            _connection: task,
        })
    }

    /// Sets an interface up, and has it accept all multicast: cards filter LLDP frames otherwise.
    ///
    /// # Errors
    /// When the interface is gone, or its driver fails.
    pub async fn up(&self, name: &str) -> Result<()> {
        let link = LinkUnspec::new_with_index(index(name)?)
            .up()
            .allmulticast(true)
            .build();
        self.handle
            .link()
            .set(link)
            .execute()
            .await
            .with_context(|| format!("{name} up"))
    }

    /// Adds an address. No error if the interface has it already.
    ///
    /// # Errors
    /// When the interface is gone, or the kernel refuses.
    pub async fn add_address(&self, name: &str, address: Ipv4Addr, prefix: u8) -> Result<()> {
        let ip = IpAddr::V4(address);
        self.handle
            .address()
            .add(index(name)?, ip, prefix)
            .replace()
            .execute()
            .await
            .with_context(|| format!("address {address} on {name}"))
    }

    /// Sets the default route.
    ///
    /// # Errors
    /// When the interface is gone, or the kernel refuses.
    pub async fn default_route(&self, name: &str, gateway: Ipv4Addr) -> Result<()> {
        let route = RouteMessageBuilder::<Ipv4Addr>::new()
            .gateway(gateway)
            .output_interface(index(name)?)
            .build();
        let added = self.handle.route().add(route).replace().execute().await;
        added.with_context(|| format!("default route via {gateway}"))
    }
}

fn index(name: &str) -> Result<u32> {
    if_nametoindex(name).with_context(|| format!("no interface {name}"))
}

/// All interfaces with a device, which excludes loopback, bridges and tunnels; sorted by name.
#[must_use]
pub fn list() -> Vec<Link> {
    list_in(Path::new(SYS_NET))
}

fn list_in(dir: &Path) -> Vec<Link> {
    let mut out = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.join("device").exists() {
            continue;
        }
        let mac = fs::read_to_string(path.join("address")).unwrap_or_default();
        // Addresses of InfiniBand have 20 bytes and do not parse: its links are left out.
        if let Ok(mac) = mac.trim().parse() {
            out.push(Link {
                name: entry.file_name().to_string_lossy().into_owned(),
                mac,
            });
        }
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    out
}

/// `true` if the interface has a carrier.
#[must_use]
pub fn has_carrier(name: &str) -> bool {
    let path = Path::new(SYS_NET).join(name).join("carrier");
    // The kernel refuses the read (EINVAL) while the interface is down. That is no carrier either.
    fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
}

/// Limits of the wait for carriers.
#[derive(Debug, Clone, Copy)]
pub struct CarrierLimits {
    /// Longest wait for the first carrier.
    pub first: Duration,
    /// Wait for the other carriers once the first is there. Unused ports never get one, and must
    /// not cost each boot the whole limit.
    pub others: Duration,
    /// Longest wait for the wanted interface once the first carrier is there. Twisted pairs of 10
    /// Gbit/s negotiate for several seconds after their driver has reset them.
    pub wanted: Duration,
}

impl CarrierLimits {
    /// `true` if no other carrier is waited for, a time after the first one.
    fn are_over(
        &self,
        up: &[Link],
        links: &[Link],
        wanted: Option<&Link>,
        waited: Duration,
    ) -> bool {
        let limit = match wanted {
            Some(link) if !up.contains(link) => self.wanted,
            _ => self.others,
        };
        up.len() == links.len() || waited >= limit
    }
}

/// Waits until interfaces have a carrier: longest for `wanted`, the one that will be used if it is
/// there. Returns those with a carrier.
pub async fn wait_carrier(
    links: &[Link],
    wanted: Option<&Link>,
    limits: CarrierLimits,
) -> Vec<Link> {
    let deadline = Instant::now() + limits.first;
    let mut first = None;
    loop {
        let up: Vec<Link> = links
            .iter()
            .filter(|l| has_carrier(&l.name))
            .cloned()
            .collect();
        let now = Instant::now();
        if !up.is_empty() {
            let waited = now - *first.get_or_insert(now);
            if limits.are_over(&up, links, wanted, waited) {
                return up;
            }
        } else if now >= deadline {
            return up;
        }
        tokio::time::sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wanted_interface_is_waited_for() {
        let links: Vec<Link> = (0..3u8)
            .map(|n| Link {
                name: format!("eth{n}"),
                mac: MacAddr([2, 0, 0, 0, 0, n]),
            })
            .collect();
        let limits = CarrierLimits {
            first: Duration::from_secs(60),
            others: Duration::from_millis(200),
            wanted: Duration::from_secs(20),
        };
        let boot = Some(&links[1]);
        for (up, wanted, waited_ms, is_over) in [
            (0..1, None, 100, false),
            (0..1, None, 200, true),
            (0..1, boot, 200, false),
            (0..1, boot, 19_999, false),
            (0..1, boot, 20_000, true),
            (0..2, boot, 100, false),
            (0..2, boot, 200, true),
            (0..3, boot, 0, true),
        ] {
            let waited = Duration::from_millis(waited_ms);
            let over = limits.are_over(&links[up.clone()], &links, wanted, waited);
            assert_eq!(over, is_over, "{up:?} {wanted:?} {waited:?}");
        }
    }

    #[test]
    fn only_hardware_counts() {
        let dir = tempfile::tempdir().unwrap();
        for (name, device) in [
            ("lo", false),
            ("eth1", true),
            ("eth0", true),
            ("br0", false),
        ] {
            let path = dir.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("address"), "52:54:00:00:00:01\n").unwrap();
            if device {
                fs::create_dir(path.join("device")).unwrap();
            }
        }
        let names: Vec<String> = list_in(dir.path()).into_iter().map(|l| l.name).collect();
        assert_eq!(names, ["eth0", "eth1"]);
    }
}
