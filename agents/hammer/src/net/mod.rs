//! The installer's network: one interface with an address and a route to pixie.

pub mod clock;
pub mod dhcp;
pub mod http;
pub mod links;
pub mod resolve;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::task::JoinSet;

use crate::cmdline::{Cmdline, StaticIp};
use dhcp::Lease;
use links::{CarrierLimits, Link, Netlink};
use resolve::Resolver;

/// Waits for carriers. Without the first one the set-up of the network fails.
const CARRIER_LIMITS: CarrierLimits = CarrierLimits {
    first: Duration::from_secs(60),
    others: Duration::from_millis(200),
    wanted: Duration::from_secs(20),
};
/// Shortest pause after a failed renewal of the lease.
const RENEW_RETRY_MIN: Duration = Duration::from_secs(15);

/// The configured network.
#[derive(Debug, Clone)]
pub struct Network {
    /// The interface with the address.
    pub link: Link,
    /// Its address.
    pub address: Ipv4Addr,
    /// NTP servers of the lease.
    pub ntp: Vec<Ipv4Addr>,
    /// Resolver with the DNS servers of the lease or of the command line.
    pub resolver: Resolver,
    /// The lease to renew. `None` for a static address.
    pub lease: Option<Lease>,
}

/// Brings all interfaces up and configures an address on one.
///
/// # Errors
/// When there is no interface, no carrier, or no DHCP server that answers.
pub async fn bring_up(cmdline: &Cmdline) -> Result<Network> {
    let netlink = Netlink::open()?;
    netlink.up("lo").await?;
    let links = links::list();
    ensure!(
        !links.is_empty(),
        "this machine has no network interface that a driver knows"
    );
    // All of them, not only the boot interface: LLDP must hear the neighbours of every cable.
    for link in &links {
        if let Err(error) = netlink.up(&link.name).await {
            tracing::warn!(
                nic = link.name,
                error = format!("{error:#}"),
                "interface stays down"
            );
        }
    }
    let up = links::wait_carrier(&links, wanted(&links, cmdline), CARRIER_LIMITS).await;
    ensure!(
        !up.is_empty(),
        "no interface has a carrier: is a cable plugged in?"
    );
    if let Some(ip) = &cmdline.static_ip {
        return static_address(&netlink, &up, ip).await;
    }
    let candidates = candidates(up, cmdline.boot_mac.as_deref());
    let (link, lease) = first_lease(candidates).await?;
    netlink
        .add_address(&link.name, lease.address, lease.prefix)
        .await?;
    if let Some(router) = lease.router {
        netlink.default_route(&link.name, router).await?;
    }
    Ok(Network {
        link,
        address: lease.address,
        ntp: lease.ntp.clone(),
        resolver: resolver(&lease.dns),
        lease: Some(lease),
    })
}

/// The interface that the machine booted from, or that has the static address. `None` if the command
/// line names none of these interfaces.
fn wanted<'l>(links: &'l [Link], cmdline: &Cmdline) -> Option<&'l Link> {
    let is_wanted = |link: &&Link| match &cmdline.static_ip {
        Some(ip) => link.name == ip.device,
        None => cmdline.boot_mac.as_deref() == Some(link.mac.to_string().as_str()),
    };
    links.iter().find(is_wanted)
}

/// The interfaces to ask for an address on: only the firmware's boot interface if it is known and
/// has a carrier, because other cables may lead into networks with DHCP servers of their own.
fn candidates(up: Vec<Link>, boot_mac: Option<&str>) -> Vec<Link> {
    let boot: Vec<Link> = up
        .iter()
        .filter(|l| boot_mac == Some(l.mac.to_string().as_str()))
        .cloned()
        .collect();
    if boot.is_empty() { up } else { boot }
}

async fn first_lease(links: Vec<Link>) -> Result<(Link, Lease)> {
    let mut asking = JoinSet::new();
    for link in links {
        asking.spawn(async move {
            let lease = dhcp::acquire(&link.name, link.mac).await;
            (link, lease)
        });
    }
    let mut last = None;
    while let Some(done) = asking.join_next().await {
        match done? {
            // The first lease is taken. Dropping the set ends the other attempts; their offers
            // expire at their servers.
            (link, Ok(lease)) => return Ok((link, lease)),
            (_, Err(error)) => last = Some(error),
        }
    }
    Err(last.context("no interface to request an address on")?)
}

async fn static_address(netlink: &Netlink, up: &[Link], ip: &StaticIp) -> Result<Network> {
    let wanted = |l: &&Link| ip.device.is_empty() || l.name == ip.device;
    let Some(link) = up.iter().find(wanted).cloned() else {
        bail!(
            "interface {:?} of the kernel command line has no carrier",
            ip.device
        );
    };
    netlink
        .add_address(&link.name, ip.address, ip.prefix)
        .await?;
    if let Some(gateway) = ip.gateway {
        netlink.default_route(&link.name, gateway).await?;
    }
    Ok(Network {
        link,
        address: ip.address,
        ntp: Vec::new(),
        resolver: resolver(&ip.dns),
        lease: None,
    })
}

fn resolver(dns: &[Ipv4Addr]) -> Resolver {
    Resolver::new(dns.iter().copied().map(IpAddr::V4).collect())
}

/// Renews the lease for as long as the process runs. A free machine waits for weeks; without
/// renewal the server would give its address to another one.
pub async fn run_renewal(link: Link, mut lease: Lease) {
    loop {
        // RFC 2131 §4.4.5: T1, the time of the first renewal, is half of the lease time.
        let mut pause = Duration::from_secs(u64::from(lease.lease_s) / 2);
        let retry = (pause / 4).max(RENEW_RETRY_MIN);
        loop {
            tokio::time::sleep(pause).await;
            match dhcp::renew(&link.name, link.mac, &lease).await {
                Ok(new) if new.address == lease.address => {
                    lease = new;
                    break;
                }
                // Sessions to control are bound to the old address; it stays until the reboot.
                Ok(new) => {
                    tracing::warn!(old = %lease.address, new = %new.address, "lease names another address; ignored");
                }
                Err(error) => tracing::warn!(error = format!("{error:#}"), "lease not renewed"),
            }
            // Retried beyond the end of the lease too, against RFC 2131 §4.4.5: without its address
            // the machine is out of control's reach until somebody cuts its power.
            pause = retry;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(n: u8) -> Link {
        Link {
            name: format!("eth{n}"),
            mac: proto_types::MacAddr([2, 0, 0, 0, 0, n]),
        }
    }

    #[test]
    fn the_command_line_names_the_interface_to_wait_for() {
        let links = [link(0), link(1)];
        for (line, found) in [
            ("BOOTIF=01-02-00-00-00-00-01", Some(&links[1])),
            ("BOOTIF=01-02-00-00-00-00-09", None),
            ("ip=10.0.0.5::10.0.0.1:255.255.255.0::eth1", Some(&links[1])),
            ("ip=10.0.0.5::10.0.0.1:255.255.255.0::", None),
            ("quiet", None),
        ] {
            assert_eq!(wanted(&links, &Cmdline::parse(line)), found, "{line}");
        }
    }

    #[test]
    fn the_boot_interface_goes_alone() {
        let up = vec![link(0), link(1)];
        assert_eq!(candidates(up.clone(), Some("02:00:00:00:00:01")), [link(1)]);
        assert_eq!(candidates(up.clone(), Some("02:00:00:00:00:09")), up);
        assert_eq!(candidates(up.clone(), None), up);
    }
}
