//! The key exchange that opens a session (specification, 13.17 to 13.24), without I/O.
//!
//! The console and the BMC exchange random numbers and prove to each other, by HMACs over them,
//! that they know the password. The session's keys are derived from the same numbers.

use std::fmt;

use crate::credentials::Credentials;
use crate::{CipherSuite, IpmiError};

/// Administrator, with name-only lookup of the user (table 13-11). A lookup by name and role fails
/// on BMCs that list the user under another role.
const ROLE: u8 = 0x14;
/// Length of a random number, bytes.
pub(crate) const RANDOM: usize = 16;

/// The console's side of an exchange, from the first message to the session's keys.
pub struct Exchange {
    suite: CipherSuite,
    credentials: Credentials,
    /// Session id of the console, in packets from the BMC.
    console: u32,
    /// Session id of the BMC, in packets to it.
    managed: u32,
    console_random: [u8; RANDOM],
    managed_random: [u8; RANDOM],
    guid: [u8; 16],
}

impl Exchange {
    /// Starts an exchange. `console` and `random` are fresh random numbers; `console` is not 0,
    /// which the specification reserves for packets outside of a session.
    #[must_use]
    pub fn new(
        suite: CipherSuite,
        credentials: Credentials,
        console: u32,
        random: [u8; RANDOM],
    ) -> Self {
        Self {
            suite,
            credentials,
            console,
            managed: 0,
            console_random: random,
            managed_random: [0; RANDOM],
            guid: [0; 16],
        }
    }

    /// RMCP+ Open Session Request (13.17).
    #[must_use]
    pub fn open_request(&self) -> Vec<u8> {
        // 0x04 asks for "administrator" as the highest privilege of the session. The BMC refuses to
        // raise it later.
        let mut body = vec![0, 0x04, 0, 0];
        body.extend(self.console.to_le_bytes());
        let algorithms = [self.suite.authentication(), self.suite.integrity(), 0x01];
        // One payload of eight bytes for each algorithm: authentication, integrity, encryption.
        for (kind, algorithm) in (0u8..).zip(algorithms) {
            body.extend([kind, 0, 0, 8, algorithm, 0, 0, 0]);
        }
        body
    }

    /// Takes the answer to [`Self::open_request`].
    ///
    /// # Errors
    /// [`IpmiError::Refused`] with the BMC's status, or [`IpmiError::Malformed`].
    pub fn open_response(&mut self, body: &[u8]) -> Result<(), IpmiError> {
        let what = "the session request";
        status(body, what)?;
        let id = body.get(8..12).ok_or(IpmiError::Malformed { what })?;
        self.managed = u32::from_le_bytes([id[0], id[1], id[2], id[3]]);
        Ok(())
    }

    /// RAKP message 1 (13.20).
    #[must_use]
    pub fn message1(&self) -> Vec<u8> {
        let mut body = vec![0, 0, 0, 0];
        body.extend(self.managed.to_le_bytes());
        body.extend(self.console_random);
        body.extend([ROLE, 0, 0]);
        body.extend(&self.name()[1..]);
        body
    }

    /// Takes RAKP message 2 (13.21) and checks that the BMC knows the password.
    ///
    /// # Errors
    /// [`IpmiError::WrongPassword`], [`IpmiError::Refused`] or [`IpmiError::Malformed`].
    pub fn message2(&mut self, body: &[u8]) -> Result<(), IpmiError> {
        let what = "RAKP message 2";
        status(body, "the user")?;
        let malformed = || IpmiError::Malformed { what };
        let code = body
            .get(40..40 + self.suite.hmac_len())
            .ok_or_else(malformed)?;
        self.managed_random.copy_from_slice(&body[8..24]);
        self.guid.copy_from_slice(&body[24..40]);
        let console = self.console.to_le_bytes();
        let managed = self.managed.to_le_bytes();
        let name = self.name();
        let parts: [&[u8]; 6] = [
            &console,
            &managed,
            &self.console_random,
            &self.managed_random,
            &self.guid,
            &name,
        ];
        // Without a valid proof message 3 is never sent: its HMAC would let an impostor guess the
        // password offline.
        if self.suite.verify(self.credentials.password(), &parts, code) {
            return Ok(());
        }
        Err(IpmiError::WrongPassword)
    }

    /// RAKP message 3 (13.22): the console's proof of the password.
    #[must_use]
    pub fn message3(&self) -> Vec<u8> {
        let mut body = vec![0, 0, 0, 0];
        body.extend(self.managed.to_le_bytes());
        let console = self.console.to_le_bytes();
        let parts: [&[u8]; 3] = [&self.managed_random, &console, &self.name()];
        body.extend(self.suite.hmac(self.credentials.password(), &parts));
        body
    }

    /// Takes RAKP message 4 (13.23) and derives the keys of the session.
    ///
    /// # Errors
    /// [`IpmiError::WrongPassword`], [`IpmiError::Refused`] or [`IpmiError::Malformed`].
    pub fn message4(&self, body: &[u8]) -> Result<Keys, IpmiError> {
        status(body, "the password")?;
        // Unlike message 2, this one carries the HMAC truncated to the length of the integrity
        // algorithm.
        let length = self.suite.integrity_len();
        let what = "RAKP message 4";
        let code = body
            .get(8..8 + length)
            .ok_or(IpmiError::Malformed { what })?;
        // The session integrity key (13.31). The specification permits a separate BMC key K_G;
        // without one, which is what machines are shipped with, the password takes its place.
        let parts: [&[u8]; 3] = [&self.console_random, &self.managed_random, &self.name()];
        let session_key = self.suite.hmac(self.credentials.password(), &parts);
        let managed = self.managed.to_le_bytes();
        let parts: [&[u8]; 3] = [&self.console_random, &managed, &self.guid];
        if !self.suite.verify(&session_key, &parts, code) {
            return Err(IpmiError::WrongPassword);
        }
        Ok(Keys::derive(self.suite, &session_key))
    }

