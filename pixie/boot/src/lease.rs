//! The lease book: which Ethernet address holds which IP address until when.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use proto_types::MacAddr;

use crate::network::Range;

/// How long an offered address is kept for the client to ask for it.
const OFFER_HOLD_MS: u64 = 60_000;
/// How long an address that a client found in use is left alone.
const DECLINE_HOLD_MS: u64 = 600_000;

/// Which of a network's two pools a lease is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    Machines,
    Bmcs,
}

/// An address that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    pub mac: MacAddr,
    pub address: Ipv4Addr,
    /// Milliseconds since the epoch.
    pub expires_ms: u64,
    pub pool: Pool,
}

/// Why no address can be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    #[error("all addresses of the pool are taken")]
    Exhausted,
    #[error("address {0} is not the client's to have")]
    NotYours(Ipv4Addr),
}

#[derive(Debug, Clone)]
struct Entry {
    lease: Lease,
    /// False while it is only offered: such an entry is not written down.
    bound: bool,
}

/// All leases of one network. It never grows past the number of addresses in its pools.
#[derive(Debug, Clone, Default)]
pub struct LeaseBook {
    by_mac: BTreeMap<MacAddr, Entry>,
    by_address: BTreeMap<Ipv4Addr, MacAddr>,
    declined: BTreeMap<Ipv4Addr, u64>,
}

impl LeaseBook {
    /// Opens a book with the leases that were written down. Of two that contradict each other the
    /// one that ends later stays.
    #[must_use]
    pub fn from_leases(leases: impl IntoIterator<Item = Lease>) -> Self {
        let mut sorted: Vec<Lease> = leases.into_iter().collect();
        sorted.sort_by_key(|lease| lease.expires_ms);
        let mut book = Self::default();
        for lease in sorted {
            book.put(lease, true);
        }
        book
    }

    /// The leases to write down, by Ethernet address.
    pub fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.by_mac.values().filter(|e| e.bound).map(|e| &e.lease)
    }

    /// Who holds an address now.
    #[must_use]
    pub fn holder(&self, address: Ipv4Addr, now_ms: u64) -> Option<MacAddr> {
        let mac = *self.by_address.get(&address)?;
        let entry = self.by_mac.get(&mac)?;
        (entry.bound && entry.lease.expires_ms > now_ms).then_some(mac)
    }

    /// Chooses an address for a client and holds it for a minute: its own as before, else the one
    /// it wishes, else one that nobody ever had, else the one that ended longest ago.
    ///
    /// # Errors
    /// [`LeaseError::Exhausted`] when every address is held.
    pub fn offer(
        &mut self,
        mac: MacAddr,
        (pool, range): (Pool, &Range),
        wish: Option<Ipv4Addr>,
        now_ms: u64,
    ) -> Result<Ipv4Addr, LeaseError> {
        self.declined.retain(|_, until| *until > now_ms);
        let own = self.by_mac.get(&mac).map(|e| e.lease.address);
        let free = |a: &Ipv4Addr| range.contains(*a) && self.is_free(*a, mac, now_ms);
        let address = own
            .filter(free)
            .or_else(|| wish.filter(free))
            .or_else(|| {
                range
                    .iter()
                    .find(|a| !self.by_address.contains_key(a) && free(a))
            })
            .or_else(|| self.longest_ended(range, mac, now_ms))
            .ok_or(LeaseError::Exhausted)?;
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

    /// Gives or renews an address that the client asks for.
    ///
    /// # Errors
    /// [`LeaseError::NotYours`] when it lies outside the pool or another client holds it: the
    /// client has to start again.
    pub fn commit(
        &mut self,
        mac: MacAddr,
        (pool, range): (Pool, &Range),
        address: Ipv4Addr,
        (now_ms, lease_ms): (u64, u64),
    ) -> Result<(), LeaseError> {
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

    /// Ends a lease early. The client is remembered, so that it gets the same address again.
    /// Returns whether there was such a lease.
    pub fn release(&mut self, mac: MacAddr, address: Ipv4Addr, now_ms: u64) -> bool {
        match self.by_mac.get_mut(&mac) {
            Some(entry) if entry.lease.address == address => {
                entry.lease.expires_ms = entry.lease.expires_ms.min(now_ms);
                true
            }
            _ => false,
        }
    }

    /// A client found its address in use by somebody else: nobody gets it for ten minutes.
    /// Returns whether the client had it.
    pub fn decline(&mut self, mac: MacAddr, address: Ipv4Addr, now_ms: u64) -> bool {
        let had = self
            .by_mac
            .get(&mac)
            .is_some_and(|e| e.lease.address == address);
        if had {
            self.by_mac.remove(&mac);
            self.by_address.remove(&address);
            self.declined
                .insert(address, now_ms.saturating_add(DECLINE_HOLD_MS));
        }
        had
    }

    /// The client took another server's offer.
    pub fn forget_offer(&mut self, mac: MacAddr) {
        if self.by_mac.get(&mac).is_some_and(|e| !e.bound)
            && let Some(entry) = self.by_mac.remove(&mac)
        {
            self.by_address.remove(&entry.lease.address);
        }
    }

    /// Whether `mac` may have an address: nobody else holds it and nobody declined it.
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

    fn mac(n: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, n])
    }

    fn take(book: &mut LeaseBook, n: u8, now: u64) -> Result<Ipv4Addr, LeaseError> {
        let (pool, range) = (Pool::Machines, range());
        let address = book.offer(mac(n), (pool, &range), None, now)?;
        book.commit(mac(n), (pool, &range), address, (now, LEASE_MS))?;
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
        let pool = (Pool::Machines, &range());
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
        book.offer(mac(1), (Pool::Machines, &range()), None, 5)
            .unwrap();
        assert_eq!(book.holder(address, LEASE_MS - 1), Some(mac(1)));
        assert_eq!(book.leases().count(), 1);
    }

    #[test]
    fn a_wish_is_granted_when_it_is_free() {
        let mut book = LeaseBook::default();
        let wish = Ipv4Addr::new(10, 0, 0, 12);
        let pool = (Pool::Machines, &range());
        assert_eq!(book.offer(mac(1), pool, Some(wish), 0), Ok(wish));
        assert_ne!(book.offer(mac(2), pool, Some(wish), 0), Ok(wish));
        let outside = Ipv4Addr::new(10, 0, 0, 99);
        assert_ne!(book.offer(mac(3), pool, Some(outside), 0), Ok(outside));
    }

    #[test]
    fn nobody_takes_a_held_or_outside_address() {
        let mut book = LeaseBook::default();
        let first = take(&mut book, 1, 0).unwrap();
        let pool = (Pool::Machines, &range());
        let outside = Ipv4Addr::new(10, 0, 0, 99);
        for address in [first, outside] {
            assert_eq!(
                book.commit(mac(2), pool, address, (1, LEASE_MS)),
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
