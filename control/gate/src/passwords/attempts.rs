//! How often somebody may try: per caller and login, so that guessing is slow; per login, so that
//! many callers together are slow, too; per caller, so that many logins are.
//!
//! Invariants: a refused attempt leaves nothing behind; a table that is full makes room, so that no
//! number of strangers keeps others from trying; who logged in before from the same place is not
//! kept out by what strangers try on its login.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use proto_types::Timestamp;

/// Attempts are counted for so long, milliseconds: five minutes.
const WINDOW_MS: u64 = 5 * 60_000;
/// Attempts of one caller on one login in that time.
pub(super) const PAIR_MAX: u32 = 10;
/// Attempts of strangers on one login.
const LOGIN_MAX: u32 = 100;
/// Attempts of one caller.
const CALLER_MAX: u32 = 60;
/// Counts of one kind at the same time. When all are in use, the smallest ones make room.
const COUNTS_MAX: usize = 10_000;
/// Longest login that is told from others, characters: no user has a longer one.
const LOGIN_CHARS_MAX: usize = 128;
/// A place from which somebody logged in is remembered for so long, milliseconds: 30 days.
const FAMILIAR_MS: u64 = 30 * 24 * 3_600_000;

#[derive(Debug, Clone, Copy)]
struct Count {
    began: Timestamp,
    attempts: u32,
}

/// Counts of one kind, each for one window.
#[derive(Debug)]
struct Counts<K> {
    max: u32,
    counts: BTreeMap<K, Count>,
}

impl<K: Ord + Clone> Counts<K> {
    const fn new(max: u32) -> Self {
        Self {
            max,
            counts: BTreeMap::new(),
        }
    }

    /// Milliseconds until another attempt is counted; 0 when it may be made now.
    fn wait_ms(&self, key: &K, now: Timestamp) -> u64 {
        self.counts.get(key).map_or(0, |count| {
            let age = now.since_ms(count.began);
            match count.attempts >= self.max {
                true => WINDOW_MS.saturating_sub(age),
                false => 0,
            }
        })
    }

    fn add(&mut self, key: K, now: Timestamp) {
        if self.counts.len() >= COUNTS_MAX && !self.counts.contains_key(&key) {
            self.make_room(now);
        }
        let fresh = Count {
            began: now,
            attempts: 0,
        };
        let count = self.counts.entry(key).or_insert(fresh);
        if now.since_ms(count.began) >= WINDOW_MS {
            *count = fresh;
        }
        count.attempts = count.attempts.saturating_add(1);
    }

    /// Forgets what is over, else a tenth of the rest: those that tried least. A login or caller
    /// with many attempts stays, however many others come after it.
    fn make_room(&mut self, now: Timestamp) {
        (self.counts).retain(|_, count| now.since_ms(count.began) < WINDOW_MS);
        if self.counts.len() < COUNTS_MAX {
            return;
        }
        let mut all: Vec<(u32, Timestamp, K)> = self
            .counts
            .iter()
            .map(|(key, count)| (count.attempts, count.began, key.clone()))
            .collect();
        all.sort_unstable();
        for (_, _, key) in all.iter().take(COUNTS_MAX / 10) {
            self.counts.remove(key);
        }
    }

    /// Takes back an attempt that turned out to be good.
    fn forgive(&mut self, key: &K) {
        if let Some(count) = self.counts.get_mut(key) {
            count.attempts = count.attempts.saturating_sub(1);
        }
    }
}

#[derive(Debug)]
struct Tables {
    pairs: Counts<(IpAddr, String)>,
    logins: Counts<String>,
    callers: Counts<IpAddr>,
    /// When somebody last logged in from a place.
    familiar: BTreeMap<(IpAddr, String), Timestamp>,
}

/// The attempts of the last minutes, on this node.
#[derive(Debug)]
pub struct Attempts(Mutex<Tables>);

