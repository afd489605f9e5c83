//! Source NAT, for every protocol.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use super::frame::{POSTROUTING, by_interface, interfaces, rule};
use super::keys;
use crate::model::{BaseChain, Chain, Element, Expression, MetaKey, NftSet, NftTable, SetSpec};
use crate::rule::prefixes::{is_ipv4, merged};
use crate::rule::{Network, NetworkKind, RuleSet};

/// Adds the base chain, with a rule for each network with NAT and each private prefix. Without any
/// there is no chain.
pub(super) fn add_postrouting(table: &mut NftTable, rules: &RuleSet) {
    let mut chain = Chain {
        base: Some(BaseChain::Postrouting),
        rules: Vec::new(),
    };
    let private = rules
        .networks
        .iter()
        .filter(|network| network.kind == NetworkKind::Private);
    let prefixes: Vec<IpNet> = private
        .flat_map(|network| network.prefixes.clone())
        .collect();
    for network in &rules.networks {
        for prefix in merged(&prefixes) {
            let Some(translate) = translation(table, network, is_ipv4(&prefix)) else {
                continue;
            };
            let counter = format!("snat/{}", network.id);
            table.counters.insert(counter.clone());
            let mut expressions = from_prefix(&prefix);
            expressions.extend(by_interface(MetaKey::OutputName, &interfaces(network)));
            expressions.push(Expression::Count(counter));
            expressions.extend(translate);
            chain.rules.push(rule(expressions, None));
        }
    }
    // Every packet pays for a chain of NAT, even for an empty one: some 4 % of what forwarding costs.
    if !chain.rules.is_empty() {
        table.chains.insert(POSTROUTING.to_owned(), chain);
    }
}

/// Matches packets with a source of the prefix.
fn from_prefix(prefix: &IpNet) -> Vec<Expression> {
    let family = is_ipv4(prefix);
    let mut expressions = keys::family(family).to_vec();
    if prefix.prefix_len() > 0 {
        keys::address(family, true, prefix.prefix_len(), 0, &mut expressions);
        expressions.push(Expression::Equal {
            register: 0,
            value: octets(prefix.network()),
        });
    }
    expressions
}

/// The expressions that replace a source in a network; adds the map that they need. `None` without
/// NAT for the family.
fn translation(table: &mut NftTable, network: &Network, is_ipv4: bool) -> Option<Vec<Expression>> {
    let of_family = |address: &&IpAddr| address.is_ipv4() == is_ipv4;
    let addresses: Vec<&IpAddr> = network.nat_addresses.iter().filter(of_family).collect();
    let replace = Expression::SourceNat {
        is_ipv4,
        register: 0,
    };
    match addresses.as_slice() {
        [] if network.masquerade => Some(vec![Expression::Masquerade]),
        [] => None,
        [only] => Some(vec![
            Expression::Load {
                register: 0,
                value: octets(**only),
            },
            replace,
        ]),
        several => {
            // By both addresses: the flows of a client to one server keep one source.
            let (words, length) = if is_ipv4 { (1, 8) } else { (4, 32) };
            let mut made = Vec::new();
            let whole = if is_ipv4 { 32 } else { 128 };
            keys::address(is_ipv4, true, whole, 0, &mut made);
            keys::address(is_ipv4, false, whole, words, &mut made);
            made.push(Expression::Hash {
                source: 0,
                length,
                modulus: u32::try_from(several.len()).ok()?,
                register: words * 2,
            });
            let map = add_map(table, network, is_ipv4, several);
            made.push(Expression::Lookup {
                set: map,
                register: words * 2,
                destination: Some(0),
            });
            made.push(replace);
            Some(made)
        }
    }
}

/// The map from a hash to an address.
fn add_map(
    table: &mut NftTable,
    network: &Network,
    is_ipv4: bool,
    addresses: &[&IpAddr],
) -> String {
    let (family, data_type, data_len) = if is_ipv4 {
        (4, SetSpec::IPV4, 4)
    } else {
        (6, SetSpec::IPV6, 16)
    };
    let name = format!("snat{family}/{}", network.id);
    let elements: BTreeMap<Vec<u8>, Element> = (0_u32..)
        .zip(addresses)
        .map(|(index, address)| {
            let data = Element::Data(octets(**address));
            (index.to_ne_bytes().to_vec(), data)
        })
        .collect();
    let spec = SetSpec {
        data_type: Some(data_type),
        data_len,
        ..SetSpec::members(SetSpec::MARK, 4)
    };
    table.sets.insert(name.clone(), NftSet { spec, elements });
    name
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
