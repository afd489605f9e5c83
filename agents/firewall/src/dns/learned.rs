use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ipnet::IpNet;

use super::answer::ResolvedAddress;
use super::eviction::EvictionQueue;
use super::guard::AddressGuard;
use super::held_address::{Asker, HeldAddress};
use super::key_of;
use super::limits::NameLimits;
use crate::netlink::TimedElement;
use crate::rule::{NameSelector, NetworkKind, RuleSet};

/// A timeout that is later by less than this needs no change in the kernel.
const REFRESH_MIN: Duration = Duration::from_secs(1);
/// A timeout in the kernel that is later than ours by no more than this is ours.
const ADOPT_TOLERANCE: Duration = Duration::from_secs(2);
/// Pause between two walks over all addresses for those whose lifetimes have ended. Until then these
/// take up room only: an answer must not cost a look at every address.
const EXPIRE_PERIOD: Duration = Duration::from_secs(1);
/// The part of all addresses that is given up at once when there is no room: to find them costs a
/// look at each.
const EVICTED_PART: usize = 64;

/// The addresses of names, with the end of their lifetimes. The kernel's sets have the same.
#[derive(Debug, Default)]
pub(super) struct LearnedNames {
    limits: NameLimits,
    /// Every name and pattern of the rules.
    names: BTreeMap<NameSelector, BTreeMap<IpAddr, HeldAddress>>,
    /// The last walk over all addresses. `None` before the first.
    expired_at: Option<Instant>,
    guard: AddressGuard,
    /// Prefixes of private networks.
    networks: Vec<(IpNet, Asker)>,
}

/// The result of an answer.
#[derive(Debug, Default)]
pub(super) struct LearnOutcome {
    /// Elements that the kernel needs.
    pub(super) elements: Vec<TimedElement>,
    /// Elements that make room for these, and must go before.
    pub(super) evicted: Vec<TimedElement>,
    /// Addresses that are forbidden.
    pub(super) forbidden: Vec<IpAddr>,
    /// Addresses for which there was no room.
    pub(super) without_room: usize,
}

