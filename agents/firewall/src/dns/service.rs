use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use tracing::{debug, warn};

use super::address_of;
use super::answer::ResolvedAddress;
use super::learned::LearnedNames;
use super::limits::NameLimits;
use super::saved::SavedName;
use crate::netlink::{Kernel, NetlinkError, TimedElement};
use crate::rule::RuleSet;

/// Generations of the kernel's rules that are remembered as made here. The agent asks for them each
/// second.
const OWN_GENERATIONS_MAX: usize = 65_536;
/// Elements of a refill in the kernel may be shorter than ours by this much, because both clocks
/// began at different moments.
const LIFETIME_TOLERANCE: Duration = Duration::from_secs(2);

/// The addresses of names, here and in the kernel's sets.
///
/// The kernel is changed before an answer is passed on, so that a client that connects at once is
/// let through.
#[derive(Debug)]
pub struct NameService {
    kernel: Mutex<Kernel>,
    learned: Mutex<LearnedNames>,
    /// Generations of the kernel's rules that this has made.
    own: Mutex<BTreeSet<u32>>,
}

impl NameService {
    /// Opens the kernel's nftables, in the network namespace of this thread.
    ///
    /// # Errors
    /// [`NetlinkError::Open`].
    pub fn open(limits: NameLimits) -> Result<Self, NetlinkError> {
        Ok(Self {
            kernel: Mutex::new(Kernel::open()?),
            learned: Mutex::new(LearnedNames::new(limits)),
            own: Mutex::default(),
        })
    }

    /// Takes over the names of rules that are in force, and makes the kernel's sets and what was
    /// learned equal: addresses that new rules forbid go, addresses that the kernel lacks come back.
    ///
    /// # Errors
    /// The kernel cannot be read or changed.
    pub fn configure(&self, rules: &RuleSet) -> Result<(), NetlinkError> {
        let names = rules.selectors();
        let forbidden = {
            let mut learned = self.learned.lock();
            learned.configure(&names, rules)
        };
        if names.is_empty() {
            return Ok(());
        }
        let kernel = self.kernel.lock();
        let made = kernel.remove_timed(&forbidden)?;
        self.remember(made);
        self.refill(&kernel)
    }

    /// Makes the kernel's sets and what was learned equal. Both may know more than the other: the
    /// agent was killed, or somebody else removed the table.
    fn refill(&self, kernel: &Kernel) -> Result<(), NetlinkError> {
        let now = Instant::now();
        let mut learned = self.learned.lock();
        learned.expire(now);
        let names: Vec<_> = learned.names().cloned().collect();
        let mut held: BTreeMap<(String, Vec<u8>), Duration> = BTreeMap::new();
        let mut forbidden = Vec::new();
        for name in &names {
            for set in [name.set(true), name.set(false)] {
                for element in kernel.timed(&set)? {
                    let address = address_of(&element.key);
                    let until = now + element.lifetime;
                    let adopted = address.is_some_and(|own| learned.adopt(name, own, until, now));
                    if adopted {
                        held.insert((element.set, element.key), element.lifetime);
                    } else {
                        forbidden.push(element);
                    }
                }
            }
        }
        let mut missing = learned.elements(now);
        missing.retain(|element| {
            let key = (element.set.clone(), element.key.clone());
            let own = held.get(&key);
            own.is_none_or(|lifetime| *lifetime + LIFETIME_TOLERANCE < element.lifetime)
        });
        drop(learned);
        let made = kernel.remove_timed(&forbidden)?;
        self.remember(made);
        let made = kernel.put_timed(&missing)?;
        self.remember(made);
        Ok(())
    }

    /// Takes over the addresses of this host: no name leads to one of them.
    pub fn set_own(&self, own: &BTreeSet<IpAddr>) {
        let forbidden = self.learned.lock().set_own(own);
        self.remove(&forbidden);
    }

    /// Removes elements from the kernel.
    fn remove(&self, elements: &[TimedElement]) {
        if elements.is_empty() {
            return;
        }
        match self.kernel.lock().remove_timed(elements) {
            Ok(made) => self.remember(made),
            // They end with their lifetimes, or with the repair of the table.
            Err(error) => warn!(
                error = %base_runtime::Chain(&error),
                "addresses of names stay in the kernel"
            ),
        }
    }

    /// Learns the addresses of a name that a client asked for, and puts them into the kernel.
    pub fn learn(&self, name: &str, resolved: &[ResolvedAddress], client: IpAddr) {
        let now = Instant::now();
        let outcome = self.learned.lock().learn(name, resolved, client, now);
        self.remove(&outcome.evicted);
        if !outcome.forbidden.is_empty() {
            let address = outcome.forbidden.first();
            warn!(
                name,
                ?address,
                "a name leads to an address that no policy may reach; it is not let through"
            );
        }
        if outcome.without_room > 0 {
            let addresses = outcome.without_room;
            warn!(name, addresses, "there is no room for addresses of a name");
        }
        if outcome.elements.is_empty() {
            return;
        }
        debug!(name, addresses = outcome.elements.len(), "learned");
        match self.kernel.lock().put_timed(&outcome.elements) {
            Ok(made) => self.remember(made),
            // The addresses stay known here: the repair of the table puts them into the kernel.
            Err(error) => warn!(
                name,
                error = %base_runtime::Chain(&error),
                "the addresses of a name are not in the kernel yet"
            ),
        }
    }

    /// `true` if every generation after `last`, up to `current`, was made here.
    #[must_use]
    pub fn made_all_since(&self, last: u32, current: u32) -> bool {
        let own = self.own.lock();
        last < current && (last + 1..=current).all(|generation| own.contains(&generation))
    }

    fn remember(&self, made: Vec<u32>) {
        let mut own = self.own.lock();
        own.extend(made);
        while own.len() > OWN_GENERATIONS_MAX {
            own.pop_first();
        }
    }

    /// The learned addresses, to be kept.
    #[must_use]
    pub fn save(&self) -> Vec<SavedName> {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let learned = self.learned.lock();
        let valid = learned.all().filter(|own| own.until > now);
        valid
            .map(|own| SavedName::new(own.name, own.address, wall + (own.until - now)))
            .collect()
    }

    /// Takes over what was kept, as far as rules want it: call [`Self::configure`] before and after.
    pub fn restore(&self, saved: &[SavedName]) {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let mut learned = self.learned.lock();
        let longest = NameLimits::default().lifetime_max;
        for own in saved {
            let rest = own.until().duration_since(wall).unwrap_or_default();
            let Some(name) = own.selector().filter(|_| !rest.is_zero()) else {
                continue;
            };
            // A clock that was set back must not make an address stay for ever.
            learned.adopt(&name, own.address, now + rest.min(longest), now);
        }
    }

    /// The addresses of every name.
    #[must_use]
    pub fn addresses(&self) -> BTreeMap<String, BTreeSet<IpAddr>> {
        let now = Instant::now();
        let mut found: BTreeMap<String, BTreeSet<IpAddr>> = BTreeMap::new();
        for own in self.learned.lock().all().filter(|own| own.until > now) {
            let name = own.name.to_string();
            found.entry(name).or_default().insert(own.address);
        }
        found
    }

    /// Elements that the kernel should have, for tests.
    #[must_use]
    pub fn elements(&self) -> Vec<TimedElement> {
        self.learned.lock().elements(Instant::now())
    }
}
