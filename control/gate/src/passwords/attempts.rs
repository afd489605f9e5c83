//! Rate limits of login attempts: per network and login against guessing, per login against many
//! networks guessing together, per network against trying many logins.
//!
//! Invariants: a refused attempt changes no counter; a full table evicts, so that no number of
//! strangers locks others out; a user who logged in before from the same network is not locked out
//! by attempts of strangers on that login.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use proto_types::Timestamp;

use super::attempt_counts::{AttemptCounts, COUNTS_MAX, PAIR_MAX};

/// Most attempts of all strangers on one login per window.
const LOGIN_MAX: u32 = 100;
/// Most attempts of one network per window, over all logins.
const CALLER_MAX: u32 = 60;
/// Logins are compared up to this many characters; no user has a longer one. Bounds the memory of a
/// counter.
const LOGIN_CHARS_MAX: usize = 128;
/// How long a network from which a user logged in counts as familiar, milliseconds: 30 days.
const FAMILIAR_MS: u64 = 30 * 24 * 3_600_000;

/// A login as tried from one network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct LoginAttempt {
    network: IpAddr,
    login: String,
}

/// The counters of a node, and the networks from which users logged in.
#[derive(Debug)]
struct Tables {
    pairs: AttemptCounts<LoginAttempt>,
    logins: AttemptCounts<String>,
    callers: AttemptCounts<IpAddr>,
    /// Last successful login from each network.
    familiar: BTreeMap<LoginAttempt, Timestamp>,
}

/// Login attempts of the current windows, on this node.
#[derive(Debug)]
pub struct Attempts(Mutex<Tables>);

impl Default for Attempts {
    fn default() -> Self {
        Self(Mutex::new(Tables {
            pairs: AttemptCounts::new(PAIR_MAX),
            logins: AttemptCounts::new(LOGIN_MAX),
            callers: AttemptCounts::new(CALLER_MAX),
            familiar: BTreeMap::new(),
        }))
    }
}

impl Attempts {
    /// Counts an attempt. Returns `true` if this network never logged in as this login.
    ///
    /// # Errors
    /// Seconds until the next attempt is allowed, if a limit is reached.
    pub fn take(&self, caller: IpAddr, login: &str, now: Timestamp) -> Result<bool, u64> {
        let network = network_of(caller);
        let pair = LoginAttempt {
            network,
            login: bounded(login),
        };
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_stranger = !tables.is_familiar(&pair, now);
        let mut wait_ms = tables.callers.wait_ms(&network, now);
        wait_ms = wait_ms.max(tables.pairs.wait_ms(&pair, now));
        // Only strangers count against the login, or anybody could lock its user out.
        if is_stranger {
            wait_ms = wait_ms.max(tables.logins.wait_ms(&pair.login, now));
        }
        // All limits are checked before any is counted: a refused attempt must not use up the
        // others.
        if wait_ms > 0 {
            return Err(wait_ms.div_ceil(1000));
        }
        tables.callers.add(network, now);
        if is_stranger {
            tables.logins.add(pair.login.clone(), now);
        }
        tables.pairs.add(pair, now);
        Ok(is_stranger)
    }

    /// Counts an attempt without a login.
    ///
    /// # Errors
    /// Seconds until the next attempt is allowed, if a limit is reached.
    pub fn take_caller(&self, caller: IpAddr, now: Timestamp) -> Result<(), u64> {
        let network = network_of(caller);
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match tables.callers.wait_ms(&network, now) {
            0 => {
                tables.callers.add(network, now);
                Ok(())
            }
            wait_ms => Err(wait_ms.div_ceil(1000)),
        }
    }

    /// Records a successful login: clears the attempts and makes the network familiar.
    pub fn succeeded(&self, caller: IpAddr, login: &str, now: Timestamp) {
        let pair = LoginAttempt {
            network: network_of(caller),
            login: bounded(login),
        };
        let mut tables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tables.callers.forgive(&pair.network);
        tables.pairs.counts.remove(&pair);
        tables.remember(pair, now);
    }
}

impl Tables {
    fn is_familiar(&self, pair: &LoginAttempt, now: Timestamp) -> bool {
        let last = self.familiar.get(pair);
        last.is_some_and(|last| now.since_ms(*last) < FAMILIAR_MS)
    }

    fn remember(&mut self, pair: LoginAttempt, now: Timestamp) {
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

/// The network that counts as one caller: an IPv4 address, or an IPv6 /64, which one host can fill
/// with addresses at will.
fn network_of(caller: IpAddr) -> IpAddr {
    match caller {
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_none() => {
            IpAddr::V6((u128::from(ip) & !u128::from(u64::MAX)).into())
        }
        caller => caller.to_canonical(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::attempt_counts::WINDOW_MS;
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
        // A network over its limit did not get back in because others filled the table.
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
        // The limit per network and login still holds there.
        let guesses = (0..2 * PAIR_MAX).filter(|_| attempts.take(ip(250), "ada", now).is_ok());
        assert_eq!(guesses.count(), PAIR_MAX as usize - 1);
    }
}
