//! The host's TPM 2.0, as far as joining needs it: its identity, and the proof of its presence.
//!
//! Five kinds of commands over the kernel's resource manager (`/dev/tpmrm0`) or the socket of a
//! software TPM, without a C library, because agents are static binaries. The keys are derived from
//! the TPM's own seed each time, so that none is stored.

mod error;
mod wire;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proto_identity::tpm::TpmKey;

use crate::error::KitError;
use wire::{Auth, Command};

pub use error::TpmError;
pub use wire::decode_response;

/// Default path of the TPM: the kernel's resource manager.
pub const TPM_PATH: &str = "/dev/tpmrm0";
/// Longest response, bytes: the size of the kernel's buffer.
const RESPONSE_LEN_MAX: usize = 4096;
/// Longest wait for a response of a software TPM. Hardware takes seconds to make a key.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// `TPM_RC_RETRY`, `_YIELDED`, `_TESTING`: the TPM did not begin the command, which must be
/// repeated.
const BUSY: [u32; 3] = [0x922, 0x908, 0x90a];
/// Repetitions of a command until a busy TPM counts as failed; 5 s with the pauses.
const BUSY_MAX: u32 = 250;
/// Pause before a repetition.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// `TPM_RH_ENDORSEMENT`: the endorsement hierarchy.
const OWNER_OF_ENDORSEMENTS: u32 = 0x4000_000b;

/// An open TPM.
#[derive(Debug)]
pub struct Tpm {
    path: PathBuf,
    channel: TpmChannel,
}

#[derive(Debug)]
enum TpmChannel {
    Device(File),
    Socket(UnixStream),
}

/// The two keys that are loaded in the TPM.
#[derive(Debug)]
pub struct LoadedKeys {
    /// `TPMT_PUBLIC` of the endorsement key.
    pub endorsement: Vec<u8>,
    /// `TPMT_PUBLIC` of a signing key that never leaves this TPM.
    pub attestation: Vec<u8>,
    endorsement_handle: u32,
    attestation_handle: u32,
}

