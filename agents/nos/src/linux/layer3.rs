//! Addresses, rules and routes as the kernel describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::address::{AddressAttribute, AddressMessage, AddressProtocol};
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteType};
use rtnetlink::packet_route::rule::{RuleAttribute, RuleMessage};

/// The mark of addresses that the agent has set (`IFA_PROTO`, Linux 5.18). Numbers up to 3 are the
/// kernel's.
pub(super) const OUR_ADDRESS: AddressProtocol = AddressProtocol::Other(77);

/// Table of the switch's own addresses.
const LOCAL_TABLE: u8 = 255;

/// The layer 3 of a namespace as far as it matters.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer3 {
    /// By device index, without the link-local ones of the kernel.
    addresses: BTreeMap<u32, Vec<Address>>,
    /// `true` if the rule for VRFs stands before the one for the table `local`, in both families.
    pub(super) is_l3mdev_first: bool,
    /// Tables that end with an unreachable default, in both families.
    guarded: BTreeSet<u32>,
}

/// An address of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// The address with the length of its prefix.
    pub(super) address: IpNet,
    /// `true` if the agent has set it.
    pub(super) is_ours: bool,
}

/// The rules of one address family that matter to VRFs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Priority of the first rule for VRFs.
    pub(super) l3mdev: Option<u32>,
    /// Rules for the table `local` with their priorities.
    pub(super) local: Vec<(u32, RuleMessage)>,
    /// `false` if the kernel does not have the family.
    has_family: bool,
}

impl Layer3 {
    pub(super) fn new(
        addresses: &[AddressMessage],
        rules: &[RuleMessage],
        routes: &[RouteMessage],
    ) -> Self {
        let mut out = Self::default();
        for (index, address) in addresses.iter().filter_map(address) {
            out.addresses.entry(index).or_default().push(address);
        }
        let families = [AddressFamily::Inet, AddressFamily::Inet6];
        let mut is_first = families.map(|family| Rules::read(rules, family).is_l3mdev_first());
        out.is_l3mdev_first = is_first.iter_mut().all(|is_first| *is_first);
        let [v4, v6] = families.map(|family| guarded(routes, family));
        let has_v6 = Rules::read(rules, AddressFamily::Inet6).has_family;
        out.guarded = v4
            .into_iter()
            .filter(|t| !has_v6 || v6.contains(t))
            .collect();
        out
    }

    /// Addresses of a device.
    pub(super) fn addresses(&self, index: u32) -> &[Address] {
        self.addresses.get(&index).map_or(&[], Vec::as_slice)
    }

    /// `true` if a table ends with an unreachable default.
    pub(super) fn is_guarded(&self, table: u32) -> bool {
        self.guarded.contains(&table)
    }
}

impl Rules {
    /// Reads the rules of one family.
    pub(super) fn read(rules: &[RuleMessage], family: AddressFamily) -> Self {
        let mut out = Self::default();
        for rule in rules.iter().filter(|rule| rule.header.family == family) {
            out.has_family = true;
            let mut priority = 0;
            let mut is_l3mdev = false;
            for attribute in &rule.attributes {
                match attribute {
                    RuleAttribute::Priority(number) => priority = *number,
                    RuleAttribute::L3MDev(is_on) => is_l3mdev = *is_on,
                    _ => {}
                }
            }
            if is_l3mdev {
                out.l3mdev = Some(out.l3mdev.map_or(priority, |first| first.min(priority)));
            } else if rule.header.table == LOCAL_TABLE {
                out.local.push((priority, rule.clone()));
            }
        }
        out
    }

    /// `true` if packets of VRFs are looked up in their table first. A kernel without the family
    /// routes none of its packets.
    fn is_l3mdev_first(&self) -> bool {
        let is_behind = |first| self.local.iter().all(|(priority, _)| *priority > first);
        !self.has_family || self.l3mdev.is_some_and(is_behind)
    }
}

fn address(message: &AddressMessage) -> Option<(u32, Address)> {
    let (mut address, mut local, mut is_ours) = (None, None, false);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Address(ip) => address = Some(*ip),
            // The own end of a point-to-point link; IPv4 always has it.
            AddressAttribute::Local(ip) => local = Some(*ip),
            AddressAttribute::Protocol(protocol) => is_ours = *protocol == OUR_ADDRESS,
            _ => {}
        }
    }
    let ip = local.or(address)?;
    let is_link_local = match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let address = IpNet::new(ip, message.header.prefix_len).ok()?;
    let address = Address { address, is_ours };
    (is_ours || !is_link_local).then_some((message.header.index, address))
}

fn guarded(routes: &[RouteMessage], family: AddressFamily) -> BTreeSet<u32> {
    let defaults = routes.iter().filter(|route| {
        let header = &route.header;
        header.address_family == family
            && header.kind == RouteType::Unreachable
            && header.destination_prefix_length == 0
    });
    let table = |route: &RouteMessage| {
        let number = route
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                RouteAttribute::Table(table) => Some(*table),
                _ => None,
            });
        number.unwrap_or_else(|| route.header.table.into())
    };
    defaults.map(table).collect()
}
