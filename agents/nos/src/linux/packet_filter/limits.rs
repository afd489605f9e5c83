//! The rates of the packet filter, and the sets that hold them.

/// A rate in packets a second, and the packets that may come at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub(super) second: u32,
    pub(super) burst: u32,
}

const fn rate(second: u32, burst: u32) -> Rate {
    Rate { second, burst }
}

/// ARP and ND of one port. The kernel drops idle neighbours after a minute: at this rate one port has
/// some 12,000 of the table's 65,536. The burst is a host with many addresses that comes up.
pub(super) const NEIGHBOURS: Rate = rate(200, 400);
/// ARP and ND that one tunnel brings to the gateway of its segment, from all machines behind it.
pub(super) const REMOTE_NEIGHBOURS: Rate = rate(500, 1000);
/// New MAC addresses of one port. The burst is a host of virtual machines; with [`MAC_S`] a port has
/// 1,700 at most.
pub(super) const MACS: Rate = rate(4, 512);
/// Time for which a MAC address is known, seconds: as long as a bridge keeps a silent one.
pub(super) const MAC_S: u32 = 300;
/// Broadcasts of one port. Each is copied to every leaf of the segment, and one that a machine
/// returns by its other port comes back forever.
pub(super) const BROADCASTS: Rate = rate(500, 1000);
/// The same of multicasts, by which tenants may send streams.
pub(super) const MULTICASTS: Rate = rate(2000, 4000);
/// ICMP of a firewall into the underlay.
pub(super) const PINGS: Rate = rate(100, 200);
/// TCP connections that one port opens to the switch's BGP. A neighbour opens one when its session is
/// down, every few seconds.
pub(super) const SESSIONS: Rate = rate(2, 20);
/// Addresses of hosts that one port has the switch ask for.
pub(super) const ASKING: Rate = rate(200, 200);
/// Time for which an address that was asked for is free, seconds. The kernel keeps one that nobody
/// has for three: with [`ASKING`], a port has 1,000 at most of the table's 65,536.
pub(super) const ASKED_FREE_S: u32 = 4;
/// Entries of the set of MAC addresses. One port has 1,712 at most, and no leaf has the 300 ports that
/// would fill it: in a full one known addresses of other ports would cost like new ones.
pub(super) const MACS_SIZE: u32 = 524_288;
/// Entries of a set of addresses that were asked for. One port or tunnel has 1,200 until the kernel has
/// collected those that have expired.
pub(super) const ASKED_SIZE: u32 = 262_144;

/// A set that packets add entries to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Set {
    pub(super) family: &'static str,
    pub(super) name: &'static str,
    /// Types of the parts of a key, as nft names them.
    pub(super) key: &'static [&'static str],
    pub(super) size: u32,
    /// Time that an entry lasts, seconds.
    pub(super) seconds: u32,
}

const fn set(
    family: &'static str,
    name: &'static str,
    key: &'static [&'static str],
    size: u32,
    seconds: u32,
) -> Set {
    Set {
        family,
        name,
        key,
        size,
        seconds,
    }
}

/// Entries of a set of rates: one for each port or mark, which no packet can invent.
const RATES_SIZE: u32 = 65_536;
/// Time after which the rate of a silent port is forgotten, seconds. It is full again by then.
const RATE_S: u32 = 60;

/// A set of rates by a port's name.
const fn by_port(family: &'static str, name: &'static str) -> Set {
    set(family, name, &["ifname"], RATES_SIZE, RATE_S)
}

/// A set of rates by mark.
const fn by_mark(family: &'static str, name: &'static str) -> Set {
    set(family, name, &["mark"], RATES_SIZE, RATE_S)
}

/// A set of addresses that were asked for.
const fn asked(name: &'static str, address: &'static [&'static str]) -> Set {
    set("inet", name, address, ASKED_SIZE, ASKED_FREE_S)
}

/// The sets of all tables.
pub(super) const SETS: [Set; 13] = [
    by_port("inet", "senders"),
    by_mark("inet", "listeners"),
    by_port("inet", "pingers"),
    by_mark("inet", "askers"),
    by_mark("inet", "callers"),
    asked("asked4", &["mark", "iface_index", "ipv4_addr"]),
    asked("asked6", &["mark", "iface_index", "ipv6_addr"]),
    by_port("bridge", "senders"),
    // Not forgotten before the addresses that it let in.
    set("bridge", "learners", &["ifname"], RATES_SIZE, MAC_S),
    set(
        "bridge",
        "macs",
        &["ifname", "ether_addr"],
        MACS_SIZE,
        MAC_S,
    ),
    set(
        "bridge",
        "flooders",
        &["ifname", "pkt_type"],
        RATES_SIZE,
        RATE_S,
    ),
    by_port("arp", "senders"),
    by_mark("arp", "listeners"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Ports, and ports and tunnels, that may use up their budgets at the same time.
    const PORTS: u32 = 300;
    const PORTS_AND_TUNNELS: u32 = 200;

    #[test]
    fn no_set_is_full_while_every_port_uses_up_its_budget() {
        let of_port = |rate: Rate, seconds: u32| rate.burst + rate.second * seconds;
        assert!(of_port(MACS, MAC_S) * PORTS <= MACS_SIZE);
        // The kernel collects what has expired once a second.
        assert!(of_port(ASKING, ASKED_FREE_S + 1) * PORTS_AND_TUNNELS <= ASKED_SIZE);
        // A rate that is forgotten would be full anew.
        for rate in [
            NEIGHBOURS,
            REMOTE_NEIGHBOURS,
            BROADCASTS,
            MULTICASTS,
            PINGS,
            ASKING,
            SESSIONS,
        ] {
            assert!(rate.burst <= rate.second * RATE_S, "{rate:?}");
        }
        const { assert!(MACS.burst <= MACS.second * MAC_S) };
    }
}
