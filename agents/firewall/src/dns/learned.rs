use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::answer::ResolvedAddress;
use super::guard::AddressGuard;
use super::key_of;
use super::limits::NameLimits;
use crate::netlink::TimedElement;
use crate::rule::NameSelector;

/// A timeout that is later by less than this needs no change in the kernel.
const REFRESH_MIN: Duration = Duration::from_secs(1);

/// The addresses of names, with the end of their lifetimes. The kernel's sets have the same.
#[derive(Debug, Default)]
pub(super) struct LearnedNames {
    limits: NameLimits,
    /// Every name and pattern of the rules.
    names: BTreeMap<NameSelector, BTreeMap<IpAddr, Instant>>,
    guard: AddressGuard,
}

/// The result of an answer.
#[derive(Debug, Default)]
pub(super) struct LearnOutcome {
    /// Elements that the kernel needs.
    pub(super) elements: Vec<TimedElement>,
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
        guard: AddressGuard,
    ) -> Vec<TimedElement> {
        self.guard = guard;
        self.names.retain(|name, _| names.contains(name));
        for name in names {
            self.names.entry((*name).clone()).or_default();
        }
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

    /// Learns the addresses in an answer for `name`.
    pub(super) fn learn(
        &mut self,
        name: &str,
        resolved: &[ResolvedAddress],
        now: Instant,
    ) -> LearnOutcome {
        let mut outcome = LearnOutcome::default();
        self.expire(now);
        let mut room = self.limits.addresses_max.saturating_sub(self.len());
        let (low, high) = (self.limits.lifetime_min, self.limits.lifetime_max);
        let name_max = self.limits.name_addresses_max;
        for (selector, addresses) in &mut self.names {
            if !selector.matches(name) {
                continue;
            }
            for one in resolved.iter().take(self.limits.answer_addresses_max) {
                if !self.guard.allows(one.address) {
                    outcome.forbidden.push(one.address);
                    continue;
                }
                let lifetime = one.lifetime.clamp(low, high);
                let until = now + lifetime;
                let is_full = room == 0 || addresses.len() >= name_max;
                match addresses.get_mut(&one.address) {
                    Some(old) if until.saturating_duration_since(*old) < REFRESH_MIN => continue,
                    Some(old) => *old = until,
                    None if is_full => {
                        outcome.without_room += 1;
                        continue;
                    }
                    None => {
                        addresses.insert(one.address, until);
                        room -= 1;
                    }
                }
                outcome
                    .elements
                    .push(element(selector, one.address, lifetime));
            }
        }
        outcome
    }

    /// Takes over an address that the kernel or the state file has, if the rules still want it.
    pub(super) fn adopt(&mut self, name: &NameSelector, address: IpAddr, until: Instant) -> bool {
        let has_room = self.len() < self.limits.addresses_max;
        let allows = self.guard.allows(address);
        let Some(addresses) = self.names.get_mut(name).filter(|_| allows) else {
            return false;
        };
        let has_room = has_room && addresses.len() < self.limits.name_addresses_max;
        match addresses.get_mut(&address) {
            Some(own) => *own = (*own).max(until),
            None if has_room => {
                addresses.insert(address, until);
            }
            None => return false,
        }
        true
    }

    /// Forgets addresses whose lifetime has ended, as the kernel does.
    pub(super) fn expire(&mut self, now: Instant) {
        for addresses in self.names.values_mut() {
            addresses.retain(|_, until| *until > now);
        }
    }

    /// Every address with its name and the end of its lifetime.
    pub(super) fn all(&self) -> impl Iterator<Item = LearnedAddress<'_>> {
        self.names.iter().flat_map(|(name, addresses)| {
            addresses
                .iter()
                .map(move |(address, until)| LearnedAddress {
                    name,
                    address: *address,
                    until: *until,
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

    fn len(&self) -> usize {
        self.names.values().map(BTreeMap::len).sum()
    }
}

/// An address that was learned.
#[derive(Clone, Copy, Debug)]
pub(super) struct LearnedAddress<'a> {
    pub(super) name: &'a NameSelector,
    pub(super) address: IpAddr,
    pub(super) until: Instant,
}

fn element(name: &NameSelector, address: IpAddr, lifetime: Duration) -> TimedElement {
    TimedElement {
        set: name.set(address.is_ipv4()),
        key: key_of(address),
        lifetime,
    }
}
