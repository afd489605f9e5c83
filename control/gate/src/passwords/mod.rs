//! Hashes passwords of built-in users with Argon2id, a bounded number at a time.

mod attempt_counts;
mod attempts;
mod guesses;

use argon2::{Algorithm, Argon2, Params, Version};
use control_state::PasswordHash;
use proto_types::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::sync::Semaphore;
use tonic::Status;

use crate::refusal::invalid;
use guesses::Guesses;

pub use attempts::Attempts;

/// Shortest password, characters.
pub const LEN_MIN: usize = 12;
/// Longest password, bytes.
pub const BYTES_MAX: usize = 1024;
/// Memory of one hash, KiB. With `PASSES` the minimum that OWASP recommends.
const MEMORY_KIB: u32 = 19 << 10;
/// Passes over that memory.
const PASSES: u32 = 2;
/// Length of a salt, bytes.
const SALT_LEN: usize = 16;
/// Length of a hash, bytes.
const HASH_LEN: usize = 32;
/// Most concurrent hashes: each takes its memory and one CPU.
const AT_ONCE_MAX: usize = 2;

/// Most hashes running or queued. Beyond that calls are refused, which bounds the waiting time.
const WAITING_MAX: usize = 64;

/// Hashes and checks passwords.
#[derive(Debug)]
pub struct Hasher {
    room: Semaphore,
    queue: Semaphore,
    guesses: Guesses,
}

impl Default for Hasher {
    fn default() -> Self {
        Self {
            room: Semaphore::new(AT_ONCE_MAX),
            queue: Semaphore::new(WAITING_MAX),
            guesses: Guesses::default(),
        }
    }
}

impl Hasher {
    /// Counts a password entered again by a logged-in user.
    ///
    /// # Errors
    /// Milliseconds until the next one is allowed, if the limit is reached.
    pub fn may_guess(&self, login: &str, now: Timestamp) -> Result<(), u64> {
        self.guesses.take(login, now)
    }

    /// The hash of a new password.
    ///
    /// # Errors
    /// `invalid_argument` when it is too short or too long.
    pub async fn hash(&self, password: String) -> Result<PasswordHash, Status> {
        if password.chars().count() < LEN_MIN || password.len() > BYTES_MAX {
            let rule = format!("must have {LEN_MIN} characters or more, at most {BYTES_MAX} bytes");
            return Err(invalid("password", rule));
        }
        let mut salt = vec![0; SALT_LEN];
        SystemRandom::new().fill(&mut salt).map_err(|_| broken())?;
        let mut made = PasswordHash {
            salt,
            hash: Vec::new(),
            memory_kib: MEMORY_KIB,
            passes: PASSES,
        };
        made.hash = self.compute(password, made.clone()).await?;
        Ok(made)
    }

    /// `true` if the password matches the hash. Without a hash the check takes as long and fails,
    /// so that timing does not tell which logins exist.
    ///
    /// # Errors
    /// `internal` if the hash cannot be computed.
    pub async fn is(&self, password: String, hash: Option<PasswordHash>) -> Result<bool, Status> {
        let is_known = hash.is_some();
        let hash = hash.unwrap_or_else(|| PasswordHash {
            salt: vec![0; SALT_LEN],
            hash: vec![0; HASH_LEN],
            memory_kib: MEMORY_KIB,
            passes: PASSES,
        });
        // No password is this long. An empty one takes its place, to bound the work.
        let password = match password.len() {
            0..=BYTES_MAX => password,
            _ => String::new(),
        };
        let computed = self.compute(password, hash.clone()).await?;
        // Compares all bytes: the time must not tell how many of them match.
        let differs = computed
            .iter()
            .zip(&hash.hash)
            .fold(0, |d, (a, b)| d | (a ^ b));
        Ok(is_known && computed.len() == hash.hash.len() && differs == 0)
    }

    async fn compute(&self, password: String, of: PasswordHash) -> Result<Vec<u8>, Status> {
        let _queued = self.queue.try_acquire().map_err(|_| {
            let text = "too many passwords are checked at this moment; try again in a moment";
            Status::resource_exhausted(text)
        })?;
        let _place = self.room.acquire().await.map_err(|_| broken())?;
        let work = move || {
            let params = Params::new(of.memory_kib, of.passes, 1, Some(HASH_LEN));
            let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params.ok()?);
            let mut out = vec![0; HASH_LEN];
            let done = argon2.hash_password_into(password.as_bytes(), &of.salt, &mut out);
            done.ok().map(|()| out)
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.ok().flatten().ok_or_else(broken)
    }
}

fn broken() -> Status {
    Status::internal("the password could not be checked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn passwords_are_checked() {
        let hasher = Hasher::default();
        let hash = hasher.hash("correct horse battery".into()).await.unwrap();
        assert!(!format!("{hash:?}").contains(&format!("{:?}", hash.hash)));
        for (password, good) in [
            ("correct horse battery", true),
            ("correct horse batterx", false),
            ("", false),
        ] {
            let is = hasher
                .is(password.into(), Some(hash.clone()))
                .await
                .unwrap();
            assert_eq!(is, good, "{password}");
        }
        assert!(
            !hasher
                .is("correct horse battery".into(), None)
                .await
                .unwrap()
        );
        let other = hasher.hash("correct horse battery".into()).await.unwrap();
        assert_ne!(other.hash, hash.hash, "each has its salt");
    }

    #[tokio::test]
    async fn short_and_endless_passwords_are_refused() {
        let hasher = Hasher::default();
        for bad in ["", "eleven char", &"x".repeat(BYTES_MAX + 1)] {
            let refused = hasher.hash(bad.to_owned()).await.unwrap_err();
            assert!(refused.message().contains("12 characters"), "{refused}");
        }
    }
}
