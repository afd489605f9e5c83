//! The lease book: the IP address that each Ethernet address holds, and until when.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use proto_types::MacAddr;

use crate::lease::{Lease, LeaseError};
use crate::range::{PoolRange, Range};

/// Time for which an offered address is reserved for its client, ms.
const OFFER_HOLD_MS: u64 = 60_000;

/// Time for which an address that a client found in use is not given, ms.
const DECLINE_HOLD_MS: u64 = 600_000;

#[derive(Debug, Clone)]
struct Entry {
    lease: Lease,
    /// `false` while the address is only offered. Such an entry is not persisted.
    bound: bool,
}

/// All leases of one network. It has at most as many entries as its pools have addresses.
#[derive(Debug, Clone, Default)]
pub struct LeaseBook {
    by_mac: BTreeMap<MacAddr, Entry>,
    by_address: BTreeMap<Ipv4Addr, MacAddr>,
    declined: BTreeMap<Ipv4Addr, u64>,
}

impl LeaseBook {
    /// Builds a book from persisted leases. Of two conflicting leases the one that expires later is
    /// kept.
    #[must_use]
    pub fn from_leases(leases: impl IntoIterator<Item = Lease>) -> Self {
        let mut sorted: Vec<Lease> = leases.into_iter().collect();
        // In this order a later lease replaces the earlier one that it conflicts with.
        sorted.sort_by_key(|lease| lease.expires_ms);
        let mut book = Self::default();
        for lease in sorted {
            book.put(lease, true);
        }
        book
    }

