//! Rate limit of a logged-in user's own password guesses.

use std::sync::{Mutex, PoisonError};

use proto_types::Timestamp;

use super::attempt_counts::{AttemptCounts, PAIR_MAX};

/// Rate limit of logged-in users who enter a password again, per user.
#[derive(Debug)]
pub(super) struct Guesses(Mutex<AttemptCounts<String>>);

impl Default for Guesses {
    fn default() -> Self {
        Self(Mutex::new(AttemptCounts::new(PAIR_MAX)))
    }
}

impl Guesses {
    /// Counts a guess.
    ///
    /// # Errors
    /// Milliseconds until the next guess is allowed, if the limit is reached.
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
    use super::super::attempt_counts::WINDOW_MS;
    use super::*;

    #[test]
    fn one_users_guesses_are_its_own() {
        let (guesses, now) = (Guesses::default(), Timestamp::from_ms(1));
        let ada = (0..100).filter(|_| guesses.take("ada", now).is_ok());
        assert_eq!(ada.count(), PAIR_MAX as usize);
        guesses.take("bob", now).unwrap();
        guesses.take("ada", now.plus_ms(WINDOW_MS)).unwrap();
    }
}