impl Tpm {
    /// Opens a TPM's device or socket.
    ///
    /// # Errors
    /// When it does not exist or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, KitError> {
        let open = || -> io::Result<TpmChannel> {
            if fs::metadata(path)?.file_type().is_socket() {
                let socket = UnixStream::connect(path)?;
                socket.set_read_timeout(Some(ANSWER_TIME_MAX))?;
                return Ok(TpmChannel::Socket(socket));
            }
            let device = OpenOptions::new().read(true).write(true).open(path)?;
            Ok(TpmChannel::Device(device))
        };
        let channel = open().map_err(|e| of(path, e.into()))?;
        Ok(Self {
            path: path.to_owned(),
            channel,
        })
    }

    /// SHA-256 of the endorsement key (SubjectPublicKeyInfo), hex.
    ///
    /// # Errors
    /// When the TPM refuses.
    pub fn fingerprint(&mut self) -> Result<String, KitError> {
        let (handle, area) = self.create(wire::ENDORSEMENT, "CreatePrimary of the EK")?;
        // A TPM has room for about three loaded keys; one left here would take that of another.
        self.flush(handle)?;
        Ok(TpmKey::decode(&area)?.fingerprint())
    }

    /// Makes both keys and loads them.
    ///
    /// # Errors
    /// When the TPM refuses.
    pub fn load(&mut self) -> Result<LoadedKeys, KitError> {
        let (endorsement_handle, endorsement) =
            self.create(wire::ENDORSEMENT, "CreatePrimary of the EK")?;
        let attestation = self.create(wire::ATTESTATION, "CreatePrimary of the AK");
        if attestation.is_err() {
            // The caller gets no handle to unload, and a TPM has room for about three keys.
            self.flush(endorsement_handle)?;
        }
        let (attestation_handle, attestation) = attestation?;
        Ok(LoadedKeys {
            endorsement,
            attestation,
            endorsement_handle,
            attestation_handle,
        })
    }

    /// Unloads the keys, which frees their slots in the TPM.
    ///
    /// # Errors
    /// When the TPM refuses.
    pub fn unload(&mut self, loaded: &LoadedKeys) -> Result<(), KitError> {
        self.flush(loaded.attestation_handle)?;
        self.flush(loaded.endorsement_handle)
    }

    /// Decrypts the secret of a challenge for these keys.
    ///
    /// # Errors
    /// When the challenge is for another TPM, or the TPM refuses.
    pub fn activate(
        &mut self,
        loaded: &LoadedKeys,
        credential: &[u8],
        encrypted_seed: &[u8],
    ) -> Result<Vec<u8>, KitError> {
        // The challenge names the attestation key. The TPM releases the secret only if that key is
        // loaded beside the endorsement key, which proves that both are in this TPM.
        let session = self.policy_session()?;
        let command = Command::new(wire::ACTIVATE_CREDENTIAL)
            .handle(loaded.attestation_handle)
            .handle(loaded.endorsement_handle)
            .auth(Auth::Password)
            .auth(Auth::Session(session))
            .sized(credential)
            .sized(encrypted_seed);
        let answer = self.call(&command, "ActivateCredential");
        if answer.is_err() {
            // The session ends only with a command that succeeds.
            self.flush(session)?;
        }
        let answer = answer?;
        let mut rest = answer.parameters.as_slice();
        let secret = wire::sized(&mut rest).ok_or_else(|| self.malformed())?;
        Ok(secret.to_vec())
    }

    fn create(&mut self, template: &[u8], what: &'static str) -> Result<(u32, Vec<u8>), KitError> {
        let command = Command::new(wire::CREATE_PRIMARY)
            .handle(OWNER_OF_ENDORSEMENTS)
            .auth(Auth::Password)
            // Sensitive data: no password and no content.
            .sized(&[0, 0, 0, 0])
            .sized(template)
            // No outside info and no PCRs.
            .sized(&[])
            .number(0);
        let answer = self.call(&command, what)?;
        let mut rest = answer.parameters.as_slice();
        let area = wire::sized(&mut rest).ok_or_else(|| self.malformed())?;
        let handle = answer.handle.ok_or_else(|| self.malformed())?;
        Ok((handle, area.to_vec()))
    }

    /// Opens a session that fulfils the EK's policy: the endorsement hierarchy's password, which is
    /// empty, was presented.
    fn policy_session(&mut self) -> Result<u32, KitError> {
        let start = Command::new(wire::START_AUTH_SESSION)
            .handle(wire::HANDLE_NULL)
            .handle(wire::HANDLE_NULL)
            // A nonce of zeros: the session authorises one command and protects nothing that could
            // be replayed.
            .sized(&[0; 16])
            .sized(&[])
            .bytes(&wire::POLICY_SESSION);
        let answer = self.call(&start, "StartAuthSession")?;
        let session = answer.handle.ok_or_else(|| self.malformed())?;
        let secret = Command::new(wire::POLICY_SECRET)
            .handle(OWNER_OF_ENDORSEMENTS)
            .handle(session)
            .auth(Auth::Password)
            .sized(&[])
            .sized(&[])
            .sized(&[])
            .number(0);
        let answer = self.call(&secret, "PolicySecret");
        if answer.is_err() {
            self.flush(session)?;
        }
        answer.map(|_| session)
    }

    fn flush(&mut self, handle: u32) -> Result<(), KitError> {
        let command = Command::new(wire::FLUSH_CONTEXT).number(handle);
        self.call(&command, "FlushContext").map(drop)
    }

    fn call(&mut self, command: &Command, what: &'static str) -> Result<wire::Response, KitError> {
        let bytes = command.encode();
        let mut again = 0;
        loop {
            let answer = self.exchange(&bytes);
            let answer = answer.map_err(|e| of(&self.path, e.into()))?;
            let answer = decode_response(&answer, command.answers_with_handle());
            let answer = answer.ok_or_else(|| self.malformed())?;
            match answer.code {
                0 => return Ok(answer),
                code if BUSY.contains(&code) && again < BUSY_MAX => {
                    again += 1;
                    std::thread::sleep(BUSY_PAUSE);
                }
                code => {
                    let command = what;
                    return Err(of(&self.path, TpmError::Refused { command, code }));
                }
            }
        }
    }

    /// A device hands out a response with one read; on a socket its length says where it ends.
    fn exchange(&mut self, command: &[u8]) -> io::Result<Vec<u8>> {
        let mut answer = vec![0; RESPONSE_LEN_MAX];
        let len = match &mut self.channel {
            TpmChannel::Device(device) => {
                device.write_all(command)?;
                device.read(&mut answer)?
            }
            TpmChannel::Socket(socket) => {
                socket.write_all(command)?;
                socket.read_exact(&mut answer[..wire::HEADER_LEN])?;
                let len = wire::announced(&answer).filter(|len| *len <= RESPONSE_LEN_MAX);
                let len =
                    len.ok_or_else(|| io::Error::other("a response of no sensible length"))?;
                socket.read_exact(&mut answer[wire::HEADER_LEN..len])?;
                len
            }
        };
        answer.truncate(len);
        Ok(answer)
    }

    fn malformed(&self) -> KitError {
        of(&self.path, TpmError::Malformed)
    }
}