    /// The leases to persist, in the order of Ethernet addresses.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.by_mac.values().filter(|e| e.bound).map(|e| &e.lease)
    }

    /// The holder of an address. `None` means that its lease has expired or never existed.
    #[must_use]
    pub fn holder(&self, address: Ipv4Addr, now_ms: u64) -> Option<MacAddr> {
        let mac = *self.by_address.get(&address)?;
        let entry = self.by_mac.get(&mac)?;
        // An offered address has no holder yet: its client may take the offer of another server.
        (entry.bound && entry.lease.expires_ms > now_ms).then_some(mac)
    }

    /// Chooses an address for a client and reserves it for a minute: its previous one, else the one
    /// it requests, else one that was never given, else the one that expired longest ago.
    ///
    /// # Errors
    /// [`LeaseError::Exhausted`] if every address is held.
    pub fn offer(
        &mut self,
        mac: MacAddr,
        pool: PoolRange<'_>,
        wish: Option<Ipv4Addr>,
        now_ms: u64,
    ) -> Result<Ipv4Addr, LeaseError> {
        self.declined.retain(|_, until| *until > now_ms);
        let own = self.by_mac.get(&mac).map(|e| e.lease.address);
        let PoolRange { pool, range } = pool;
        // Within the client's own pool: a wish must not reach an address of the other pool or of
        // pixie itself.
        let free = |a: &Ipv4Addr| range.contains(*a) && self.is_free(*a, mac, now_ms);
        let address = own
            .filter(free)
            .or_else(|| wish.filter(free))
            // Unused addresses before expired ones: a machine that was off for weeks still finds its
            // address.
            .or_else(|| {
                range
                    .iter()
                    .find(|a| !self.by_address.contains_key(a) && free(a))
            })
            .or_else(|| self.longest_ended(range, mac, now_ms))
            .ok_or(LeaseError::Exhausted)?;
        // A discover must not shorten a running lease to the time of an offer: the client may be a
        // second system on the card, or forged.
        let bound_until = self
            .by_mac
            .get(&mac)
            .filter(|e| e.bound && e.lease.address == address)
            .map(|e| e.lease.expires_ms);
        if bound_until.is_none_or(|until| until <= now_ms) {
            let expires_ms = now_ms.saturating_add(OFFER_HOLD_MS);
            self.put(
                Lease {
                    mac,
                    address,
                    expires_ms,
                    pool,
                },
                false,
            );
        }
        Ok(address)
    }

    /// Gives or renews the address that the client requests.
    ///
    /// # Errors
    /// [`LeaseError::NotYours`] if it is outside the pool or another client holds it. The client
    /// must discover again.
    pub fn commit(
        &mut self,
        mac: MacAddr,
        pool: PoolRange<'_>,
        address: Ipv4Addr,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<(), LeaseError> {
        let PoolRange { pool, range } = pool;
        if !range.contains(address) || !self.is_free(address, mac, now_ms) {
            return Err(LeaseError::NotYours(address));
        }
        let expires_ms = now_ms.saturating_add(lease_ms);
        self.put(
            Lease {
                mac,
                address,
                expires_ms,
                pool,
            },
            true,
        );
        Ok(())
    }

    /// Ends a lease early. The entry stays, so that the client gets the same address again. Returns
    /// `true` if there was such a lease.
    pub fn release(&mut self, mac: MacAddr, address: Ipv4Addr, now_ms: u64) -> bool {
        match self.by_mac.get_mut(&mac) {
            Some(entry) if entry.lease.address == address => {
                // An expired lease keeps its time: the address that ended longest ago is given away
                // first.
                entry.lease.expires_ms = entry.lease.expires_ms.min(now_ms);
                true
            }
            _ => false,
        }
    }

    /// Withdraws an address that its client found in use by another host; it is not given for
    /// [`DECLINE_HOLD_MS`]. Returns `true` if the client held it.
    pub fn decline(&mut self, mac: MacAddr, address: Ipv4Addr, now_ms: u64) -> bool {
        let had = self
            .by_mac
            .get(&mac)
            .is_some_and(|e| e.lease.address == address);
        // Only the holder may decline. Otherwise one host could empty the pool by declining every
        // address.
        if had {
            self.by_mac.remove(&mac);
            self.by_address.remove(&address);
            self.declined
                .insert(address, now_ms.saturating_add(DECLINE_HOLD_MS));
        }
        had
    }

    /// Drops the offer of a client that took another server's offer. A bound lease stays.
    pub fn forget_offer(&mut self, mac: MacAddr) {
        if self.by_mac.get(&mac).is_some_and(|e| !e.bound)
            && let Some(entry) = self.by_mac.remove(&mac)
        {
            self.by_address.remove(&entry.lease.address);
        }
    }

    /// `true` if `mac` may have an address: no other client holds it and it was not declined.
    fn is_free(&self, address: Ipv4Addr, mac: MacAddr, now_ms: u64) -> bool {
        if self
            .declined
            .get(&address)
            .is_some_and(|until| *until > now_ms)
        {
            return false;
        }
        self.by_address
            .get(&address)
            .filter(|holder| **holder != mac)
            .and_then(|holder| self.by_mac.get(holder))
            .is_none_or(|entry| entry.lease.expires_ms <= now_ms)
    }

    fn longest_ended(&self, range: &Range, mac: MacAddr, now_ms: u64) -> Option<Ipv4Addr> {
        self.by_mac
            .values()
            .map(|e| &e.lease)
            .filter(|l| range.contains(l.address) && self.is_free(l.address, mac, now_ms))
            .min_by_key(|l| l.expires_ms)
            .map(|l| l.address)
    }

    /// Stores a lease. It removes the previous lease of the client and the previous holder of the
    /// address, which keeps both maps one-to-one.
    fn put(&mut self, lease: Lease, bound: bool) {
        if let Some(before) = self.by_mac.remove(&lease.mac) {
            self.by_address.remove(&before.lease.address);
        }
        if let Some(holder) = self.by_address.insert(lease.address, lease.mac) {
            self.by_mac.remove(&holder);
        }
        self.by_mac.insert(lease.mac, Entry { lease, bound });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Pool;

    const LEASE_MS: u64 = 1_000_000;

    fn range() -> Range {
        let first = Ipv4Addr::new(10, 0, 0, 10);
        Range::new(
            first,
            Ipv4Addr::new(10, 0, 0, 12),
            "10.0.0.0/24".parse().unwrap(),
        )
        .unwrap()
    }

    fn machines(range: &Range) -> PoolRange<'_> {
        PoolRange {
            pool: Pool::Machines,
            range,
        }
    }

    fn mac(n: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, n])
    }

    fn take(book: &mut LeaseBook, n: u8, now: u64) -> Result<Ipv4Addr, LeaseError> {
        let range = range();
        let pool = machines(&range);
        let address = book.offer(mac(n), pool, None, now)?;
        book.commit(mac(n), pool, address, now, LEASE_MS)?;
        Ok(address)
    }

    #[test]
    fn a_client_keeps_its_address_and_others_get_others() {
        let mut book = LeaseBook::default();
        let first = take(&mut book, 1, 0).unwrap();
        let second = take(&mut book, 2, 0).unwrap();
        assert_ne!(first, second);
        assert_eq!(take(&mut book, 1, 10).unwrap(), first);
        assert_eq!(
            take(&mut book, 1, 10 * LEASE_MS).unwrap(),
            first,
            "also after it ended"
        );
        assert_eq!(book.holder(first, 10 * LEASE_MS + 1), Some(mac(1)));
        assert_eq!(book.holder(second, 10 * LEASE_MS), None, "it has ended");
    }

    #[test]
    fn a_full_pool_says_so_and_gives_the_longest_ended_again() {
        let mut book = LeaseBook::default();
        let all: Vec<_> = (1..=3)
            .map(|n| take(&mut book, n, u64::from(n)).unwrap())
            .collect();
        assert_eq!(take(&mut book, 4, 10), Err(LeaseError::Exhausted));
        assert_eq!(take(&mut book, 4, LEASE_MS + 3).unwrap(), all[0]);
        assert_eq!(book.leases().count(), 3);
    }

    #[test]
    fn an_offer_is_held_for_a_minute_and_is_not_written_down() {
        let mut book = LeaseBook::default();
        let range = range();
        let pool = machines(&range);
        for n in 1..=3 {
            book.offer(mac(n), pool, None, 0).unwrap();
        }
        assert_eq!(book.leases().count(), 0);
        assert_eq!(
            book.offer(mac(4), pool, None, 1),
            Err(LeaseError::Exhausted)
        );
        assert!(book.offer(mac(4), pool, None, OFFER_HOLD_MS).is_ok());
        book.forget_offer(mac(4));
        assert!(book.offer(mac(5), pool, None, OFFER_HOLD_MS).is_ok());
    }

    #[test]
    fn another_discover_does_not_shorten_a_lease() {
        let mut book = LeaseBook::default();
        let address = take(&mut book, 1, 0).unwrap();
        book.offer(mac(1), machines(&range()), None, 5).unwrap();
        assert_eq!(book.holder(address, LEASE_MS - 1), Some(mac(1)));
        assert_eq!(book.leases().count(), 1);
    }

    #[test]
    fn a_wish_is_granted_when_it_is_free() {
        let mut book = LeaseBook::default();
        let wish = Ipv4Addr::new(10, 0, 0, 12);
        let range = range();
        let pool = machines(&range);
        assert_eq!(book.offer(mac(1), pool, Some(wish), 0), Ok(wish));
        assert_ne!(book.offer(mac(2), pool, Some(wish), 0), Ok(wish));
        let outside = Ipv4Addr::new(10, 0, 0, 99);
        assert_ne!(book.offer(mac(3), pool, Some(outside), 0), Ok(outside));
    }

    #[test]
    fn nobody_takes_a_held_or_outside_address() {
        let mut book = LeaseBook::default();
        let first = take(&mut book, 1, 0).unwrap();
        let range = range();
        let pool = machines(&range);
        let outside = Ipv4Addr::new(10, 0, 0, 99);
        for address in [first, outside] {
            assert_eq!(
                book.commit(mac(2), pool, address, 1, LEASE_MS),
                Err(LeaseError::NotYours(address))
            );
        }
    }

    #[test]
    fn released_is_kept_for_its_client_and_declined_for_nobody() {
        let mut book = LeaseBook::default();
        let first = take(&mut book, 1, 0).unwrap();
        assert!(!book.release(mac(2), first, 1), "not his");
        assert!(book.release(mac(1), first, 1));
        assert_eq!(book.holder(first, 2), None);
        assert_ne!(
            take(&mut book, 2, 2).unwrap(),
            first,
            "never-used ones go first"
        );
        assert_eq!(take(&mut book, 1, 3).unwrap(), first);
        assert!(book.decline(mac(1), first, 4));
        assert_ne!(take(&mut book, 1, 5).unwrap(), first);
        assert_eq!(take(&mut book, 3, 5), Err(LeaseError::Exhausted));
        assert_eq!(take(&mut book, 3, 5 + DECLINE_HOLD_MS).unwrap(), first);
    }

    #[test]
    fn a_book_is_read_back_and_contradictions_are_settled() {
        let mut book = LeaseBook::default();
        take(&mut book, 1, 0).unwrap();
        take(&mut book, 2, 0).unwrap();
        let written: Vec<Lease> = book.leases().cloned().collect();
        let again = LeaseBook::from_leases(written.clone());
        assert_eq!(again.leases().cloned().collect::<Vec<_>>(), written);
        let mut double = written.clone();
        double.push(Lease {
            mac: mac(9),
            expires_ms: LEASE_MS * 2,
            ..written[0].clone()
        });
        let settled = LeaseBook::from_leases(double);
        assert_eq!(settled.holder(written[0].address, 1), Some(mac(9)));
        assert_eq!(settled.leases().count(), 2);
    }
}