    /// The session id that packets to the BMC carry.
    #[must_use]
    pub fn managed(&self) -> u32 {
        self.managed
    }

    /// Role, length of the name, name: the order in which the HMACs cover them.
    fn name(&self) -> Vec<u8> {
        let user = self.credentials.user();
        let mut name = vec![ROLE, u8::try_from(user.len()).unwrap_or(u8::MAX)];
        name.extend(user);
        name
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

fn status(body: &[u8], what: &'static str) -> Result<(), IpmiError> {
    match body.get(1) {
        None => Err(IpmiError::Malformed { what }),
        Some(0) => Ok(()),
        Some(0x11) => Err(IpmiError::NoSuite),
        Some(&status) => Err(IpmiError::Refused { what, status }),
    }
}

/// The keys of a session (13.31, 13.32). `Debug` shows the suite only.
pub struct Keys {
    suite: CipherSuite,
    integrity: Vec<u8>,
    encryption: [u8; 16],
}

impl Keys {
    /// Derives K1 (integrity) and K2 (encryption) from the session integrity key.
    #[must_use]
    pub fn derive(suite: CipherSuite, session_key: &[u8]) -> Self {
        // The constants have 20 bytes with SHA-256 too. AES-128 takes the first 16 bytes of K2.
        let second = suite.hmac(session_key, &[&[0x02; 20]]);
        let mut encryption = [0; 16];
        encryption.copy_from_slice(&second[..16]);
        Self {
            suite,
            integrity: suite.hmac(session_key, &[&[0x01; 20]]),
            encryption,
        }
    }

    pub(crate) fn suite(&self) -> CipherSuite {
        self.suite
    }

    pub(crate) fn encryption(&self) -> &[u8; 16] {
        &self.encryption
    }

    pub(crate) fn integrity_code(&self, packet: &[u8]) -> Vec<u8> {
        let mut code = self.suite.hmac(&self.integrity, &[packet]);
        code.truncate(self.suite.integrity_len());
        code
    }

    pub(crate) fn verify(&self, packet: &[u8], code: &[u8]) -> bool {
        // `CipherSuite::verify` takes any prefix of the HMAC. Without this check a one-byte code
        // would be accepted once in 256 tries.
        code.len() == self.suite.integrity_len()
            && self.suite.verify(&self.integrity, &[packet], code)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::managed::Managed;

    const MANAGED: u32 = 0x0000_00aa;

    /// A console, and a BMC that has answered its first message.
    fn pair(suite: CipherSuite) -> (Exchange, Managed) {
        let credentials = Credentials::new("admin", "secret").expect("short enough");
        let mut exchange = Exchange::new(suite, credentials, 0x1234, [7; 16]);
        let opened = Managed::open(&exchange.open_request(), MANAGED, [9; 16], [5; 16]);
        let (bmc, answer) = opened.expect("it knows the suite");
        exchange.open_response(&answer).expect("the BMC agrees");
        assert_eq!((exchange.managed(), bmc.console()), (MANAGED, 0x1234));
        (exchange, bmc)
    }

    fn knows(password: &'static [u8]) -> impl FnOnce(&str) -> Option<Vec<u8>> {
        move |user| (user == "admin").then(|| password.to_vec())
    }

    #[test]
    fn both_sides_agree_on_the_keys() {
        for suite in CipherSuite::PREFERRED {
            let (mut exchange, mut bmc) = pair(suite);
            let answer = bmc.message2(&exchange.message1(), knows(b"secret"));
            exchange
                .message2(&answer.expect("the user is known"))
                .expect("the BMC knows the password");
            let (answer, theirs) = bmc.message4(&exchange.message3()).expect("as we do");
            let ours = exchange.message4(&answer).expect("and proves it again");
            assert_eq!((ours.suite(), theirs.suite()), (suite, suite));
            assert_eq!(ours.integrity_code(b"x"), theirs.integrity_code(b"x"));
        }
    }

    #[test]
    fn a_bmc_with_another_password_is_refused_and_refuses() {
        for suite in CipherSuite::PREFERRED {
            let (mut exchange, mut bmc) = pair(suite);
            assert!(bmc.message4(&exchange.message3()).is_none(), "too early");
            let answer = bmc.message2(&exchange.message1(), knows(b"another"));
            let got = exchange.message2(&answer.expect("the user is known"));
            assert!(matches!(got, Err(IpmiError::WrongPassword)), "{got:?}");
            assert!(bmc.message4(&exchange.message3()).is_none());
        }
    }

    #[test]
    fn refusals_and_short_answers_are_errors() {
        let (mut exchange, mut bmc) = pair(CipherSuite::Sha1);
        let no_suite = exchange.open_response(&[0, 0x11, 0, 0]);
        assert!(matches!(no_suite, Err(IpmiError::NoSuite)), "{no_suite:?}");
        let unknown = exchange.message2(&[0, 0x0d, 0, 0]);
        assert!(
            matches!(unknown, Err(IpmiError::Refused { status: 0x0d, .. })),
            "{unknown:?}"
        );
        for size in 0..60 {
            assert!(exchange.message2(&vec![0; size]).is_err(), "{size}");
        }
        assert!(exchange.message4(&[0; 8]).is_err());
        let (open, first) = (exchange.open_request(), exchange.message1());
        for size in 0..first.len() {
            assert!(bmc.message2(&first[..size], knows(b"secret")).is_none());
        }
        for size in 0..open.len() {
            assert!(Managed::open(&open[..size], 1, [0; 16], [0; 16]).is_none());
        }
    }
}