fn of(path: &Path, source: TpmError) -> KitError {
    KitError::Tpm {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    const FULL: u32 = 0x902;

    /// A TPM that answers each command by its code, and returns the codes that it got.
    fn tpm(dir: &Path, answer: fn(u32, usize) -> Vec<u8>) -> (Tpm, thread::JoinHandle<Vec<u32>>) {
        let path = dir.join("tpm");
        let listener = UnixListener::bind(&path).unwrap();
        let tpm = Tpm::open(&path).unwrap();
        let codes = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut codes, mut command) = (Vec::new(), [0; RESPONSE_LEN_MAX]);
            while let Ok(10..) = stream.read(&mut command) {
                codes.push(u32::from_be_bytes(*command[6..].first_chunk().unwrap()));
                let answer = answer(codes[codes.len() - 1], codes.len());
                stream.write_all(&answer).unwrap();
            }
            codes
        });
        (tpm, codes)
    }

    fn response(code: u32, body: &[u8]) -> Vec<u8> {
        let len = u32::try_from(wire::HEADER_LEN + body.len()).unwrap();
        let head = [&[0x80, 1][..], &len.to_be_bytes(), &code.to_be_bytes()].concat();
        [&head[..], body].concat()
    }

    #[test]
    fn what_was_loaded_is_unloaded_after_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let (mut one, codes) = tpm(dir.path(), |_, nth| match nth {
            1 => response(0, &[0x80, 0, 0, 1, 0, 0]),
            2 => response(FULL, &[]),
            _ => response(0, &[]),
        });
        let error = one.load().unwrap_err();
        assert!(matches!(
            error,
            KitError::Tpm {
                source: TpmError::Refused { code: FULL, .. },
                ..
            }
        ));
        drop(one);
        let want = [
            wire::CREATE_PRIMARY,
            wire::CREATE_PRIMARY,
            wire::FLUSH_CONTEXT,
        ];
        assert_eq!(codes.join().unwrap(), want);
        let dir = tempfile::tempdir().unwrap();
        let (mut one, codes) = tpm(dir.path(), |_, nth| match nth {
            1 => response(0, &[3, 0, 0, 1, 0, 0]),
            2 => response(FULL, &[]),
            _ => response(0, &[]),
        });
        one.policy_session().unwrap_err();
        drop(one);
        let want = [
            wire::START_AUTH_SESSION,
            wire::POLICY_SECRET,
            wire::FLUSH_CONTEXT,
        ];
        assert_eq!(codes.join().unwrap(), want);
    }
}
