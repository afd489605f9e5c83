//! How often somebody may try: per caller and login, so that guessing is slow; per login, so that
//! many callers together are slow, too; per caller, so that many logins are.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use proto_types::Timestamp;

/// Attempts are counted for so long, milliseconds: five minutes.
const WINDOW_MS: u64 = 5 * 60_000;
/// Attempts of one caller on one login in that time.
pub(super) const PAIR_MAX: u32 = 10;
/// Attempts on one login.
const LOGIN_MAX: u32 = 100;
/// Attempts of one caller.
const CALLER_MAX: u32 = 60;
/// Counts at the same time; when all are in use, nobody new may try.
const COUNTS_MAX: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Pair(IpAddr, String),
    Login(String),
    Caller(IpAddr),
}

#[derive(Debug)]
struct Count {
    began: Timestamp,
    attempts: u32,
}

/// The attempts of the last minutes, on this node.
#[derive(Debug, Default)]
pub(super) struct Attempts(Mutex<BTreeMap<What, Count>>);

impl Attempts {
    /// Counts an attempt.
    ///
    /// # Errors
    /// Seconds to wait, when there were too many.
    pub(super) fn take(&self, caller: IpAddr, login: &str, now: Timestamp) -> Result<(), u64> {
        // Of IPv6 everybody has a whole network.
        let caller = match caller {
            IpAddr::V6(ip) if ip.to_ipv4_mapped().is_none() => {
                IpAddr::V6((u128::from(ip) & !u128::from(u64::MAX)).into())
            }
            caller => caller.to_canonical(),
        };
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() + 3 > COUNTS_MAX {
            counts.retain(|_, count| now.since_ms(count.began) < WINDOW_MS);
        }
        if counts.len() + 3 > COUNTS_MAX {
            return Err(WINDOW_MS / 1000);
        }
        let mut wait = 0;
        for (what, max) in [
            (What::Pair(caller, login.to_owned()), PAIR_MAX),
            (What::Login(login.to_owned()), LOGIN_MAX),
            (What::Caller(caller), CALLER_MAX),
        ] {
            let count = counts.entry(what).or_insert(Count {
                began: now,
                attempts: 0,
            });
            if now.since_ms(count.began) >= WINDOW_MS {
                *count = Count {
                    began: now,
                    attempts: 0,
                };
            }
            count.attempts = count.attempts.saturating_add(1);
            if count.attempts > max {
                let left = WINDOW_MS.saturating_sub(now.since_ms(count.began));
                wait = wait.max(left.div_ceil(1000));
            }
        }
        if wait == 0 { Ok(()) } else { Err(wait) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
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
    fn memory_is_bounded() {
        let attempts = Attempts::default();
        for number in 0..u32::try_from(COUNTS_MAX).unwrap() {
            let caller = IpAddr::from(number.to_be_bytes());
            let taken = attempts.take(caller, &number.to_string(), Timestamp::ZERO);
            assert!(taken.is_ok() || number > 3000, "{number}");
        }
        assert!(attempts.0.lock().unwrap().len() <= COUNTS_MAX);
        let later = Timestamp::from_ms(WINDOW_MS);
        attempts.take(ip(1), "ada", later).unwrap();
    }
}