impl Default for Attempts {
    fn default() -> Self {
        Self(Mutex::new(Tables {
            pairs: Counts::new(PAIR_MAX),
            logins: Counts::new(LOGIN_MAX),
            callers: Counts::new(CALLER_MAX),
            familiar: BTreeMap::new(),
        }))
    }
}

impl Attempts {
    /// Counts an attempt; says whether the caller is a stranger to this login.
    ///
    /// # Errors
    /// Seconds to wait, when there were too many.
    pub fn take(&self, caller: IpAddr, login: &str, now: Timestamp) -> Result<bool, u64> {
        let caller = place_of(caller);
        let pair = (caller, bounded(login));
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stranger = !tables.is_familiar(&pair, now);
        let mut wait_ms = tables.callers.wait_ms(&caller, now);
        wait_ms = wait_ms.max(tables.pairs.wait_ms(&pair, now));
        if is_stranger {
            wait_ms = wait_ms.max(tables.logins.wait_ms(&pair.1, now));
        }
        if wait_ms > 0 {
            return Err(wait_ms.div_ceil(1000));
        }
        tables.callers.add(caller, now);
        if is_stranger {
            tables.logins.add(pair.1.clone(), now);
        }
        tables.pairs.add(pair, now);
        Ok(is_stranger)
    }

    /// Counts an attempt that names no login.
    ///
    /// # Errors
    /// Seconds to wait, when there were too many.
    pub fn take_caller(&self, caller: IpAddr, now: Timestamp) -> Result<(), u64> {
        let caller = place_of(caller);
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tables.callers.wait_ms(&caller, now) {
            0 => {
                tables.callers.add(caller, now);
                Ok(())
            }
            wait_ms => Err(wait_ms.div_ceil(1000)),
        }
    }

    /// Somebody logged in: its attempts were no guesses, and it is no stranger here.
    pub fn succeeded(&self, caller: IpAddr, login: &str, now: Timestamp) {
        let pair = (place_of(caller), bounded(login));
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.callers.forgive(&pair.0);
        tables.pairs.counts.remove(&pair);
        tables.remember(pair, now);
    }
}

impl Tables {
    fn is_familiar(&self, pair: &(IpAddr, String), now: Timestamp) -> bool {
        let last = self.familiar.get(pair);
        last.is_some_and(|last| now.since_ms(*last) < FAMILIAR_MS)
    }

    fn remember(&mut self, pair: (IpAddr, String), now: Timestamp) {
        if self.familiar.len() >= COUNTS_MAX && !self.familiar.contains_key(&pair) {
            let oldest = self.familiar.iter().min_by_key(|(_, last)| **last);
            if let Some(oldest) = oldest.map(|(pair, _)| pair.clone()) {
                self.familiar.remove(&oldest);
            }
        }
        self.familiar.insert(pair, now);
    }
}

fn bounded(login: &str) -> String {
    login.chars().take(LOGIN_CHARS_MAX).collect()
}

/// The place that counts as one caller: of IPv6 everybody has a whole network.
fn place_of(caller: IpAddr) -> IpAddr {
    match caller {
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_none() => {
            IpAddr::V6((u128::from(ip) & !u128::from(u64::MAX)).into())
        }
        caller => caller.to_canonical(),
    }
}

/// How often users who are logged in say a password again: each by itself.
#[derive(Debug)]
pub(super) struct Guesses(Mutex<Counts<String>>);

impl Default for Guesses {
    fn default() -> Self {
        Self(Mutex::new(Counts::new(PAIR_MAX)))
    }
}

