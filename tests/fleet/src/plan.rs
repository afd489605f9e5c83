//! Who is where: names, numbers and addresses of everything, from its number alone.

use std::net::Ipv4Addr;

use proto_types::MacAddr;
use uuid::Uuid;

/// Machines below one pair of leaves.
pub(crate) const RACK: usize = 40;
/// Partitions at most: each has two second bytes of 127.0.0.0/8 to itself.
pub(crate) const PARTITIONS_MAX: usize = 100;
/// Machines of a partition at most; a boot server gives out 16 bits of addresses.
pub(crate) const MACHINES_PER_PARTITION_MAX: usize = 10_000;
/// Second byte of the addresses of a partition's machines, and of its BMCs.
const MACHINES_NET: u8 = 10;
const BMCS_NET: u8 = 120;
/// Spreads what speaks IPMI over the racks: with a hundred it has no common divisor.
const IPMI_STEP: usize = 37;
/// Fixed, so that a machine has the same UUID in every run.
const UUID_HIGH: u64 = 0xf1ee_7000_0000_4000;
const UUID_LOW: u64 = 0x8000_0000_0000_0000;

/// A NIC and where its cable ends.
#[derive(Debug, Clone)]
pub(crate) struct Cable {
    pub(crate) mac: MacAddr,
    /// Number of the leaf in its partition.
    pub(crate) leaf: usize,
    pub(crate) port: String,
}

/// One machine.
#[derive(Debug, Clone)]
pub(crate) struct MachinePlan {
    /// From 0, over all partitions.
    pub(crate) number: usize,
    pub(crate) partition: usize,
    pub(crate) uuid: Uuid,
    pub(crate) cables: [Cable; 2],
    /// Where its BMC is.
    pub(crate) bmc: Ipv4Addr,
    /// It speaks IPMI; else Redfish.
    pub(crate) has_ipmi: bool,
}

/// How machines are spread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) machines: usize,
    pub(crate) partitions: usize,
    /// Of a hundred BMCs so many speak IPMI.
    pub(crate) ipmi_percent: usize,
}

impl Plan {
    /// Machines of one partition; the first ones have one more when it does not come out even.
    pub(crate) fn machines_of(self, partition: usize) -> usize {
        self.machines / self.partitions + usize::from(partition < self.machines % self.partitions)
    }

    pub(crate) fn leaves_of(self, partition: usize) -> usize {
        self.machines_of(partition).div_ceil(RACK) * 2
    }

    /// All machines, partition by partition.
    pub(crate) fn all(self) -> Vec<MachinePlan> {
        let mut all = Vec::with_capacity(self.machines);
        for partition in 0..self.partitions {
            for place in 0..self.machines_of(partition) {
                all.push(machine(all.len(), (partition, place), self.ipmi_percent));
            }
        }
        all
    }
}

fn machine(number: usize, (partition, place): (usize, usize), ipmi_percent: usize) -> MachinePlan {
    let bytes = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes();
    let cable = |side: usize| {
        let [_, b, c, d] = bytes;
        Cable {
            mac: MacAddr([2, 0xfe, u8::try_from(side).unwrap_or_default(), b, c, d]),
            leaf: place / RACK * 2 + side,
            port: format!("swp{}", place % RACK + 1),
        }
    };
    MachinePlan {
        number,
        partition,
        uuid: Uuid::from_u64_pair(UUID_HIGH, UUID_LOW | number as u64),
        cables: [cable(0), cable(1)],
        bmc: address(BMCS_NET, partition, place + 256),
        has_ipmi: number * IPMI_STEP % 100 < ipmi_percent,
    }
}

/// Address number `place` of a partition's network.
fn address(net: u8, partition: usize, place: usize) -> Ipv4Addr {
    let second = net.saturating_add(u8::try_from(partition).unwrap_or(u8::MAX));
    let [_, _, c, d] = u32::try_from(place).unwrap_or(u32::MAX).to_be_bytes();
    Ipv4Addr::new(127, second, c, d)
}

/// The boot server of a partition.
pub(crate) fn pixie(partition: usize) -> Ipv4Addr {
    address(MACHINES_NET, partition, 2)
}

/// Its DHCP relay.
pub(crate) fn relay(partition: usize) -> Ipv4Addr {
    address(MACHINES_NET, partition, 3)
}

/// First and last address that the boot server gives out.
pub(crate) fn range(partition: usize) -> [Ipv4Addr; 2] {
    let last = 2 * MACHINES_PER_PARTITION_MAX + 255;
    [256, last].map(|place| address(MACHINES_NET, partition, place))
}

pub(crate) fn partition_name(partition: usize) -> String {
    format!("fleet-{}", partition + 1)
}

pub(crate) fn leaf_name(partition: usize, leaf: usize) -> String {
    format!("leaf-{}-{}", partition + 1, leaf + 1)
}

/// Underlay address of a leaf.
pub(crate) fn vtep(partition: usize, leaf: usize) -> Ipv4Addr {
    let [c, d] = u16::try_from(leaf + 1).unwrap_or(u16::MAX).to_be_bytes();
    Ipv4Addr::new(10, u8::try_from(partition).unwrap_or(u8::MAX), c, d)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn everything_is_there_once() {
        let plan = Plan {
            machines: 205,
            partitions: 3,
            ipmi_percent: 25,
        };
        let all = plan.all();
        assert_eq!(all.len(), 205);
        let count = |of: usize| all.iter().filter(|m| m.partition == of).count();
        assert_eq!([count(0), count(1), count(2)], [69, 68, 68]);
        let first = &all[..100];
        assert_eq!(first.iter().filter(|m| m.has_ipmi).count(), 25);
        let distinct = |keys: Vec<String>| keys.into_iter().collect::<BTreeSet<_>>().len();
        assert_eq!(
            distinct(all.iter().map(|m| m.uuid.to_string()).collect()),
            205
        );
        assert_eq!(
            distinct(all.iter().map(|m| m.bmc.to_string()).collect()),
            205
        );
        let cables = all.iter().flat_map(|m| {
            let of = m.partition;
            m.cables
                .iter()
                .map(move |c| (format!("{of}/{}/{}", c.leaf, c.port), c))
        });
        let (ports, macs): (Vec<_>, Vec<_>) = cables.map(|(p, c)| (p, c.mac.to_string())).unzip();
        assert_eq!((distinct(ports), distinct(macs)), (410, 410));
        assert!(all.iter().all(|m| {
            m.cables
                .iter()
                .all(|c| c.leaf < plan.leaves_of(m.partition))
        }));
    }
}
