//! The BMC's side of the key exchange, without I/O, for simulated BMCs.

use std::fmt;

use crate::CipherSuite;
use crate::rakp::{Keys, RANDOM};

/// A session on the BMC while it is being opened.
pub struct Managed {
    suite: CipherSuite,
    /// Session id that the console chose, for packets to the console.
    console: u32,
    /// Session id that the BMC chose, for packets to the BMC.
    id: u32,
    random: [u8; RANDOM],
    guid: [u8; 16],
    asked: Option<Asked>,
}

/// The contents of RAKP message 1.
struct Asked {
    console_random: [u8; RANDOM],
    /// Role, length of the name, name.
    name: Vec<u8>,
    password: Vec<u8>,
}

impl Managed {
    /// Answers an Open Session Request (13.17) with a response (13.18). `id`, which is not 0, and
    /// `random` are fresh. `None` means that it is malformed or asks for unsupported algorithms.
    #[must_use]
    pub fn open(
        request: &[u8],
        id: u32,
        random: [u8; RANDOM],
        guid: [u8; 16],
    ) -> Option<(Self, Vec<u8>)> {
        let console = u32::from_le_bytes(request.get(4..8)?.try_into().ok()?);
        let algorithms = request.get(8..32)?;
        // Each algorithm is the fifth byte of a payload of eight bytes. The encryption is not
        // compared: both suites use AES-CBC-128.
        let suite = CipherSuite::PREFERRED.into_iter().find(|suite| {
            algorithms[4] == suite.authentication() && algorithms[12] == suite.integrity()
        })?;
        let mut answer = vec![request[0], 0, request[1], 0];
        answer.extend(console.to_le_bytes());
        answer.extend(id.to_le_bytes());
        answer.extend(algorithms);
        let session = Self {
            suite,
            console,
            id,
            random,
            guid,
            asked: None,
        };
        Some((session, answer))
    }

    /// Answers RAKP message 1 (13.20) with message 2 (13.21). `password` returns the password of a
    /// user. `None` means that the message is malformed or the user does not exist.
    #[must_use]
    pub fn message2(
        &mut self,
        message1: &[u8],
        password: impl FnOnce(&str) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let console_random = message1.get(8..24)?.try_into().ok()?;
        let size = usize::from(*message1.get(27)?);
        let user = message1.get(28..28 + size)?;
        let password = password(std::str::from_utf8(user).ok()?)?;
        let name = [&[message1[24], message1[27]], user].concat();
        let asked = Asked {
            console_random,
            name,
            password,
        };
        let (console, id) = (self.console.to_le_bytes(), self.id.to_le_bytes());
        let parts: [&[u8]; 6] = [
            &console,
            &id,
            &asked.console_random,
            &self.random,
            &self.guid,
            &asked.name,
        ];
        let code = self.suite.hmac(&asked.password, &parts);
        let mut answer = vec![message1[0], 0, 0, 0];
        answer.extend(console);
        answer.extend(self.random);
        answer.extend(self.guid);
        answer.extend(code);
        self.asked = Some(asked);
        Some(answer)
    }

    /// Answers RAKP message 3 (13.22) with message 4 (13.23) and derives the keys of the session.
    /// `None` means that the message is malformed, comes too early, or proves another password.
    #[must_use]
    pub fn message4(&self, message3: &[u8]) -> Option<(Vec<u8>, Keys)> {
        let asked = self.asked.as_ref()?;
        // The proof covers this session's random number of the BMC: a recorded message 3 is worth
        // nothing in another session.
        let proof = message3.get(8..8 + self.suite.hmac_len())?;
        let console = self.console.to_le_bytes();
        let parts: [&[u8]; 3] = [&self.random, &console, &asked.name];
        if !self.suite.verify(&asked.password, &parts, proof) {
            return None;
        }
        let parts: [&[u8]; 3] = [&asked.console_random, &self.random, &asked.name];
        let session_key = self.suite.hmac(&asked.password, &parts);
        let id = self.id.to_le_bytes();
        let parts: [&[u8]; 3] = [&asked.console_random, &id, &self.guid];
        let mut code = self.suite.hmac(&session_key, &parts);
        code.truncate(self.suite.integrity_len());
        let mut answer = vec![message3[0], 0, 0, 0];
        answer.extend(console);
        answer.extend(code);
        Some((answer, Keys::derive(self.suite, &session_key)))
    }

    /// The session id that packets to the BMC carry.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The session id that packets to the console carry.
    #[must_use]
    pub fn console(&self) -> u32 {
        self.console
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Managed")
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}