impl Guesses {
    /// Counts a guess.
    ///
    /// # Errors
    /// Milliseconds to wait, when there were too many.
    pub(super) fn take(&self, login: &str, now: Timestamp) -> Result<(), u64> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.wait_ms(&login.to_owned(), now) {
            0 => {
                counts.add(login.to_owned(), now);
                Ok(())
            }
            wait_ms => Err(wait_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn places(attempts: &Attempts) -> [usize; 3] {
        let tables = attempts.0.lock().unwrap();
        [
            tables.pairs.counts.len(),
            tables.logins.counts.len(),
            tables.callers.counts.len(),
        ]
    }

    #[test]
    fn guessing_is_slow_and_ends() {
        let attempts = Attempts::default();
        let now = Timestamp::from_ms(1_000_000);
        for _ in 0..PAIR_MAX {
            attempts.take(ip(1), "ada", now).unwrap();
        }
        assert_eq!(attempts.take(ip(1), "ada", now), Err(300));
        attempts.take(ip(2), "ada", now).unwrap();
        attempts.take(ip(1), "bob", now).unwrap();
        attempts.take(ip(1), "ada", now.plus_ms(WINDOW_MS)).unwrap();
    }

    #[test]
    fn many_callers_and_many_logins_are_bounded() {
        let now = Timestamp::from_ms(1);
        let attempts = Attempts::default();
        let refused = (0..=LOGIN_MAX).filter(|number| {
            let caller = ip(u8::try_from(*number).unwrap());
            attempts.take(caller, "ada", now).is_err()
        });
        assert_eq!(refused.count(), 1);
        let refused = (0..=CALLER_MAX).filter(|number| {
            let login = number.to_string();
            attempts.take(ip(200), &login, now).is_err()
        });
        assert_eq!(refused.count(), 1);
    }

    #[test]
    fn a_refused_attempt_leaves_nothing_behind() {
        let (attempts, now) = (Attempts::default(), Timestamp::from_ms(1));
        for number in 0..CALLER_MAX {
            attempts.take(ip(1), &number.to_string(), now).unwrap();
        }
        let before = places(&attempts);
        for number in 0..5_100 {
            let login = format!("other-{number}");
            assert!(attempts.take(ip(1), &login, now).is_err(), "{number}");
        }
        assert_eq!(places(&attempts), before);
        attempts.take(ip(2), "ada", now).unwrap();
    }

    #[test]
    fn strangers_without_number_keep_nobody_out() {
        let attempts = Attempts::default();
        let now = Timestamp::ZERO;
        for _ in 0..CALLER_MAX {
            attempts.take_caller(ip(1), now).unwrap();
        }
        for number in 0..3 * u32::try_from(COUNTS_MAX).unwrap() {
            let caller = IpAddr::from((number + (11 << 24)).to_be_bytes());
            attempts.take(caller, &number.to_string(), now).unwrap();
        }
        assert!(places(&attempts).iter().all(|length| *length <= COUNTS_MAX));
        attempts.take(ip(2), "ada", now).unwrap();
        // Who was over its bound did not come back through them.
        assert!(attempts.take(ip(1), "ada", now).is_err());
    }

    #[test]
    fn strangers_do_not_lock_a_user_out_at_home() {
        let attempts = Attempts::default();
        let now = Timestamp::from_ms(1);
        assert_eq!(attempts.take(ip(250), "ada", now), Ok(true));
        attempts.succeeded(ip(250), "ada", now);
        let strangers = (0..=LOGIN_MAX).map(|number| ip(u8::try_from(number).unwrap()));
        let refused = strangers.filter(|caller| attempts.take(*caller, "ada", now).is_err());
        assert!(refused.count() > 0);
        assert_eq!(attempts.take(ip(250), "ada", now), Ok(false));
        // There, too, guessing is slow.
        let guesses = (0..2 * PAIR_MAX).filter(|_| attempts.take(ip(250), "ada", now).is_ok());
        assert_eq!(guesses.count(), PAIR_MAX as usize - 1);
    }

    #[test]
    fn one_users_guesses_are_its_own() {
        let (guesses, now) = (Guesses::default(), Timestamp::from_ms(1));
        let ada = (0..100).filter(|_| guesses.take("ada", now).is_ok());
        assert_eq!(ada.count(), PAIR_MAX as usize);
        guesses.take("bob", now).unwrap();
        guesses.take("ada", now.plus_ms(WINDOW_MS)).unwrap();
    }
}