impl LearnedNames {
    pub(super) fn new(limits: NameLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Takes over the names of new rules; returns the elements that they forbid.
    pub(super) fn configure(
        &mut self,
        names: &BTreeSet<&NameSelector>,
        rules: &RuleSet,
    ) -> Vec<TimedElement> {
        self.guard = AddressGuard::new(rules).with_own(self.guard.own());
        let private = rules.networks.iter();
        let private = private.filter(|network| network.kind == NetworkKind::Private);
        let prefixes = private.flat_map(|network| {
            let id: Asker = network.id.as_str().into();
            let prefixes = network.prefixes.iter();
            prefixes.map(move |prefix| (*prefix, Arc::clone(&id)))
        });
        self.networks = prefixes.collect();
        self.names.retain(|name, _| names.contains(name));
        for name in names {
            self.names.entry((*name).clone()).or_default();
        }
        self.remove_forbidden()
    }

    /// Takes over the addresses of this host; returns the elements that they forbid.
    pub(super) fn set_own(&mut self, own: &BTreeSet<IpAddr>) -> Vec<TimedElement> {
        if self.guard.own() == own {
            return Vec::new();
        }
        self.guard = std::mem::take(&mut self.guard).with_own(own);
        self.remove_forbidden()
    }

    fn remove_forbidden(&mut self) -> Vec<TimedElement> {
        let mut forbidden = Vec::new();
        for (name, addresses) in &mut self.names {
            addresses.retain(|address, _| {
                let allows = self.guard.allows(*address);
                if !allows {
                    forbidden.push(element(name, *address, Duration::ZERO));
                }
                allows
            });
        }
        forbidden
    }

    /// The names.
    pub(super) fn names(&self) -> impl Iterator<Item = &NameSelector> {
        self.names.keys()
    }

    /// Learns the addresses in an answer for `name`, which `client` asked for.
    pub(super) fn learn(
        &mut self,
        name: &str,
        resolved: &[ResolvedAddress],
        client: IpAddr,
        now: Instant,
    ) -> LearnOutcome {
        let mut outcome = LearnOutcome::default();
        let is_due = |last| now.saturating_duration_since(last) >= EXPIRE_PERIOD;
        if self.expired_at.is_none_or(is_due) {
            self.expire(now);
        }
        let asker = self.asker(client);
        let matching = self.names.keys().filter(|own| own.matches(name));
        for selector in matching.cloned().collect::<Vec<_>>() {
            let mut allowed = Vec::new();
            for one in resolved.iter().take(self.limits.answer_addresses_max) {
                if self.guard.allows(one.address) {
                    allowed.push(*one);
                } else {
                    outcome.forbidden.push(one.address);
                }
            }
            self.hold(&selector, &allowed, &asker, now, &mut outcome);
        }
        outcome
    }

    /// The private network with the longest prefix for a client.
    fn asker(&self, client: IpAddr) -> Asker {
        let own = self.networks.iter();
        own.filter(|(prefix, _)| prefix.contains(&client))
            .max_by_key(|(prefix, _)| prefix.prefix_len())
            .map_or_else(|| Asker::from(""), |(_, network)| Arc::clone(network))
    }

    /// Holds addresses of a name for a network.
    fn hold(
        &mut self,
        selector: &NameSelector,
        resolved: &[ResolvedAddress],
        asker: &Asker,
        now: Instant,
        outcome: &mut LearnOutcome,
    ) {
        let (low, high) = (self.limits.lifetime_min, self.limits.lifetime_max);
        let mut new = BTreeMap::new();
        let Some(addresses) = self.names.get_mut(selector) else {
            return;
        };
        for one in resolved {
            let lifetime = one.lifetime.clamp(low, high);
            let Some(held) = addresses.get_mut(&one.address) else {
                new.insert(one.address, lifetime);
                continue;
            };
            let until = now + lifetime;
            let old = held.until().unwrap_or(now);
            held.extend(Arc::clone(asker), until, now);
            if until.saturating_duration_since(old) >= REFRESH_MIN {
                let element = element(selector, one.address, lifetime);
                outcome.elements.push(element);
            }
        }
        outcome
            .evicted
            .extend(self.make_room(selector, new.len(), asker, now));
        let mut room = self.limits.addresses_max.saturating_sub(self.len());
        let Some(addresses) = self.names.get_mut(selector) else {
            return;
        };
        for (address, lifetime) in new {
            if room == 0 || addresses.len() >= self.limits.name_addresses_max {
                outcome.without_room += 1;
                continue;
            }
            let held = HeldAddress::new(Arc::clone(asker), now + lifetime, now);
            addresses.insert(address, held);
            room -= 1;
            outcome.elements.push(element(selector, address, lifetime));
        }
    }

    /// Gives up addresses so that a name has room for `count` more; returns their elements.
    fn make_room(
        &mut self,
        selector: &NameSelector,
        count: usize,
        asker: &Asker,
        now: Instant,
    ) -> Vec<TimedElement> {
        let mut evicted = Vec::new();
        let own_max = self.limits.name_addresses_max;
        if self.len_of(selector) + count > own_max {
            if let Some(addresses) = self.names.get_mut(selector) {
                addresses.retain(|_, held| held.expire(now));
            }
            let surplus = (self.len_of(selector) + count).saturating_sub(own_max);
            // Of this name alone: a look at all others costs far more.
            let own = self.names.get_key_value(selector).into_iter();
            let own = own.flat_map(|(name, addresses)| entries_of(name, addresses));
            evicted = evict(own, surplus, asker, now);
            self.forget(&evicted);
        }
        if self.len() + count > self.limits.addresses_max {
            self.expire(now);
        }
        if self.len() + count > self.limits.addresses_max {
            let surplus = count.max(self.limits.addresses_max / EVICTED_PART);
            let more = evict(self.entries(), surplus, asker, now);
            self.forget(&more);
            evicted.extend(more);
        }
        let gone = evicted.iter();
        gone.map(|(name, address)| element(name, *address, Duration::ZERO))
            .collect()
    }

    fn forget(&mut self, evicted: &[(NameSelector, IpAddr)]) {
        for (name, address) in evicted {
            if let Some(addresses) = self.names.get_mut(name) {
                addresses.remove(address);
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = (&NameSelector, IpAddr, &HeldAddress)> + Clone {
        let names = self.names.iter();
        names.flat_map(|(name, addresses)| entries_of(name, addresses))
    }

    /// Takes over an address that the kernel or the state file has, if the rules still want it.
    pub(super) fn adopt(
        &mut self,
        name: &NameSelector,
        address: IpAddr,
        until: Instant,
        now: Instant,
    ) -> bool {
        let has_room = self.len() < self.limits.addresses_max;
        let allows = self.guard.allows(address);
        let Some(addresses) = self.names.get_mut(name).filter(|_| allows) else {
            return false;
        };
        let has_room = has_room && addresses.len() < self.limits.name_addresses_max;
        let nobody = || Asker::from("");
        match addresses.get_mut(&address) {
            Some(own)
                if own
                    .until()
                    .is_some_and(|old| until <= old + ADOPT_TOLERANCE) => {}
            Some(own) => own.extend(nobody(), until, now),
            None if has_room => {
                let held = HeldAddress::new(nobody(), until, now);
                addresses.insert(address, held);
            }
            None => return false,
        }
        true
    }

    /// Forgets addresses whose lifetime has ended, as the kernel does.
    pub(super) fn expire(&mut self, now: Instant) {
        self.expired_at = Some(now);
        for addresses in self.names.values_mut() {
            addresses.retain(|_, held| held.expire(now));
        }
    }

    /// Every address with its name and the end of its lifetime.
    pub(super) fn all(&self) -> impl Iterator<Item = LearnedAddress<'_>> {
        self.entries().filter_map(|(name, address, held)| {
            let until = held.until()?;
            Some(LearnedAddress {
                name,
                address,
                until,
            })
        })
    }

    /// Every address, as the kernel should have it.
    pub(super) fn elements(&self, now: Instant) -> Vec<TimedElement> {
        self.all()
            .filter(|own| own.until > now)
            .map(|own| element(own.name, own.address, own.until - now))
            .collect()
    }

    pub(super) fn len(&self) -> usize {
        self.names.values().map(BTreeMap::len).sum()
    }

    fn len_of(&self, selector: &NameSelector) -> usize {
        self.names.get(selector).map_or(0, BTreeMap::len)
    }
}

/// An address that was learned.
#[derive(Clone, Copy, Debug)]
pub(super) struct LearnedAddress<'a> {
    pub(super) name: &'a NameSelector,
    pub(super) address: IpAddr,
    pub(super) until: Instant,
}

/// The addresses of a name.
fn entries_of<'a>(
    name: &'a NameSelector,
    addresses: &'a BTreeMap<IpAddr, HeldAddress>,
) -> impl Iterator<Item = (&'a NameSelector, IpAddr, &'a HeldAddress)> + Clone {
    let own = addresses.iter();
    own.map(move |(address, held)| (name, *address, held))
}

/// Chooses addresses that make room for those of `asker`.
fn evict<'a>(
    entries: impl Iterator<Item = (&'a NameSelector, IpAddr, &'a HeldAddress)> + Clone,
    count: usize,
    asker: &Asker,
    now: Instant,
) -> Vec<(NameSelector, IpAddr)> {
    let places = entries.map(|(name, address, held)| ((name, address), held));
    let mut queue = EvictionQueue::new(places);
    let next = || queue.next(asker, now);
    let chosen = std::iter::from_fn(next).take(count);
    chosen
        .map(|(name, address)| (name.clone(), address))
        .collect()
}

fn element(name: &NameSelector, address: IpAddr, lifetime: Duration) -> TimedElement {
    TimedElement {
        set: name.set(address.is_ipv4()),
        key: key_of(address),
        lifetime,
    }
}
