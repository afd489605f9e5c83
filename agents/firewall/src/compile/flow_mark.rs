use std::collections::BTreeMap;

use crate::rule::{NetworkKind, RuleSet};

/// Bits of each network in a mark. Two networks with equal bits are one for the binding of flows.
const SIDE_BITS: u32 = 11;
/// A mark of a bound flow has it, so that none is 0.
const IS_BOUND: u32 = 1 << 23;
/// FNV-1a, 32 bits.
const FNV_OFFSET: u32 = 0x811c_9dc5;
const FNV_PRIME: u32 = 0x0100_0193;

/// The flows from one network to another, or within one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BoundFlow {
    /// Mark of these flows.
    pub(crate) mark: u32,
    /// Interfaces that the first packet comes in by, and all later ones of its direction.
    pub(crate) from: Vec<String>,
    /// Interfaces that the first packet leaves by, and replies come in by.
    pub(crate) to: Vec<String>,
}

impl BoundFlow {
    /// The flows between the networks of a firewall. External networks are one: a reply may come
    /// another way than the packet went.
    pub(crate) fn all(rules: &RuleSet) -> Vec<Self> {
        let mut sides: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for network in &rules.networks {
            let side = match network.kind {
                // No network of the firewall has an empty id.
                NetworkKind::External => "",
                NetworkKind::Private => &network.id,
                NetworkKind::Underlay => continue,
            };
            let interfaces = sides.entry(side).or_default();
            interfaces.extend(network.interfaces.iter().cloned());
        }
        let pairs = sides.iter().flat_map(|from| {
            let to = sides.iter();
            to.map(move |to| (from, to))
        });
        pairs
            .map(|((from, inputs), (to, outputs))| Self {
                mark: mark(from, to),
                from: inputs.clone(),
                to: outputs.clone(),
            })
            .collect()
    }
}

/// The mark of the flows between two networks: by their ids alone, so that flows keep it when other
/// networks come and go. The third byte is 0: programs of a VPN use it for themselves.
fn mark(from: &str, to: &str) -> u32 {
    let bits = |id: &str| {
        let hash = id.bytes().fold(FNV_OFFSET, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(FNV_PRIME)
        });
        // FNV mixes its upper bits best.
        hash >> (u32::BITS - SIDE_BITS)
    };
    let all = IS_BOUND | bits(from) << SIDE_BITS | bits(to);
    (all & 0xFFFF) | (all & 0xFF_0000) << 8
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::mark;

    #[test]
    fn marks_are_of_both_networks_and_leave_a_byte_free() {
        let ids = [
            "",
            "one",
            "two",
            "internet",
            "0d7a4f1c-7b1e-4a6f-9d55-6a2b3c4d5eff",
        ];
        let pairs = ids
            .iter()
            .flat_map(|from| ids.iter().map(move |to| (*from, *to)));
        let marks: BTreeSet<u32> = pairs.map(|(from, to)| mark(from, to)).collect();
        assert_eq!(marks.len(), 25);
        for mark in marks {
            assert!(mark & 0xFF_0000 == 0 && mark >> 31 == 1, "{mark:08x}");
        }
        // Flows in kernels have it: it never changes.
        assert_eq!(mark("one", "two"), 0xAE00_8DF1);
    }
}
