use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::held_address::{Asker, HeldAddress};

/// Addresses in the order in which they are given up when there is no room: the oldest of the
/// network that has most. So a network that asks for very many displaces its own.
///
/// An address that several networks hold counts for the one of them that holds the fewest.
#[derive(Debug)]
pub(super) struct EvictionQueue<P> {
    /// The newest first.
    by_network: BTreeMap<Asker, Vec<(Instant, P)>>,
    /// Places that were given up so far: they are the asking network's now.
    given_up: usize,
}

impl<P: Ord> EvictionQueue<P> {
    /// Sorts addresses. `P` says where one is.
    pub(super) fn new<'a>(addresses: impl Iterator<Item = (P, &'a HeldAddress)> + Clone) -> Self {
        let mut counts: BTreeMap<&Asker, usize> = BTreeMap::new();
        for (_, held) in addresses.clone() {
            for (asker, _) in held.holders() {
                *counts.entry(asker).or_default() += 1;
            }
        }
        let mut by_network: BTreeMap<Asker, Vec<(Instant, P)>> = BTreeMap::new();
        for (place, held) in addresses {
            let fewest = held.holders().min_by_key(|(asker, _)| counts[asker]);
            if let Some((asker, asked)) = fewest {
                let own = by_network.entry(Arc::clone(asker)).or_default();
                own.push((asked, place));
            }
        }
        for own in by_network.values_mut() {
            own.sort_by(|one, other| other.cmp(one));
        }
        Self {
            by_network,
            given_up: 0,
        }
    }

    /// The next address that makes room for one of `asker`. `None` if there is none but those that it
    /// got in the same moment.
    pub(super) fn next(&mut self, asker: &Asker, now: Instant) -> Option<P> {
        // Of networks that have equally many, the one that asks.
        let most = |(name, own): &(&Asker, &mut Vec<_>)| {
            let is_other = *name != asker;
            let new = if is_other { 0 } else { self.given_up };
            (own.len() + new, Reverse(is_other))
        };
        let (_, own) = self.by_network.iter_mut().max_by_key(most)?;
        let (asked, _) = own.last()?;
        if *asked == now {
            return None;
        }
        let (_, place) = own.pop()?;
        self.given_up += 1;
        Some(place)
    }
}
