//! The administrator's password for the console, made anew for each installation.

use anyhow::Result;
use sha_crypt::{Algorithm, Params, PasswordHasher, ShaCrypt};

/// Characters of the console password: 93 bits of 57 letters and digits.
const CONSOLE_PASSWORD_LEN: usize = 16;

/// A console password and its hash.
pub(super) struct ConsolePassword {
    /// The line's value in /etc/shadow (SHA-512 crypt).
    pub(super) hash: String,
    /// The password in clear text.
    pub(super) password: String,
}

/// Makes a random password.
pub(super) fn generate() -> Result<ConsolePassword> {
    let password = random_text(CONSOLE_PASSWORD_LEN);
    let salt: [u8; 12] = rand::random();
    let hasher = ShaCrypt::new(Algorithm::Sha512Crypt, Params::RECOMMENDED);
    let hash = hasher
        .hash_password_with_salt(password.as_bytes(), &salt)
        .map_err(|e| anyhow::anyhow!("cannot hash the console password: {e}"))?;
    Ok(ConsolePassword {
        hash: hash.to_string(),
        password,
    })
}

/// Random letters and digits, without those that look alike (l, I, O, 0, 1).
fn random_text(len: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    (0..len)
        .map(|_| char::from(LETTERS[rand::random_range(0..LETTERS.len())]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_password_is_hashed() {
        let ConsolePassword { hash, password } = generate().unwrap();
        assert_eq!(password.len(), CONSOLE_PASSWORD_LEN);
        assert!(hash.starts_with("$6$") && !hash.contains(':') && !hash.contains(&password));
    }
}
